package clusters

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"slipway.build/pkg/make/project"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/prove/cluster"
	"slipway.build/pkg/prove/cluster/conformance"
)

// nodeTests is the folder of the logs of a run, relative to the root.
const nodeTests = project.Output + "/e2e-node"

// slowSpecs are the specs that upstream's make test-e2e-node leaves out, too.
var slowSpecs = []string{`\[Slow\]`, `\[Flaky\]`, `\[Serial\]`}

func newTestNode(o commands) *cobra.Command {
	run := conformanceRun{name: "e2e-node"}
	var keep bool
	c := &cobra.Command{
		Use:   "test-e2e-node",
		Short: "Run upstream's node conformance specs against the release's kubelet and container runtime",
		Long: `test-e2e-node runs the [NodeConformance] specs of the release's own e2e_node.test: on a node of this machine with the release's
container runtime and without Kubernetes, on which they start the release's kubelet. Images come from the release's test tarball,
as for "slipway cluster conformance". The command prints each spec as it ends, then those that did not pass, and why.

--focus and --skip choose among these specs, and can be repeated. Unless --skip says otherwise, slow and flaky specs and those
that must run alone are left out, as upstream does. With --procs, specs run side by side. The node is removed at
the end. Logs of the specs and of the kubelet are in _output/e2e-node.

It needs root. It exits with 1 if a spec failed or did not run, and with 2 if none was chosen.`,
		Example: "  sudo slipway test-e2e-node --focus 'Probing container' --junit node.xml",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := run.check(); err != nil {
				return badrequest.Mark(err)
			}
			return o.testNode(c.Context(), run, keep)
		},
	}
	run.flags(c, nil, slowSpecs, "the folder with the tarballs (default the tree's _output/release-tars)")
	c.Flags().BoolVar(&keep, "keep", false, "do not remove the node at the end")
	return c
}

func (o commands) testNode(ctx context.Context, run conformanceRun, keep bool) error {
	root, err := project.FindRoot(o.Dir)
	if err != nil {
		return err
	}
	run.Tarballs = cmp.Or(run.Tarballs, filepath.Join(root, filepath.FromSlash(project.Tars)))
	request := cluster.Options{
		Dir: filepath.Join(root, filepath.FromSlash(Folder)), Name: run.name, Tarballs: run.Tarballs, Nodes: 1, RuntimeOnly: true,
		Events: func(action.Event) {},
	}
	if err := request.Require(); err != nil {
		return clusterError(err)
	}
	o.showSpecs(&run)
	run.Logs = filepath.Join(root, filepath.FromSlash(nodeTests))
	var r conformance.Report
	err = o.withClusters(ctx, o.NoteWaiting, func(dir string) error {
		run.Say("start a node")
		s, err := cluster.Up(ctx, request)
		if err == nil {
			r, err = conformance.RunNode(ctx, s, run.Options)
		}
		switch {
		case s == nil:
			return err
		case keep:
			run.Say(fmt.Sprintf("the node is still there: `%s` opens a shell in it, and `%s` removes it",
				commandFor("shell", run.name)+" "+run.name+"-1", commandFor("down", run.name)))
			return err
		}
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		return errors.Join(err, cluster.Down(limited, dir, run.name))
	})
	if _, missing := os.Stat(run.Logs); err != nil && missing == nil {
		run.Say("logs are in " + run.Logs)
	}
	return o.conformanceResult(run, r, err)
}
