package clusters

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"slipway.build/pkg/cli/session"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/prove/cluster"
)

func newClusterAdd(o commands) *cobra.Command {
	var name, from string
	c := &cobra.Command{
		Use:   "add ADDON...",
		Short: "Install addons in a cluster",
		Long: `add installs addons in a cluster that is up, and waits until they run. Addons are folders of release/addons: "slipway release
--addons" packs them, and the images that they need, into a tarball, which add compares with release.json and with the version of
the cluster. An addon that the cluster has already is changed to that of the tarball.

With the addon storage, a claim without a class gets a volume on the disk of the node that its Pod is placed on.`,
		Example: "  slipway release --quick --addons\n  sudo slipway cluster up\n  sudo slipway cluster add storage",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, addons []string) error {
			return o.onCluster(c.Context(), name, o.cluster, o.SayWaiting, func(s *cluster.State) error {
				return o.clusterAdd(c.Context(), s, from, addons)
			})
		},
	}
	c.Flags().StringVar(&from, "from", "", "the folder with the tarballs (default that of the cluster's release)")
	return nameFlag(c, &name)
}

func (o commands) clusterAdd(ctx context.Context, s *cluster.State, from string, addons []string) error {
	_, shown, err := o.showing(func(show func(action.Event)) error { return s.Add(ctx, from, addons, show) })
	switch {
	case shown && badrequest.Is(err): // an unknown addon
		return session.ShownError{Err: session.CommandError{Err: err, Code: 2}}
	case shown:
		return session.ShownError{Err: err}
	case err != nil:
		return clusterError(err)
	case o.JSON:
		return nil
	}
	_, err = fmt.Fprintf(o.Out, "Cluster %s has %s.\n", s.Name, strings.Join(addons, ", "))
	return err
}
