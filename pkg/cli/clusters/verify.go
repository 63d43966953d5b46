package clusters

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"slipway.build/pkg/cli/session"
	"slipway.build/pkg/make/project"
	"slipway.build/pkg/mechanism/atomicfile"
	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/mechanism/report"
	"slipway.build/pkg/prove/cluster"
	"slipway.build/pkg/prove/cluster/verify"
)

// A verification holds the flags of slipway cluster verify.
type verification struct {
	name  string
	only  []string
	limit time.Duration
	junit string
	list  bool
	keep  bool // keep going if a component does not run
}

func newClusterVerify(o commands) *cobra.Command {
	var v verification
	c := &cobra.Command{
		Use:   "verify",
		Short: "Check that a cluster works",
		Long: `verify checks a cluster that is up: its components, API, scheduler, controllers, kubelets, Services, storage, metrics, scale. Each
check does what a user would do, with the release's kubectl, in a namespace of its own, and has a row in a table. Below the table,
Pods, events and logs explain the rows that failed.

The components come first. Checks that need a component that does not run fail at once, unless --keep-going is given. A check
that does not apply to this cluster is skipped, and says what it needs: a second node, hollow nodes, a feature of the kernel. On a
control plane without nodes, the checks of the API and some of the controllers are made.

Programs in the tree's folder release/checks are checks, too, in the group own. Each gets KUBECONFIG, a NAMESPACE of its own, and kubectl in
PATH. It passes if it exits with 0, and is skipped if it exits with 77; what it prints is shown.

Some checks disturb what else runs in the cluster for a minute: they stop a kubelet or a controller manager, taint nodes, and
restart kube-proxy in each of its modes. They undo this, even after Ctrl-C.

It needs root for a cluster with nodes, and exits with 1 if a check failed.`,
		Example: "  sudo slipway cluster verify\n  sudo slipway cluster verify --only scheduler,services/dns --junit verify.xml",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			root, err := project.FindRoot(o.Dir)
			if err != nil {
				return err
			}
			own, err := verify.Own(filepath.Join(root, "release", "checks"))
			if err != nil {
				return err
			}
			checks, err := verify.Select(append(verify.All(), own...), v.only)
			if err != nil {
				return badrequest.Mark(fmt.Errorf("--only: %w: see slipway cluster verify --list", err))
			}
			if v.limit < 0 {
				return badrequest.Mark(fmt.Errorf("--timeout=%v: want more than 0", v.limit))
			}
			if v.list {
				for _, check := range checks {
					fmt.Fprintf(o.Out, "%s/%s\n", check.Group, check.Name)
				}
				return nil
			}
			if !v.keep {
				checks = verify.WithComponents(checks)
			}
			return o.clusterVerify(c.Context(), v, checks)
		},
	}
	c.Flags().StringSliceVar(&v.only, "only", nil, "run only these checks or groups, and the checks of the components that they need")
	c.Flags().BoolVar(&v.keep, "keep-going", false, "run checks even if a component that they need does not run")
	c.Flags().DurationVar(&v.limit, "timeout", 0, "how long each check may take (default what it needs on a busy machine)")
	c.Flags().StringVar(&v.junit, "junit", "", "also write a JUnit XML report to this file")
	c.Flags().BoolVar(&v.list, "list", false, "list the checks without running them")
	return nameFlag(c, &v.name)
}

func (o commands) clusterVerify(ctx context.Context, v verification, checks []verify.Check) error {
	var r verify.Report
	defer context.AfterFunc(ctx, func() { fmt.Fprintln(o.Err, "slipway: interrupted: undoing what checks have changed in the cluster") })()
	err := o.onCluster(ctx, v.name, o.ownCluster, o.NoteWaiting, func(s *cluster.State) (err error) {
		r, err = o.makeChecks(ctx, s, v, checks)
		return err
	})
	if v.junit != "" && len(r.Results) > 0 {
		err = errors.Join(err, atomicfile.Write(v.junit, 0o644, r.JUnit))
	}
	if err != nil {
		return clusterError(err)
	}
	if n := r.Results.Count(report.Failed); n > 0 {
		return session.ShownError{Err: fmt.Errorf("%d checks failed", n)}
	}
	return nil
}

func (o commands) makeChecks(ctx context.Context, s *cluster.State, v verification, checks []verify.Check) (verify.Report, error) {
	options := verify.Options{Checks: checks, Limit: v.limit, KeepGoing: v.keep}
	if o.JSON {
		r, err := verify.Run(ctx, s, options)
		if err != nil {
			return r, err
		}
		return r, json.NewEncoder(o.Out).Encode(r)
	}
	table := verify.NewTable(o.Out, checks, o.colors())
	options.Each = table.Write
	r, err := verify.Run(ctx, s, options)
	if err != nil && len(r.Results) == 0 {
		return r, err
	}
	explained := r.Results.Explain(o.Out, report.Failed)
	_, ended := fmt.Fprintf(o.Out, "\n%s\n", r.Summary())
	return r, errors.Join(err, explained, ended)
}
