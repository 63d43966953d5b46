package clusters

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"slipway.build/pkg/cli/session"
	"slipway.build/pkg/mechanism/atomicfile"
	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/mechanism/report"
	"slipway.build/pkg/prove/cluster"
	"slipway.build/pkg/prove/cluster/conformance"
)

// A conformanceRun holds the flags of slipway cluster conformance.
type conformanceRun struct {
	name, junit string
	conformance.Options
}

// anyConformance is the default focus, which chooses every conformance spec.
const anyConformance = `\[Conformance\]`

func newClusterConformance(o commands) *cobra.Command {
	var run conformanceRun
	c := &cobra.Command{
		Use:   "conformance",
		Short: "Run upstream's conformance specs against a cluster",
		Long: `conformance runs the [Conformance] specs of the release's own e2e.test against a cluster that is up. Its images come from the
release's test tarball: it pushes them to the cluster's registry under their upstream names. They are substitutes for upstream's
images, and each report lists them. The command prints each spec as it ends, then those that did not pass, and why.

--focus and --skip choose among the conformance specs, and never add others: a spec runs if its name matches one of the patterns
of --focus and none of --skip. Both can be repeated.

Some specs need two nodes, and some disturb what else runs in the cluster. With --procs, specs run side by side; [Serial] specs
run alone afterwards. Ctrl-C ends the run; the summary has what ran until then.

It needs root. It exits with 1 if a spec failed or did not run, and with 2 if none was chosen.`,
		Example: "  sudo slipway cluster up --nodes 2\n  sudo slipway cluster conformance --focus 'sig-network.*Services' --junit " +
			"conformance.xml",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := run.check(); err != nil {
				return badrequest.Mark(err)
			}
			run.Labels = conformance.Conformance
			return o.clusterSpecs(c.Context(), run)
		},
	}
	run.flags(c, []string{anyConformance}, nil, testTarball)
	return nameFlag(c, &run.name)
}

const testTarball = "the folder with the test tarball (default the one that the cluster was made from)"

func newClusterE2E(o commands) *cobra.Command {
	var run conformanceRun
	c := &cobra.Command{
		Use:   "e2e",
		Short: "Run any of upstream's end-to-end specs against a cluster",
		Long: `e2e runs specs of the release's own e2e.test against a cluster that is up, those that are no conformance specs, too. It is
"slipway cluster conformance" otherwise, with the same images: a spec that needs another one fails. A spec that needs what the
cluster does not have, such as a cloud, skips itself. There are thousands, so the command wants --focus or --label-filter.

--label-filter is an expression over the labels in a spec's name, as ginkgo reads it: 'sig-storage && !Slow'. Among these specs, one
runs if its name matches one of the patterns of --focus and none of --skip. Both can be repeated. Specs with the label Disruptive
may leave the cluster broken.

It needs root. It exits with 1 if a spec failed or did not run, and with 2 if none was chosen.`,
		Example: "  sudo slipway cluster e2e --focus 'sig-cli.*quota'\n" +
			"  sudo slipway cluster e2e --label-filter 'sig-network && !Disruptive && !Slow' --procs 2",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			err := run.check()
			if len(run.Focus) == 0 && run.Labels == "" {
				err = errors.New("say which specs: --focus PATTERN or --label-filter EXPRESSION")
			}
			if err != nil {
				return badrequest.Mark(err)
			}
			return o.clusterSpecs(c.Context(), run)
		},
	}
	run.flags(c, nil, nil, testTarball)
	c.Flags().StringVar(&run.Labels, "label-filter", "", "run only specs whose labels match this expression")
	return nameFlag(c, &run.name)
}

// flags adds the flags that choose specs.
func (run *conformanceRun) flags(c *cobra.Command, focus, skip []string, from string) {
	c.Flags().StringArrayVar(&run.Focus, "focus", focus, "run only specs whose names match this pattern")
	c.Flags().StringArrayVar(&run.Skip, "skip", skip, "leave out specs whose names match this pattern")
	c.Flags().IntVar(&run.Procs, "procs", 1, "how many specs run at once")
	c.Flags().StringVar(&run.Tarballs, "from", "", from)
	c.Flags().StringVar(&run.junit, "junit", "", "also write a JUnit XML report to this file")
}

// check returns an error if the flags cannot choose specs.
func (run *conformanceRun) check() error {
	for flag, patterns := range map[string][]string{"focus": run.Focus, "skip": run.Skip} {
		for _, pattern := range patterns {
			if _, err := regexp.Compile(pattern); err != nil {
				return fmt.Errorf("--%s: %w", flag, err)
			}
		}
	}
	if run.Procs < 1 || run.Procs > 100 {
		return fmt.Errorf("--procs=%d: want 1 to 100", run.Procs)
	}
	return nil
}

func (o commands) clusterSpecs(ctx context.Context, run conformanceRun) error {
	o.showSpecs(&run)
	var r conformance.Report
	err := o.onCluster(ctx, run.name, o.ownCluster, o.NoteWaiting, func(s *cluster.State) (err error) {
		r, err = conformance.Run(ctx, s, run.Options)
		return err
	})
	return o.conformanceResult(run, r, err)
}

// showSpecs has the specs of a run printed as they end.
func (o commands) showSpecs(run *conformanceRun) {
	run.Say = o.Say
	run.Each = func(result report.Result, done, total int) {
		if !o.JSON {
			report.WriteCounted(o.Out, result, done, total, o.colors())
		}
	}
}

// colors reports whether output has colors.
func (o commands) colors() bool {
	return o.Out == os.Stdout && term.IsTerminal(int(os.Stdout.Fd())) && o.Getenv("NO_COLOR") == ""
}

// conformanceResult writes the report of a run, and returns the error of the command.
func (o commands) conformanceResult(run conformanceRun, r conformance.Report, err error) error {
	if errors.Is(err, conformance.ErrNoSpecs) {
		return badrequest.Mark(fmt.Errorf("--focus %q, --skip %q: %w", run.Focus, run.Skip, err))
	}
	if len(r.Results) > 0 {
		err = errors.Join(err, o.reportConformance(r, run.junit))
	}
	if err != nil {
		return clusterError(err)
	}
	if n := r.NotPassed(); n > 0 {
		return session.ShownError{Err: fmt.Errorf("%d specs did not pass", n)}
	}
	return nil
}

func (o commands) reportConformance(r conformance.Report, junit string) error {
	var err error
	if junit != "" {
		err = atomicfile.Write(junit, 0o644, r.JUnit)
	}
	if o.JSON {
		return errors.Join(err, json.NewEncoder(o.Out).Encode(r))
	}
	return errors.Join(err, r.Text(o.Out))
}
