package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"slipway.build/pkg/mechanism/atomicfile"
	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/mechanism/suggest"
	"slipway.build/pkg/prove/cluster/controlplane"
	"slipway.build/pkg/prove/cluster/kubeadm"
	"slipway.build/pkg/prove/cluster/machine"
)

// Settings are what a user sets of Kubernetes' configuration. Which fields, flags and feature gates there are is known to the programs of
// the cluster alone. So these read all of it before anything starts.
type Settings = kubeadm.Settings

// ReadSettings reads settings for a cluster with nodes or without them.
func ReadSettings(gates, runtime, files []string, controlPlaneOnly bool) (Settings, error) {
	s, err := kubeadm.ReadSettings(gates, runtime, files)
	if err == nil && controlPlaneOnly {
		err = s.ForControlPlaneAlone()
	}
	return s, err
}

// settingPrograms are the programs that read settings. A cluster with nodes has some of them in images alone.
var settingPrograms = []string{"etcd", apiServer, "kube-controller-manager", "kube-scheduler", "kube-proxy"}

// checkSettings gives each component the feature gates that it has, and has the programs read what was set.
func (s *State) checkSettings(ctx context.Context) error {
	if s.Settings.Empty() {
		return nil
	}
	t := trial{s, s.Version, func(name string) (string, error) { return s.fileOf(name, s.current(name)) }, ""}
	known := map[string][]string{}
	for _, name := range t.components() {
		gates, err := t.named(ctx, name, featureGate)
		if err != nil {
			return err
		}
		known[name] = gates
	}
	settings := s.Settings
	if err := settings.Distribute(known); err != nil {
		return err
	}
	if err := s.change(func() { s.Settings = settings }); err != nil {
		return err
	}
	return t.run(ctx)
}

// A trial has programs read the settings of a cluster. Nothing remains of it, and it starts nothing but an etcd for a moment.
type trial struct {
	*State
	version string                            // of the programs
	program func(name string) (string, error) // returns the file of a program
	dir     string                            // for files
}

// components returns the components that have settings.
func (t *trial) components() []string {
	if t.ControlPlaneOnly {
		return staticPods
	}
	return slices.Concat(staticPods, []string{"kubelet", "kube-proxy"})
}

// run returns an error that names the first mistake.
func (t *trial) run(ctx context.Context) error {
	var err error
	if t.dir, err = os.MkdirTemp(t.path(), "settings-"); err != nil {
		return err
	}
	defer os.RemoveAll(t.dir)
	ctx, stop := context.WithTimeout(ctx, t.patience)
	defer stop()
	for _, check := range []func(context.Context) error{t.tryFlags, t.tryNode, t.tryControlPlane} {
		if err := check(ctx); err != nil {
			return err
		}
	}
	return nil
}

// tryFlags has programs parse their flags. With --version they do nothing else.
func (t *trial) tryFlags(ctx context.Context) error {
	for _, name := range slices.Concat(t.components(), []string{"etcd"}) {
		if flags := t.Settings.Flags(name, t.dir); len(flags) > 0 {
			if err := t.try(ctx, name, "", append(flags, "--version")...); err != nil {
				return err
			}
		}
	}
	return nil
}

// tryNode has kubeadm, the kubelet and kube-proxy read their configuration. The kubelet ends after that, because it wants a lock without a
// file.
func (t *trial) tryNode(ctx context.Context) error {
	if t.ControlPlaneOnly {
		return nil
	}
	whole, noWhole := kubeadm.Config{
		Cluster: t.Name, Version: t.version, Registry: "registry.invalid", Token: kubeadm.NewToken(), Wait: DefaultWait,
		Node: kubeadm.Node{Name: t.node(1).name, Address: "198.18.0.2"}, Settings: t.Settings,
	}.Init()
	kubelet, noKubelet := t.Settings.Kubelet()
	proxy, noProxy := t.Settings.Proxy()
	file := func(name string) string { return filepath.Join(t.dir, name) }
	if err := errors.Join(noWhole, noKubelet, noProxy, atomicfile.WriteFile(file("kubeadm"), whole, 0o600),
		atomicfile.WriteFile(file("kubelet"), kubelet, 0o600), atomicfile.WriteFile(file("proxy"), proxy, 0o600)); err != nil {
		return err
	}
	if err := t.try(ctx, "kubeadm", "", "config", "validate", "--config="+file("kubeadm")); err != nil {
		return err
	}
	if err := t.try(ctx, "kubelet", "no lock file specified", "--config="+file("kubelet"), "--exit-on-lock-contention",
		"--cert-dir="+file("certificates")); err != nil {
		return err
	}
	return t.try(ctx, "kube-proxy", "", "--config="+file("proxy"), "--write-config-to="+file("proxy.out"))
}

// tryControlPlane has the API server and the scheduler read their files. The API server needs an etcd for that. It ends when it has read
// everything, because a certificate is missing.
func (t *trial) tryControlPlane(ctx context.Context) error {
	const schedulerName = "kube-scheduler"
	programs, err := controlplane.Prepare(t.dir, t.Name, filepath.Join(t.dir, "kubeconfig"), kubeadm.ServiceNetwork)
	if err != nil {
		return err
	}
	kubeconfig := filepath.Join(t.dir, "pki", schedulerName+".conf")
	if err := t.Settings.WriteFiles(t.dir, kubeconfig); err != nil {
		return err
	}
	if _, ok := t.Settings.Documents[kubeadm.SchedulerKind]; ok {
		if err := t.try(ctx, schedulerName, "", "--config="+filepath.Join(t.dir, "scheduler.yaml"), "--secure-port=0",
			"--write-config-to="+filepath.Join(t.dir, "scheduler.out")); err != nil {
			return err
		}
	}
	files := t.Settings.OwnFlags(apiServer, t.dir)
	if len(files) == 0 {
		return nil
	}
	etcd, err := t.program("etcd")
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = machine.Output(ctx, "", append([]string{etcd}, programs[0].Flags...)...) // the API server says if there is none
	}()
	missing := filepath.Join(t.dir, "missing")
	err = t.try(ctx, apiServer, missing+": no such file", slices.Concat(programs[1].Flags, files,
		[]string{"--proxy-client-cert-file=" + missing, "--proxy-client-key-file=" + missing})...)
	stop()
	<-ended
	return err
}

// try runs a program that reads settings and ends, with a certain error if it has no other way to end. The error is what it says of the
// settings. Some programs only write that a field is unknown, and go on.
func (t *trial) try(ctx context.Context, name, end string, args ...string) error {
	file, err := t.program(name)
	if err != nil {
		return err
	}
	out, failed := machine.Output(ctx, "", append([]string{"sh", "-c", `exec "$@" 2>&1`, "sh", file}, args...)...)
	said := complaint(out)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%s has not read the settings: %w", name, ctx.Err())
	case strings.Contains(said, strictly):
	case failed == nil, end != "" && strings.Contains(said, end):
		return nil
	case said == "":
		said = failed.Error()
	}
	return t.refuse(ctx, name, said)
}

const strictly = "strict decoding error: "

// complaints match the ways in which programs say what is wrong. The first one that matches counts.
var complaints = []*regexp.Regexp{
	regexp.MustCompile(`(?m)^.*(` + strictly + `.*)$`), // also in a warning
	regexp.MustCompile(`(?m)^E.*"command failed" err=(".*")$`),
	regexp.MustCompile(`(?m)^(?:panic|[Ee]rror): (.*)$`),
	regexp.MustCompile(`(?m)^(.+)$`),
}

// complaint returns what a program says is wrong.
func complaint(out string) string {
	for _, c := range complaints {
		found := c.FindStringSubmatch(out)
		if found == nil {
			continue
		}
		if text, err := strconv.Unquote(found[1]); err == nil {
			return text
		}
		text := strings.ReplaceAll(found[1], `\"`, `"`)
		if strings.Count(text, `"`)%2 == 1 {
			text = strings.TrimSuffix(text, `"`) // that ends what it is quoted in
		}
		return text
	}
	return ""
}

// Names in complaints, and the same in what programs know.
type nameKind struct {
	unknown, known *regexp.Regexp
	inHelp         bool // or else in the program itself
}

var (
	featureGate = nameKind{regexp.MustCompile(`unrecognized feature gate: (\w+)`), regexp.MustCompile(`(\w+)=true\|false`), true}
	flag        = nameKind{regexp.MustCompile(`unknown flag: --([\w-]+)`), regexp.MustCompile(`(?m)^ +--([\w-]+)`), true}
	field       = nameKind{regexp.MustCompile(`unknown field "(?:[^"]*\.)?(\w+)"`), regexp.MustCompile(`json:"(\w+)`), false}
)

// named returns the names of a kind that a program knows. Names of fields are in the tags of its types.
func (t *trial) named(ctx context.Context, name string, kind nameKind) ([]string, error) {
	file, err := t.program(name)
	if err != nil {
		return nil, err
	}
	var text string
	if kind.inHelp {
		text, err = machine.Output(ctx, "", file, "--help")
	} else {
		var content []byte
		content, err = os.ReadFile(file)
		text = string(content)
	}
	var names []string
	for _, found := range kind.known.FindAllStringSubmatch(text, -1) {
		names = append(names, found[1])
	}
	return names, err
}

// refuse returns the error for what a program says of the settings, with names that were probably meant.
func (t *trial) refuse(ctx context.Context, program, said string) error {
	var near []string
	var from string
	for _, kind := range []nameKind{featureGate, flag, field} {
		if found := kind.unknown.FindStringSubmatch(said); found != nil {
			names, err := t.named(ctx, program, kind)
			if err != nil {
				return err
			}
			near, from = suggest.Near(found[1], names), t.Settings.Where(found[1])
		}
	}
	return badrequest.Mark(fmt.Errorf("%s%s: %s%s", from, program, said, suggest.DidYouMean(near)))
}
