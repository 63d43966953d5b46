package verify

import (
	"bytes"
	"context"
	"encoding/json"
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

// lastNode returns another node, if there are several.
func (t *target) lastNode() string { return t.nodes[len(t.nodes)-1].Name }

// An env is the cluster and the namespace that a check works in.
type env struct {
	*target
	namespace string
	after     []func(context.Context) error
}

// begin makes the namespace, and waits for the objects that every Pod needs.
func (e *env) begin(ctx context.Context) error {
	if _, err := e.kubectl(ctx, "create", "namespace", e.namespace); err != nil {
		return err
	}
	e.cleanup(func(ctx context.Context) error {
		_, err := e.kubectl(ctx, "delete", "namespace", e.namespace, "--wait=false", "--ignore-not-found")
		return err
	})
	// one at a time: given several, kubectl waits for none
	for _, what := range []string{"serviceaccount/default", "configmap/kube-root-ca.crt"} {
		if err := e.wait(ctx, "create", what); err != nil {
			return err
		}
	}
	return nil
}

// cleanup registers what to do at the end of the check, whatever its result.
func (e *env) cleanup(f func(context.Context) error) { e.after = append(e.after, f) }

// cleanUp does what was registered, in reverse order, even if the time of the check is over.
func (e *env) cleanUp(ctx context.Context) error {
	limited, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), 2*time.Minute, errors.New("not cleaned up after 2 minutes"))
	defer cancel()
	var errs []error
	for _, f := range slices.Backward(e.after) {
		errs = append(errs, f(limited))
	}
	return errors.Join(errs...)
}

// kubectl runs the release's kubectl as administrator in the check's namespace.
func (e *env) kubectl(ctx context.Context, args ...string) (string, error) {
	return e.feed(ctx, "", args...)
}

// feed runs kubectl with standard input.
func (e *env) feed(ctx context.Context, stdin string, args ...string) (string, error) {
	return e.kubectlAs(ctx, e.Kubeconfig(), stdin, args...)
}

func (e *env) kubectlAs(ctx context.Context, kubeconfig, stdin string, args ...string) (string, error) {
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

// apply applies a manifest after expanding $image, $namespace and the names in pairs.
func (e *env) apply(ctx context.Context, manifest string, pairs ...string) error {
	_, err := e.feed(ctx, e.expand(manifest, pairs...), "apply", "-f", "-")
	return err
}

func (e *env) expand(manifest string, pairs ...string) string {
	pairs = append(pairs, "image", e.image, "namespace", e.namespace)
	return os.Expand(manifest, func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return "$" + name
	})
}

// refused requires that kubectl fails with some words.
func (e *env) refused(ctx context.Context, words, stdin string, args ...string) error {
	return isRefused(words)(e.feed(ctx, stdin, args...))
}

// isRefused requires that a result is an error with some words.
func isRefused(words string) func(string, error) error {
	return func(out string, err error) error {
		if err == nil {
			return fmt.Errorf("not refused, want an error with %q: %s", words, strings.TrimSpace(out))
		}
		if !strings.Contains(err.Error(), words) {
			return fmt.Errorf("refused, but not with %q: %w", words, err)
		}
		return nil
	}
}

// get returns what a JSONPath finds.
func (e *env) get(ctx context.Context, what, path string, flags ...string) (string, error) {
	out, err := e.kubectl(ctx, append([]string{"get", what, "-o", "jsonpath=" + path}, flags...)...)
	return strings.TrimSpace(out), err
}

// is requires that a JSONPath finds a value.
func (e *env) is(ctx context.Context, what, path, want string) error {
	got, err := e.get(ctx, what, path)
	if err == nil && got != want {
		err = fmt.Errorf("%s of %s is %q, want %q", path, what, got, want)
	}
	return err
}

// wait runs kubectl wait for as long as the check may take.
func (e *env) wait(ctx context.Context, condition string, what ...string) error {
	args := append([]string{"wait", "--for=" + condition, patience(ctx)}, what...)
	_, err := e.kubectl(ctx, args...)
	return err
}

// patience returns a timeout for kubectl that ends before the check does, so that kubectl can say what it has waited for.
func patience(ctx context.Context) string {
	limit := defaultLimit
	if end, ok := ctx.Deadline(); ok {
		limit = max(time.Until(end)-time.Second, time.Second)
	}
	return fmt.Sprintf("--timeout=%ds", int(limit.Seconds()))
}

// until repeats f until it returns no error or the check's time is over. On a busy machine it pauses for as long as f takes: the checks
// beside this one are waiting, too.
func until(ctx context.Context, f func() error) error {
	var last error
	for {
		start := time.Now()
		err := f()
		if err == nil {
			return nil
		}
		if ctx.Err() == nil || last == nil {
			last = err // not the error of a call that was cut off
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), last)
		case <-time.After(max(200*time.Millisecond, min(time.Since(start), 2*time.Second))):
		}
	}
}

// An object has the fields of objects that checks read.
type object struct {
	Metadata struct {
		Name              string
		Labels            map[string]string
		UID               string
		ResourceVersion   string
		DeletionTimestamp string
	}
	Spec struct {
		Replicas int
	}
	Status struct {
		Phase             string
		AvailableReplicas int
		Conditions        []struct{ Type, Status string }
	}
}

func (o object) ready() bool {
	return slices.ContainsFunc(o.Status.Conditions,
		func(c struct{ Type, Status string }) bool { return c.Type == "Ready" && c.Status == "True" })
}

// A change is an event of a watch.
type change struct {
	Type   string // ADDED, MODIFIED or DELETED
	Object object
}

// version returns the resource version of the collection at a path.
func (e *env) version(ctx context.Context, path string) (string, error) {
	var list object
	text, err := e.kubectl(ctx, "get", "--raw", path)
	if err == nil {
		err = json.Unmarshal([]byte(text), &list)
	}
	return list.Metadata.ResourceVersion, err
}

// since returns the changes of a collection after a version.
func (e *env) since(ctx context.Context, path, version string) ([]change, error) {
	text, err := e.kubectl(ctx, "get", "--raw", path+"?watch=1&timeoutSeconds=1&resourceVersion="+version)
	if err != nil {
		return nil, err
	}
	var changes []change
	for d := json.NewDecoder(strings.NewReader(text)); d.More(); {
		var c change
		if err := d.Decode(&c); err != nil {
			return nil, fmt.Errorf("watch %s: %w", path, err)
		}
		changes = append(changes, c)
	}
	return changes, nil
}

// ready waits until Pods are ready.
func (e *env) ready(ctx context.Context, pods ...string) error {
	return e.wait(ctx, "condition=Ready", prefixed("pod/", pods)...)
}

func prefixed(prefix string, names []string) []string {
	var all []string
	for _, name := range names {
		all = append(all, prefix+name)
	}
	return all
}

// exec runs the probe in a Pod.
func (e *env) exec(ctx context.Context, pod string, args ...string) (string, error) {
	out, err := e.kubectl(ctx, append([]string{"exec", pod, "--", "/probe"}, args...)...)
	return strings.TrimSpace(out), err
}
