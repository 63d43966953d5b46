package clusters

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"slipway.build/pkg/prove/cluster"
)

func newClusterLoad(o commands) *cobra.Command {
	var name string
	c := &cobra.Command{
		Use:   "load ARCHIVE...",
		Short: "Push images from archives to a cluster's registry",
		Long: `load pushes the images in archives, as "docker save" and "make" write them, to the registry of a cluster. Pods pull them from
there by the names that they have in the archive, whichever registry these name.`,
		Example: "  docker save --output=web.tar example.com/web:1\n  sudo slipway cluster load web.tar\n" +
			"  kubectl create deployment web --image=example.com/web:1",
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, archives []string) error {
			return o.onCluster(c.Context(), name, o.cluster, o.SayWaiting, func(s *cluster.State) error {
				return o.clusterLoad(c.Context(), s, archives)
			})
		},
	}
	return nameFlag(c, &name)
}

func (o commands) clusterLoad(ctx context.Context, s *cluster.State, archives []string) error {
	for _, archive := range archives {
		names, err := s.Load(ctx, archive)
		if err != nil {
			return clusterError(err)
		}
		for _, name := range names {
			fmt.Fprintln(o.Out, name)
		}
	}
	return nil
}
