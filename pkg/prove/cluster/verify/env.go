package verify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"slipway.build/pkg/mechanism/child"
	"slipway.build/pkg/prove/cluster"
)

// A target is the cluster that is checked.
type target struct {
	*cluster.State
	kubectl string            // the path of the release's kubectl
	image   string            // for Pods
	nodes   []cluster.Process // the first is the control plane's
}

// probeImage is the artifact with the image that checks run in Pods.
const probeImage = "probe.tar"

// open finds the image and the nodes of a cluster.
func open(s *cluster.State) (*target, error) {
	if s.ControlPlaneOnly {
		return openWithoutNodes(s)
	}
	if err := s.RequireNodes(); err != nil {
		return nil, err
	}
	image, err := s.Image(probeImage)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: the image that checks run in Pods: %w", s.Name, err)
	}
	kubectl, err := s.Kubectl()
	if err != nil {
		return nil, err
	}
	t := &target{s, kubectl, image, s.Nodes()}
	isFirst := func(n cluster.Process) bool {
		_, err := os.Stat(s.NodeFile(n.Name, "kubernetes", "manifests", "kube-apiserver.yaml"))
		return err == nil
	}
	at := slices.IndexFunc(t.nodes, isFirst)
	if at < 0 {
		return nil, fmt.Errorf("cluster %s has no node with a control plane: see %s", s.Name, s.NodeFile(""))
	}
	t.nodes[0], t.nodes[at] = t.nodes[at], t.nodes[0]
	return t, nil
}

// openWithoutNodes returns a control plane without nodes.
func openWithoutNodes(s *cluster.State) (*target, error) {
	if !s.Ready {
		return nil, fmt.Errorf("cluster %s %w", s.Name, cluster.ErrUnfinished)
	}
	kubectl, err := s.Kubectl()
	return &target{State: s, kubectl: kubectl, image: "example.invalid/never-pulled"}, err
}

// lastNode returns a node other than the first, if there are several.
func (t *target) lastNode() string { return t.nodes[len(t.nodes)-1].Name }

// An env is where a check runs: the cluster, a namespace and the time it has. Its methods are the steps of checks.
type env struct {
	*target
	ctx       context.Context // ends when the check's time is over
	namespace string
	message   string // what the check has measured
	cleanups  []func()
}

// begin creates the namespace, and waits for the objects that every Pod needs.
func (e *env) begin() {
	e.kubectl("create", "namespace", e.namespace)
	e.cleanup(func() { e.kubectl("delete", "namespace", e.namespace, "--wait=false", "--ignore-not-found") })
	// one at a time: given several, kubectl waits for none
	e.wait("create", "serviceaccount/default")
	e.wait("create", "configmap/kube-root-ca.crt")
}

// cleanup registers steps for the end of the check, whatever its result.
func (e *env) cleanup(steps func()) { e.cleanups = append(e.cleanups, steps) }

// cleanUp runs the registered cleanups, the last one first. They have time of their own, and each runs even if another fails.
func (e *env) cleanUp() error {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(e.ctx), 2*time.Minute, errors.New("not cleaned up after 2 minutes"))
	defer cancel()
	e.ctx = ctx
	var errs []error
	for _, steps := range slices.Backward(e.cleanups) {
		errs = append(errs, attempt(steps))
	}
	return errors.Join(errs...)
}

// runKubectl runs the release's kubectl in the check's namespace, and returns its output even if it fails.
func (e *env) runKubectl(ctx context.Context, kubeconfig, stdin string, args ...string) (string, error) {
	c := e.command(ctx, kubeconfig, args...)
	var out, errs bytes.Buffer
	c.Stdin, c.Stdout, c.Stderr = strings.NewReader(stdin), &out, &errs
	if err := child.Run(c, syscall.SIGKILL, nil); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		said := strings.TrimSpace(errs.String())
		if said != "" {
			said = ": " + said
		}
		return out.String(), fmt.Errorf("kubectl %s: %w%s", strings.Join(args, " "), err, said)
	}
	return out.String(), nil
}

// command returns a command of kubectl, without this process's environment, which may name a proxy.
func (e *env) command(ctx context.Context, kubeconfig string, args ...string) *exec.Cmd {
	cache := filepath.Join(filepath.Dir(e.Kubeconfig()), "kubectl")
	c := exec.CommandContext(ctx, e.target.kubectl, append([]string{"--kubeconfig=" + kubeconfig, "--cache-dir=" + cache,
		"--namespace=" + e.namespace}, args...)...)
	c.Env, c.WaitDelay = []string{"PATH=/usr/bin:/bin", "HOME=/root", "LANG=C.UTF-8"}, time.Second
	child.Group(c) // it must not get the Ctrl-C that is meant for slipway
	return c
}
