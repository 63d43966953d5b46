package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"slipway.build/pkg/build/plan"
	"slipway.build/pkg/mechanism/atomicfile"
	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/prove/cluster"
	"slipway.build/pkg/prove/cluster/verify"
)

// A verification is what slipway cluster verify is asked for.
type verification struct {
	name  string
	only  []string
	limit time.Duration
	junit string
	list  bool
}

func newClusterVerify(o *options) *cobra.Command {
	var v verification
	c := &cobra.Command{
		Use:   "verify",
		Short: "Look whether a cluster works",
		Long: `verify makes checks of a cluster that is up: of its API, scheduler, controllers, kubelets, Services and metrics. Each does what a
user would do, with the release's kubectl, in a namespace of its own, and has a row in a table. For rows that failed it shows
what explains them: Pods, events, logs.

Some checks disturb what else runs in the cluster for a minute: they stop a kubelet or a controller manager, taint nodes, and
restart kube-proxy in each of its modes. Only the check of a mode that the kernel does not have is ever skipped.

It takes root, and exits with 1 if a row failed.`,
		Example: "  sudo slipway cluster verify\n  sudo slipway cluster verify --only scheduler,services/dns --junit verify.xml",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			checks, err := verify.Select(v.only)
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
			return o.clusterVerify(c.Context(), v, checks)
		},
	}
	c.Flags().StringSliceVar(&v.only, "only", nil, "make only these checks, or those of these groups")
	c.Flags().DurationVar(&v.limit, "timeout", 0, "how long each check may take (default what it needs on a busy machine)")
	c.Flags().StringVar(&v.junit, "junit", "", "write a report as JUnit's XML to this file, too")
	c.Flags().BoolVar(&v.list, "list", false, "list the checks and make none")
	return nameFlag(c, &v.name)
}

func (o *options) clusterVerify(ctx context.Context, v verification, checks []verify.Check) error {
	s, err := o.cluster(v.name)
	if err != nil {
		return err
	}
	if os.Geteuid() != 0 && !s.ControlPlaneOnly {
		return errors.New("a cluster with nodes belongs to root: run the command with sudo")
	}
	var r verify.Report
	root, err := plan.FindRoot(o.dir)
	if err != nil {
		return err
	}
	// Nobody shall remove the cluster meanwhile, or disturb it in the same ways.
	err = o.withClusters(ctx, root, func(string) error {
		r, err = o.makeChecks(ctx, s, v, checks)
		return err
	})
	if v.junit != "" && len(r.Rows) > 0 {
		err = errors.Join(err, atomicfile.Write(v.junit, 0o644, r.JUnit))
	}
	if err != nil {
		return err
	}
	if n := r.Count(verify.Failed); n > 0 {
		return shownError{fmt.Errorf("%d checks failed", n)}
	}
	return nil
}

func (o *options) makeChecks(ctx context.Context, s *cluster.State, v verification, checks []verify.Check) (verify.Report, error) {
	options := verify.Options{Checks: checks, Limit: v.limit}
	if o.json {
		r, err := verify.Run(ctx, s, options)
		if err != nil {
			return r, err
		}
		return r, r.JSON(o.Out)
	}
	table := verify.NewTable(o.Out, checks, o.Out == os.Stdout && term.IsTerminal(int(os.Stdout.Fd())) && o.Getenv("NO_COLOR") == "")
	options.Each = table.Row
	r, err := verify.Run(ctx, s, options)
	if err != nil && len(r.Rows) == 0 {
		return r, err
	}
	return r, errors.Join(err, table.End(r))
}
