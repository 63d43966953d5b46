package clusters

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"slipway.build/pkg/cli/session"
	"slipway.build/pkg/make/project"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/prove/cluster"
)

// Folder is the folder of the clusters and of their lock, relative to the root.
const Folder = project.Output + "/cluster"

func newCluster(o commands) *cobra.Command {
	c := &cobra.Command{
		Use:   "cluster",
		Short: "Boot a cluster from the release tarballs, on this machine",
		Long: `cluster boots a release to see it work: it verifies the server tarball, unpacks it, and runs the programs in it.
All files of a cluster are in _output/cluster/NAME, and "slipway cluster down" removes the cluster without a trace.`,
		Args: session.OnlySubcommands,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newClusterUp(o), newClusterDown(o), newClusterKubeconfig(o), newClusterStatus(o), newClusterVerify(o),
		newClusterConformance(o), newClusterE2E(o), newClusterLoad(o), newClusterAdd(o), newClusterUpgrade(o),
		newClusterKubectl(o), newClusterLogs(o), newClusterShell(o), newClusterReplace(o))
	return c
}

// nameFlag adds the flag that names a cluster.
func nameFlag(c *cobra.Command, name *string) *cobra.Command {
	c.Flags().StringVar(name, "name", "slipway", "the cluster's name")
	return c
}

func newClusterUp(o commands) *cobra.Command {
	var name string
	var request cluster.Options
	var foreground bool
	var gates, runtime, files []string
	c := &cobra.Command{
		Use:   "up",
		Short: "Boot a cluster",
		Long: `up boots a cluster from the release's server tarball for this machine, after comparing it with release.json. It leaves a
cluster that is up already as it is. The tarball is in a folder, or in a bundle that slipway bundle has written.

Nodes are namespaces on this machine, and kubeadm makes them a cluster. Their root file system and their container runtime are
the release's, too. This needs root and iproute2. --control-plane-only needs neither: etcd, kube-apiserver,
kube-controller-manager and kube-scheduler run as processes on loopback, and there are no nodes to run Pods.

Nodes pull images from a registry in the cluster that has those of the tarball. They contact no other, and the cluster has no way
out. This machine can reach its nodes.
With --bin _output/bin, the programs that make has compiled run instead of the release's, as far as the folder has them. The rest comes
from the release: the nodes' root file system, the images below the programs, etcd. With --control-plane-only, no release is needed
if the folder has etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kubectl.

With --hollow-nodes, kubelets of kubemark join, each in a Pod of the other nodes. They pretend to run Pods that tolerate the taint
slipway.build/hollow, which shows what the rest of the cluster does with many nodes. Their image comes from the test tarball. On a
cluster that is up, only their number changes.

With --feature-gates, --runtime-config and --config, Kubernetes is configured otherwise. A file has YAML documents of the kinds
ClusterConfiguration, InitConfiguration, KubeletConfiguration, KubeProxyConfiguration, KubeSchedulerConfiguration, Policy (of the
audit log) and AdmissionConfiguration. They are merged over slipway's own configuration. The cluster's programs read them
first: a name that they do not know ends the command before anything starts. "slipway cluster status" lists what was set.

If up is interrupted, it removes what it made; if it fails, everything stays for inspection until "slipway cluster down".`,
		Example: "  sudo slipway cluster up --nodes 2\n  export KUBECONFIG=$(slipway cluster kubeconfig)\n  kubectl get nodes",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			given := c.Flags().Changed("nodes")
			if !given {
				request.Nodes = request.ControlPlanes
			}
			if err := checkUp(request, given); err != nil {
				return badrequest.Mark(err)
			}
			var err error
			if request.Settings, err = cluster.ReadSettings(gates, runtime, files, request.ControlPlaneOnly); err != nil {
				return err
			}
			request.Name = name
			if err := o.clusterUp(c.Context(), request); err != nil || !foreground {
				return err
			}
			return o.foreground(c.Context(), name)
		},
	}
	c.Flags().IntVar(&request.Nodes, "nodes", 1, "how many nodes; the first is also the control plane (default as many as control planes)")
	c.Flags().IntVar(&request.ControlPlanes, "control-planes", 1,
		"how many of the nodes have a control plane, behind a load balancer: 1, 3, 5 or 7")
	c.Flags().IntVar(&request.HollowNodes, "hollow-nodes", 0, "how many hollow nodes besides: kubelets that only pretend to run Pods")
	c.Flags().StringVar(&request.Tests, "tests", "", "the folder with the test tarball, for hollow nodes (default that of --from)")
	c.Flags().StringVar(&request.Tarballs, "from", "", "a folder with the tarballs, or a bundle (default the tree's _output/release-tars)")
	c.Flags().StringVar(&request.Bin, "bin", "", "a folder with programs to run instead of the release's, such as "+binaries)
	c.Flags().StringSliceVar(&gates, "feature-gates", o.list("FEATURE_GATES"),
		"feature gates, for each component that has them: NAME=true,NAME=false (default $FEATURE_GATES)")
	c.Flags().StringSliceVar(&runtime, "runtime-config", o.list("RUNTIME_CONFIG"),
		"which APIs are served, such as api/all=true or batch/v1=false (default $RUNTIME_CONFIG)")
	c.Flags().StringArrayVar(&files, "config", nil, "a file of Kubernetes' configuration; can be repeated")
	c.Flags().BoolVar(&foreground, "foreground", false, "stay until Ctrl-C, and then remove the cluster")
	c.Flags().DurationVar(&request.Wait, "wait", cluster.DefaultWait, "how long to wait for each part to become ready")
	c.Flags().BoolVar(&request.ControlPlaneOnly, "control-plane-only", false,
		"no nodes: the control plane's programs on loopback, without root")
	return nameFlag(c, &name)
}

// list returns what a variable lists, separated by commas, as hack/local-up-cluster.sh reads it.
func (o commands) list(name string) []string {
	if value := o.Getenv(name); value != "" {
		return strings.Split(value, ",")
	}
	return nil
}

// checkUp returns an error if no cluster is as the flags of up say.
func checkUp(r cluster.Options, nodesGiven bool) error {
	switch {
	case r.ControlPlanes < 1 || r.ControlPlanes > 7 || r.ControlPlanes%2 == 0:
		return fmt.Errorf("--control-planes=%d: want 1, 3, 5 or 7, of which a majority has to run", r.ControlPlanes)
	case r.Nodes < 1 || r.Nodes > 100:
		return fmt.Errorf("--nodes=%d: want 1 to 100", r.Nodes)
	case r.Nodes < r.ControlPlanes:
		return fmt.Errorf("--nodes=%d: %d control planes need as many nodes", r.Nodes, r.ControlPlanes)
	case r.HollowNodes < 0 || r.HollowNodes > 1000:
		return fmt.Errorf("--hollow-nodes=%d: want 0 to 1000", r.HollowNodes)
	case r.Wait < time.Second:
		return fmt.Errorf("--wait=%v: want a second or more", r.Wait)
	case r.ControlPlaneOnly && nodesGiven:
		return errors.New("--nodes and --control-plane-only: a control plane alone has no nodes")
	case r.ControlPlaneOnly && r.HollowNodes > 0:
		return errors.New("--hollow-nodes and --control-plane-only: hollow nodes are Pods of other nodes")
	case r.ControlPlaneOnly && r.ControlPlanes > 1:
		return errors.New("--control-planes and --control-plane-only: a control plane alone is one")
	}
	return nil
}

func (o commands) clusterUp(ctx context.Context, request cluster.Options) error {
	root, err := project.FindRoot(o.Dir)
	if err != nil {
		return err
	}
	request.Tarballs = cmp.Or(request.Tarballs, filepath.Join(root, filepath.FromSlash(project.Tars)))
	request.Dir = filepath.Join(root, filepath.FromSlash(Folder))
	if err := request.Require(); err != nil {
		return clusterError(err)
	}
	return o.withClusters(ctx, o.SayWaiting, func(string) error { return o.clusterUpLocked(ctx, request) })
}

func (o commands) clusterUpLocked(ctx context.Context, request cluster.Options) error {
	var s *cluster.State
	_, shown, err := o.showing(func(show func(action.Event)) (err error) {
		request.Events = show
		s, err = cluster.Up(ctx, request)
		return err
	})
	switch {
	case err == nil && o.JSON:
		return nil
	case err == nil:
		return o.sayUp(s, request)
	case s == nil && shown && badrequest.Is(err): // the settings
		return session.ShownError{Err: session.CommandError{Err: err, Code: 2}}
	case s == nil && shown: // the cluster stays, with the hollow nodes that it has
		return session.ShownError{Err: err}
	case s == nil:
		return clusterError(err)
	case ctx.Err() != nil:
		err = o.cleanUp(ctx, request)
	default:
		if errors.Is(err, cluster.ErrNotReady) {
			fmt.Fprintln(o.Err, "slipway: a slow machine may need a longer --wait")
		}
		fmt.Fprintf(o.Err, "slipway: what was made is still there, with its logs in %s; `%s` removes it\n",
			filepath.Join(request.Dir, request.Name), commandFor("down", request.Name))
	}
	if shown {
		return session.ShownError{Err: err}
	}
	return err
}

// cleanUp removes what an interrupted up made.
func (o commands) cleanUp(ctx context.Context, request cluster.Options) error {
	fmt.Fprintln(o.Err, "slipway: interrupted: removing what was made")
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	if err := cluster.Down(limit, request.Dir, request.Name); err != nil {
		fmt.Fprintf(o.Err, "slipway: %v; `%s` removes the rest\n", err, commandFor("down", request.Name))
		return errors.Join(ctx.Err(), err)
	}
	fmt.Fprintf(o.Err, "slipway: nothing of cluster %s is left\n", request.Name)
	return ctx.Err()
}

// sayUp says how to use the cluster.
func (o commands) sayUp(s *cluster.State, request cluster.Options) error {
	kubectl, err := s.Kubectl()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(o.Out, `Cluster %s is up, Kubernetes %s. To use it:

  export KUBECONFIG=%s
  %s get namespaces

To remove it: %s
`, s.Name, s.Version, session.Quote(s.Kubeconfig()), session.Quote(kubectl), commandFor("down", request.Name))
	return err
}

// commandFor returns the command line of a subcommand for a cluster.
func commandFor(command, name string) string {
	if name == "slipway" {
		return "slipway cluster " + command
	}
	return "slipway cluster " + command + " --name " + name
}

// clusterHints say what to do about the errors of package cluster.
var clusterHints = []struct {
	err  error
	hint string
}{
	{cluster.ErrOther, "`slipway cluster down` removes it"},
	{cluster.ErrUpgrading, "`slipway cluster upgrade --to` with that release's folder goes on"},
	{cluster.ErrHollow, "`slipway cluster up` with the cluster's other flags and without --hollow-nodes removes them"},
	{cluster.ErrBarePods, "`slipway cluster upgrade --force` removes them"},
	{cluster.ErrUnfinished, "make it again with `slipway cluster up`"},
	{cluster.ErrReplaced, "`slipway cluster status` lists them, and `slipway cluster replace --back` undoes replacements"},
	{cluster.ErrNoNodes, "`slipway cluster up` makes one with nodes"},
	{cluster.ErrNotRoot, "run the command with sudo; a cluster that is made with --control-plane-only needs no root"},
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

// clusterError adds to an error what to do about it. It makes an invalid name a usage error.
func clusterError(err error) error {
	if session.Is[cluster.NameError](err) {
		return badrequest.Mark(err)
	}
	var missing cluster.MissingError
	var programs cluster.NoProgramsError
	switch {
	case errors.As(err, &programs):
		return fmt.Errorf("%w: make %s compiles them into %s", err, strings.Join(programs.Names, " "), binaries)
	case !errors.As(err, &missing):
	case isFile(missing.Dir):
		return fmt.Errorf("%w: `slipway bundle --platform linux/%s` puts the server tarball into a bundle, and no other", err,
			runtime.GOARCH)
	case missing.Tests:
		return fmt.Errorf("%w: `slipway release --platform linux/%s` makes it with the other tarballs, or name the folder with --from", err,
			runtime.GOARCH)
	case missing.Addons:
		return fmt.Errorf("%w: `slipway release --quick --addons` makes it with the other tarballs, or name the folder with --from", err)
	default:
		return fmt.Errorf("%w: make quick-release makes it, or name the folder with --from", err)
	}
	for _, h := range clusterHints {
		if errors.Is(err, h.err) {
			return fmt.Errorf("%w: %s", err, h.hint)
		}
	}
	return err
}

func newClusterDown(o commands) *cobra.Command {
	var name string
	c := &cobra.Command{
		Use:   "down",
		Short: "Remove a cluster completely",
		Long: `down ends a cluster and removes everything that was made for it: processes, namespaces, mounts, control groups, the network
interface and _output/cluster/NAME. It also removes a cluster that up did not finish, and can be repeated.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			root, err := project.FindRoot(o.Dir)
			if err != nil {
				return err
			}
			if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(Folder))); os.IsNotExist(err) {
				return nil
			}
			return o.withClusters(c.Context(), o.SayWaiting, func(dir string) error {
				_, none := cluster.Load(dir, name)
				if err := cluster.Down(c.Context(), dir, name); err != nil {
					return clusterError(err)
				}
				if none == nil {
					fmt.Fprintf(o.Out, "nothing of cluster %s is left\n", name)
				}
				return nil
			})
		},
	}
	return nameFlag(c, &name)
}

// showing calls f with a function that shows events. It reports whether there were events, and whether they ended with the error.
func (o commands) showing(f func(show func(action.Event)) error) (began, shown bool, err error) {
	view := o.View(nil)
	err = f(func(e action.Event) {
		began = true
		shown = shown || e.Kind == action.Finished && e.Text != ""
		view.Event(e)
	})
	if closed := view.Close(); err == nil {
		err = closed
	}
	return began, shown, err
}

// onCluster calls f with a cluster that find reads, while no other process changes it. While it waits for one, it calls waiting.
func (o commands) onCluster(ctx context.Context, name string, find func(name string) (*cluster.State, error), waiting func(action.Event),
	f func(*cluster.State) error) error {
	if _, err := find(name); err != nil {
		return err
	}
	return o.withClusters(ctx, waiting, func(string) error {
		s, err := find(name) // it may have changed meanwhile
		if err != nil {
			return err
		}
		return f(s)
	})
}

// withClusters calls f with the folder of the tree's clusters, while no other process makes or removes one. It removes the folder if
// no cluster is left in it. While it waits for another process, it calls waiting.
func (o commands) withClusters(ctx context.Context, waiting func(action.Event), f func(dir string) error) error {
	root, err := project.FindRoot(o.Dir)
	if err != nil {
		return err
	}
	dir := filepath.Join(root, filepath.FromSlash(Folder))
	return action.Locked(ctx, root, Folder, waiting, func() error {
		err := f(dir)
		if entries, _ := os.ReadDir(dir); len(entries) == 1 { // the lock
			err = errors.Join(err, os.RemoveAll(dir))
		}
		return err
	})
}

// Clean removes all clusters of the tree.
func Clean(ctx context.Context, s *session.Session) error {
	o := commands{s}
	return o.withClusters(ctx, o.SayWaiting, func(dir string) error {
		names, err := cluster.Names(dir)
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := cluster.Down(ctx, dir, name); err != nil {
				return err
			}
			fmt.Fprintln(o.Out, "removed cluster", name)
		}
		return nil
	})
}

func newClusterKubeconfig(o commands) *cobra.Command {
	var name string
	c := &cobra.Command{
		Use:     "kubeconfig",
		Short:   "Print the path of the administrator's kubeconfig",
		Example: "  export KUBECONFIG=$(slipway cluster kubeconfig)",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			s, err := o.cluster(name)
			if err != nil {
				return err
			}
			if _, err := os.Stat(s.Kubeconfig()); err != nil {
				return fmt.Errorf("cluster %s has no kubeconfig yet: `%s` finishes it: %w", name, commandFor("up", name), err)
			}
			_, err = fmt.Fprintln(o.Out, s.Kubeconfig())
			return err
		},
	}
	return nameFlag(c, &name)
}

func newClusterStatus(o commands) *cobra.Command {
	var name string
	c := &cobra.Command{
		Use:   "status",
		Short: "Print what a cluster consists of, and whether it runs",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := o.cluster(name)
			if err != nil {
				return err
			}
			status := s.Status(c.Context())
			if o.JSON {
				return status.JSON(o.Out)
			}
			return status.Text(o.Out)
		},
	}
	return nameFlag(c, &name)
}

// cluster reads the state of a cluster of the tree.
func (o commands) cluster(name string) (*cluster.State, error) {
	root, err := project.FindRoot(o.Dir)
	if err != nil {
		return nil, err
	}
	s, err := cluster.Load(filepath.Join(root, filepath.FromSlash(Folder)), name)
	if errors.Is(err, cluster.ErrNone) {
		return nil, fmt.Errorf("%w: `%s` makes it", err, commandFor("up", name))
	}
	return s, clusterError(err)
}
