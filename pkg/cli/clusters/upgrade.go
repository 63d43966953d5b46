package clusters

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"slipway.build/pkg/cli/session"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/prove/cluster"
)

func newClusterUpgrade(o commands) *cobra.Command {
	var request cluster.UpgradeOptions
	c := &cobra.Command{
		Use:   "upgrade --to FOLDER",
		Short: "Take a running cluster to another release",
		Long: `upgrade takes a running cluster to the release in a folder, by the kubeadm of that release: the control plane first, then node by
node the kubelet and the container runtime. If there are several nodes, each is drained meanwhile.

Kubernetes allows another patch of the same minor version, in either direction, and the next minor version.

An upgrade that was interrupted goes on when the command is repeated.`,
		Example: "  sudo slipway cluster upgrade --to ../next/_output/release-tars",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case request.Tarballs == "":
				return badrequest.Mark(errors.New("--to names the folder with the tarballs of the release to upgrade to"))
			case request.Wait < time.Second:
				return badrequest.Mark(fmt.Errorf("--wait=%v: want a second or more", request.Wait))
			}
			return o.clusterUpgrade(c.Context(), request)
		},
	}
	c.Flags().StringVar(&request.Tarballs, "to", "", "the folder with the tarballs of the release to upgrade to")
	c.Flags().BoolVar(&request.Force, "force", false, "also remove Pods that no controller makes again")
	c.Flags().DurationVar(&request.Wait, "wait", cluster.DefaultWait, "how long to wait for each part to become ready")
	return nameFlag(c, &request.Name)
}

func (o commands) clusterUpgrade(ctx context.Context, request cluster.UpgradeOptions) error {
	var err error
	if request.Tarballs, err = filepath.Abs(request.Tarballs); err != nil {
		return err
	}
	if _, err := o.cluster(request.Name); err != nil {
		return err
	}
	return o.withClusters(ctx, o.SayWaiting, func(dir string) error {
		request.Dir = dir
		return o.clusterUpgradeLocked(ctx, request)
	})
}

func (o commands) clusterUpgradeLocked(ctx context.Context, request cluster.UpgradeOptions) error {
	var s *cluster.State
	began, shown, err := o.showing(func(show func(action.Event)) (err error) {
		request.Events = show
		s, err = cluster.Upgrade(ctx, request)
		return err
	})
	switch {
	case err != nil && began:
		fmt.Fprintf(o.Err, "slipway: `%s --to %s` goes on where this one stopped\n",
			commandFor("upgrade", request.Name), session.Quote(request.Tarballs))
		if shown {
			return session.ShownError{Err: err}
		}
		return err
	case err != nil:
		return clusterError(err)
	case o.JSON:
		return nil
	case !began:
		_, err = fmt.Fprintf(o.Out, "Cluster %s is of this release already, Kubernetes %s\n", s.Name, s.Version)
	default:
		_, err = fmt.Fprintf(o.Out, "Cluster %s is upgraded to Kubernetes %s\n", s.Name, s.Version)
	}
	return err
}
