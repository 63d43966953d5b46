package clusters

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"slipway.build/pkg/cli/session"
	"slipway.build/pkg/make/project"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/prove/cluster"
)

// binaries is the folder with the programs that make has compiled for this machine, relative to the root.
const binaries = project.Output + "/bin"

func newClusterReplace(o commands) *cobra.Command {
	var name string
	var request cluster.ReplaceOptions
	c := &cobra.Command{
		Use:   "replace COMPONENT...",
		Short: "Replace programs of a running cluster by those that make has compiled",
		Long: `replace replaces programs of a cluster that runs by those in _output/bin, on all nodes, and waits until they are ready:

  kubelet, containerd           the file in each node is replaced, and the program restarted; containers run on
  kube-apiserver, kube-controller-manager, kube-scheduler
                                an image of the release with the program in a layer above it; the static Pod runs that
  kube-proxy, coredns, metrics-server, cloud-controller-manager, traefik
                                the same for the DaemonSet or Deployment

In a cluster without nodes, the process is started again with the same flags. If a program does not become ready, the earlier
one is put back, and the error has the last lines of its log. --back goes back to the programs that the cluster was made with.
"slipway cluster status" lists what was replaced.`,
		Example: "  make WHAT=cmd/kube-scheduler\n  sudo slipway cluster replace kube-scheduler\n" +
			"  sudo slipway cluster replace --back kube-scheduler",
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if request.Back && c.Flags().Changed("bin") {
				return badrequest.Mark(errors.New("--back and --bin: the cluster goes back to what it was made with"))
			}
			if request.Wait < time.Second {
				return badrequest.Mark(fmt.Errorf("--wait=%v: want a second or more", request.Wait))
			}
			request.Components = args
			return o.clusterReplace(c.Context(), name, request)
		},
	}
	c.Flags().StringVar(&request.Dir, "bin", "", "the folder with the programs (default the tree's "+binaries+")")
	c.Flags().BoolVar(&request.Back, "back", false, "go back to the programs that the cluster was made with")
	c.Flags().DurationVar(&request.Wait, "wait", time.Minute, "how long to wait for each program to become ready")
	return nameFlag(c, &name)
}

func (o commands) clusterReplace(ctx context.Context, name string, request cluster.ReplaceOptions) error {
	root, err := project.FindRoot(o.Dir)
	if err != nil {
		return err
	}
	request.Dir = cmp.Or(request.Dir, filepath.Join(root, filepath.FromSlash(binaries)))
	return o.onCluster(ctx, name, o.ownCluster, o.SayWaiting, func(s *cluster.State) error {
		_, shown, err := o.showing(func(show func(action.Event)) error {
			request.Events = show
			return s.Replace(ctx, request)
		})
		if err = clusterError(err); err == nil || !shown {
			return err
		}
		if missing, ok := errors.AsType[cluster.NoProgramError](err); ok {
			o.Say(fmt.Sprintf("make %s compiles it into %s", missing.Name, binaries))
		}
		return session.ShownError{Err: err}
	})
}
