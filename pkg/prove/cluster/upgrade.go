package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/prove/cluster/kubeadm"
	"slipway.build/pkg/prove/cluster/tarball"
)

// UpgradeOptions say which cluster to upgrade, and to what.
type UpgradeOptions struct {
	Dir      string // the folder of the clusters' folders
	Name     string
	Tarballs string             // the folder with the server tarball and release.json of the target
	Force    bool               // also removes Pods that no controller makes again
	Wait     time.Duration      // for each part to become ready; zero means DefaultWait
	Events   func(action.Event) // receives what happens; not nil
}

// ErrBarePods says that nodes cannot be drained, since they have Pods that no controller makes again.
var ErrBarePods = errors.New("a drain would lose Pods")

// Upgrade takes a running cluster to another release by kubeadm, node by node: the control plane first, then the kubelet and the container
// runtime of each node, which is drained meanwhile if there are other nodes. It refuses an upgrade that Kubernetes forbids. The root file
// system of nodes and the program of the cluster's registry stay as they are.
//
// An upgrade that failed or was interrupted goes on where it stopped when Upgrade is called for the same release again. It can also be
// turned back, by an upgrade to the cluster's own release, unless that has an earlier minor version. A cluster that is of the release
// already stays as it is. The caller makes sure that nothing else changes clusters of the folder meanwhile.
func Upgrade(ctx context.Context, o UpgradeOptions) (*State, error) {
	if err := requireMachine(); err != nil {
		return nil, err
	}
	s, err := Load(o.Dir, o.Name)
	if err != nil {
		return nil, err
	}
	if err := s.RequireNodes(); err != nil {
		return nil, err
	}
	if !s.running() {
		return nil, fmt.Errorf("cluster %s does not run: %w", s.Name, cmp.Or(s.checkAlive(), errors.New("the machine was booted since")))
	}
	if len(s.Programs)+len(s.Replaced)+len(s.Unsettled) > 0 {
		return nil, s.wrap(ErrReplaced)
	}
	if s.HollowNodes > 0 {
		return nil, s.wrap(ErrHollow)
	}
	b, err := tarball.Open(o.Tarballs, apiServer)
	if err != nil {
		return nil, err
	}
	if s.Upgrade == nil && s.Release == b.Sum() {
		return s, nil
	}
	if err := s.allows(b.Sum(), b.Release.Version); err != nil {
		return nil, err
	}
	if err := b.Verify(ctx); err != nil {
		return nil, err
	}
	s.patience = cmp.Or(o.Wait, DefaultWait)
	u := &upgrade{State: s, to: b, nodes: s.allNodes(), force: o.Force}
	if err := u.checkDrain(ctx); err != nil {
		return nil, err
	}
	if err := u.checkSettings(ctx); err != nil {
		return nil, err
	}
	tarballs, err := filepath.Abs(o.Tarballs)
	if err == nil {
		err = s.change(func() { s.Upgrade = &Target{b.Release.Version, b.Sum(), tarballs} })
	}
	if err != nil {
		return s, err
	}
	return s, runSteps(ctx, u.steps(), o.Events)
}

// allows returns an error unless the cluster can be upgraded to a release.
func (s *State) allows(sum, version string) error {
	switch {
	case s.Upgrade == nil:
		return checkSkew(s.Version, version)
	case s.Upgrade.Release == sum:
		return nil
	case s.Release == sum: // it turns back
		return checkSkew(s.Upgrade.Version, version)
	}
	return checkSkew(newer(s.Version, s.Upgrade.Version), version)
}

// An upgrade holds the state of one Upgrade call.
type upgrade struct {
	*State
	to     *tarball.Tarball // first packed, then unpacked
	images imageSet         // of the target
	nodes  []node
	force  bool
}

// steps returns the steps of the upgrade that are left, one after the other.
func (u *upgrade) steps() []step {
	steps := []step{
		{"unpack", nil, u.unpackTarget},
		{"publish images", nil, func(ctx context.Context) error { return u.registry().Push(ctx, u.images.all) }},
		{"configure kubeadm", nil, u.configure},
	}
	for _, n := range u.nodes {
		if p, _ := u.process(n.name); p.Release == u.to.Sum() {
			continue
		}
		steps = append(steps, step{"kubeadm upgrade " + n.name, nil, func(ctx context.Context) error { return u.kubeadmUpgrade(ctx, n) }})
		if len(u.nodes) > 1 {
			steps = append(steps, step{"drain " + n.name, nil, func(ctx context.Context) error { return u.drain(ctx, n) }})
		}
		steps = append(steps,
			step{"restart " + n.name, nil, func(ctx context.Context) error { return u.restart(ctx, n) }},
			step{"return " + n.name, nil, func(ctx context.Context) error { return u.rejoin(ctx, n) }})
	}
	return inOrder(append(steps,
		step{"addons", nil, func(ctx context.Context) error {
			if err := u.use(u.to.Sum()); err != nil {
				return err
			}
			return u.retryUnreachable(ctx, func() error { return u.addAddons(ctx, u.images.all) })
		}},
		step{"CoreDNS ready", nil, func(ctx context.Context) error {
			return u.retryUnreachable(ctx, func() error { return u.rolledOut(ctx, "deployment/coredns") })
		}},
		step{"remove the earlier release", nil, u.finish}))
}

// unpackTarget unpacks the release beside the cluster's own, and looks at its images.
func (u *upgrade) unpackTarget(ctx context.Context) error {
	if err := u.unpack(ctx, u.to); err != nil {
		return err
	}
	b, err := tarball.Open(u.path(folderOf(u.to.Sum())), apiServer)
	if err != nil {
		return err
	}
	u.to = b
	u.images, err = imageSetOf(ctx, b)
	return err
}

// checkSettings has the target's programs read the settings, which kubeadm keeps.
func (u *upgrade) checkSettings(ctx context.Context) error {
	if u.Settings.Empty() {
		return nil
	}
	if err := u.unpackTarget(ctx); err != nil {
		return err
	}
	err := (&trial{u.State, u.to.Release.Version, u.to.File, ""}).run(ctx)
	if err != nil && u.State.Upgrade == nil {
		return fmt.Errorf("%s: %w", u.to.Release.Version, errors.Join(err, os.RemoveAll(u.path(folderOf(u.to.Sum())))))
	}
	return err
}

// kubeadmConfig is the ConfigMap with kubeadm's configuration of the cluster, and clusterConfiguration its key.
const (
	kubeadmConfig        = "configmap/kubeadm-config"
	clusterConfiguration = "ClusterConfiguration"
)

// dnsBudget is the disruption budget of CoreDNS during an upgrade.
const dnsBudget = "slipway-upgrade-dns"

// configure prepares the cluster: kubeadm takes the name of the registry from it, and DNS must answer while a node is drained.
func (u *upgrade) configure(ctx context.Context) error {
	text, err := u.get(ctx, "{.data."+clusterConfiguration+"}", kubeadmConfig)
	if err != nil {
		return err
	}
	changed, err := kubeadm.WithRegistry(text, u.images.registry)
	if err != nil {
		return fmt.Errorf("%s: %w", kubeadmConfig, err)
	}
	if changed != text {
		if err := u.patch(ctx, kubeadmConfig, "merge", object{"data": object{clusterConfiguration: changed}}); err != nil {
			return err
		}
	}
	if len(u.nodes) < 2 {
		return nil
	}
	return u.apply(ctx, object{
		"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
		"metadata": object{"name": dnsBudget, "namespace": "kube-system"},
		"spec":     object{"minAvailable": 1, "selector": object{"matchLabels": object{"k8s-app": "kube-dns"}}},
	})
}

// kubeadmUpgrade has the target's kubeadm upgrade the control plane, if the node has one, and the kubelet's configuration. From here on,
// what runs on the node is of neither release until it has come back.
func (u *upgrade) kubeadmUpgrade(ctx context.Context, n node) error {
	if err := u.mark(n, ""); err != nil {
		return err
	}
	config, err := kubeadm.Config{Version: u.to.Release.Version, Wait: u.patience}.Upgrade()
	if err != nil {
		return err
	}
	command := []string{"upgrade", "node"}
	if n.number == 1 {
		command = []string{"upgrade", "apply", "--yes"}
	}
	program := path.Join("/run/slipway", filepath.ToSlash(folderOf(u.to.Sum())), u.to.Member("kubeadm"))
	err = u.retryUnreachable(ctx, func() error { return u.kubeadm(ctx, n, program, config, command...) })
	if err != nil || n.number > 1 {
		return err
	}
	return u.copyKubeconfig() // kubeadm renews the certificate
}

// retryUnreachable calls do until it no longer fails because the API server cannot be reached: that of the only control plane is
// away for some seconds, when a kubelet of another minor version restarts it.
func (u *upgrade) retryUnreachable(ctx context.Context, do func() error) error {
	limit := time.Now().Add(u.patience)
	for {
		err := do()
		if err == nil || !unreachable(err) || time.Now().After(limit) {
			return err
		}
		if err := u.eventually(ctx, longPause, func(ctx context.Context) error { return u.apiReady(ctx) }); err != nil {
			return err
		}
	}
}

// kubectlRetry runs a command of kubectl that can be repeated.
func (u *upgrade) kubectlRetry(ctx context.Context, args ...string) error {
	return u.retryUnreachable(ctx, func() error {
		_, err := u.kubectl(ctx, args...)
		return err
	})
}

// unreachable reports whether kubectl or kubeadm failed because no API server answered. Their exit codes do not say so.
func unreachable(err error) bool {
	return slices.ContainsFunc([]string{"connection refused", "connection reset by peer", "EOF", "i/o timeout", "TLS handshake timeout"},
		func(words string) bool { return strings.Contains(err.Error(), words) })
}

// restart restarts a node's container runtime and kubelet as the target's. Containers continue, except those whose images have changed
// under the same name.
func (u *upgrade) restart(ctx context.Context, n node) error {
	if err := errors.Join(u.configureRuntime(n, u.to, u.images.sandbox),
		relink(folderOf(u.to.Sum()), u.InNode(n.name, releaseInNode))); err != nil {
		return err
	}
	if err := u.restartProgram(ctx, n, "containerd"); err != nil {
		return err
	}
	if err := u.waitForRuntime(ctx, n); err != nil {
		return err
	}
	if err := u.renewImages(ctx, n); err != nil {
		return err
	}
	return u.restartProgram(ctx, n, "kubelet")
}

// rejoin waits until the node's new kubelet is ready, and lets Pods come to the node again.
func (u *upgrade) rejoin(ctx context.Context, n node) error {
	want := u.to.Release.Version + " True"
	err := u.eventually(ctx, longPause, func(ctx context.Context) error {
		got, err := u.get(ctx, `{.status.nodeInfo.kubeletVersion} {.status.conditions[?(@.type=="Ready")].status}`, "node/"+n.name)
		if err == nil && got != want {
			err = fmt.Errorf("its kubelet's version and readiness are %q, want %q", got, want)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("node %s: %w; see %s", n.name, err, u.NodeFile(n.name, "var-log", "kubelet.log"))
	}
	if n.number <= u.ControlPlanes {
		if err := u.awaitStable(ctx, n); err != nil {
			return fmt.Errorf("API server of %s: %w", n.name, err)
		}
	}
	if len(u.nodes) > 1 {
		if err := u.kubectlRetry(ctx, "uncordon", n.name); err != nil {
			return err
		}
	}
	return u.mark(n, u.to.Sum())
}

// stablePeriod is how long an API server has to answer without a break until it counts as settled.
const stablePeriod = 10 * time.Second

// awaitStable waits until the API server of a node is no longer restarted. Seconds after it is ready, a kubelet of another minor version
// restarts it once more. A drain of the next node at that time would end Pods without anyone noticing.
func (u *upgrade) awaitStable(ctx context.Context, n node) error {
	server := "--server=https://" + net.JoinHostPort(u.address(n), strconv.Itoa(kubeadm.APIPort))
	var since time.Time
	return u.eventually(ctx, longPause, func(ctx context.Context) error {
		if err := u.apiReady(ctx, server); err != nil {
			since = time.Time{}
			return err
		}
		if since.IsZero() {
			since = time.Now()
		}
		if time.Since(since) < stablePeriod {
			return errors.New("it has just become ready")
		}
		return nil
	})
}

// mark writes which release a node runs.
func (u *upgrade) mark(n node, release string) error {
	return u.change(func() {
		for i := range u.Processes {
			if u.Processes[i].Name == n.name {
				u.Processes[i].Release = release
			}
		}
	})
}

// finish makes the target the cluster's release, and removes the earlier one.
func (u *upgrade) finish(ctx context.Context) error {
	if len(u.nodes) > 1 {
		if err := u.kubectlRetry(ctx, "--namespace=kube-system", "delete", "poddisruptionbudget", dnsBudget, "--ignore-not-found"); err != nil {
			return err
		}
	}
	if err := u.change(func() {
		u.Version, u.Release, u.Tarballs, u.State.Upgrade = u.State.Upgrade.Version, u.State.Upgrade.Release, u.State.Upgrade.Tarballs, nil
	}); err != nil {
		return err
	}
	all, err := os.ReadDir(u.path(releases))
	if err != nil {
		return err
	}
	for _, e := range all {
		if filepath.Join(releases, e.Name()) != folderOf(u.Release) {
			err = errors.Join(err, os.RemoveAll(u.path(releases, e.Name())))
		}
	}
	return err
}
