package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"slipway.build/pkg/prove/cluster/machine"
)

type object = map[string]any

// Kubectl returns the path of the release's kubectl.
func (s *State) Kubectl() (string, error) { return s.fileOf("kubectl", s.current("kubectl")) }

// KubectlEnvironment returns an environment in which kubectl is the cluster's administrator, and keeps its cache in the cluster's folder.
// It reaches the cluster without a proxy.
func (s *State) KubectlEnvironment(environment []string) []string {
	direct := []string{"127.0.0.1"}
	if s.Subnet != "" {
		direct = append(direct, s.Subnet)
	}
	for _, e := range environment {
		if name, value, _ := strings.Cut(e, "="); strings.EqualFold(name, "NO_PROXY") && value != "" {
			direct = append(direct, value)
		}
	}
	none := strings.Join(direct, ",")
	return append(slices.Clone(environment), "KUBECONFIG="+s.Kubeconfig(), "KUBECACHEDIR="+s.path("kubectl"),
		"NO_PROXY="+none, "no_proxy="+none)
}

// kubectl runs the release's kubectl as administrator, with its cache in the cluster's folder. It returns the output without spaces
// around it.
func (s *State) kubectl(ctx context.Context, args ...string) (string, error) {
	return s.kubectlWith(ctx, "", args...)
}

// kubectlWith runs kubectl with standard input.
func (s *State) kubectlWith(ctx context.Context, stdin string, args ...string) (string, error) {
	kubectl, err := s.Kubectl()
	if err != nil {
		return "", err
	}
	out, err := machine.Output(ctx, stdin,
		append([]string{kubectl, "--kubeconfig=" + s.Kubeconfig(), "--cache-dir=" + s.path("kubectl")}, args...)...)
	return strings.TrimSpace(out), err
}

// system runs kubectl in the namespace kube-system.
func (s *State) system(ctx context.Context, args ...string) (string, error) {
	return s.kubectl(ctx, append([]string{"--namespace=kube-system"}, args...)...)
}

// get returns what a path of JSON has in objects.
func (s *State) get(ctx context.Context, jsonpath string, objects ...string) (string, error) {
	return s.system(ctx, append([]string{"get", "--output=jsonpath=" + jsonpath}, objects...)...)
}

// apiReady returns an error unless an API server is ready. Flags can select one.
func (s *State) apiReady(ctx context.Context, more ...string) error {
	_, err := s.kubectl(ctx, append([]string{"get", "--raw=/readyz"}, more...)...)
	return err
}

// apply creates an object, or changes it to what it should be.
func (s *State) apply(ctx context.Context, o object) error {
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	_, err = s.kubectlWith(ctx, string(text), "apply", "-f", "-")
	return err
}

// patch changes an object by a patch of a type.
func (s *State) patch(ctx context.Context, name, kind string, patch any) error {
	text, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	_, err = s.system(ctx, "patch", name, "--type="+kind, "--patch="+string(text))
	return err
}

// rolledOut waits until a DaemonSet or Deployment has been rolled out.
func (s *State) rolledOut(ctx context.Context, workload string) error {
	_, err := s.system(ctx, "rollout", "status", workload, s.timeout())
	return err
}

// timeout returns kubectl's flag for how long to wait.
func (s *State) timeout() string { return "--timeout=" + s.patience.String() }

// explain adds the lists of nodes and Pods to an error.
func (s *State) explain(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	pods, _ := s.kubectl(ctx, "get", "nodes,pods", "--all-namespaces")
	return fmt.Errorf("%w\n%s", err, pods)
}
