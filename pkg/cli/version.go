package cli

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"slipway.build/pkg/tree/catalog"
)

func newVersion(o commands) *cobra.Command {
	var status bool
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the version that a release built now would have",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			p, err := o.Open(c.Context())
			if err != nil {
				return err
			}
			s := p.Stamp
			if status {
				status, err := p.WorkspaceStatus(c.Context())
				if err == nil {
					_, err = o.Out.Write(status)
				}
				return err
			}
			if o.JSON {
				return json.NewEncoder(o.Out).Encode(map[string]any{
					"gitVersion": s.Version, "gitCommit": s.Commit, "gitTreeState": s.TreeState, "major": s.Major, "minor": s.Minor,
					"buildDate": s.Date.UTC().Format(time.RFC3339), "imageTag": s.ImageTag(), "goVersion": p.Catalog.Go.Version,
					"supportedMinors": catalog.SupportedMinors(),
				})
			}
			fmt.Fprintln(o.Out, s.Version)
			if why := p.DirtyReason(); why != "" {
				o.Say("the tree is dirty: " + why)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&status, "workspace-status", false, "print what Bazel needs to know about the tree, for its --workspace_status_command")
	return c
}
