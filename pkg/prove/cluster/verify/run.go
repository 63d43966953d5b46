package verify

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"slipway.build/pkg/mechanism/report"
	"slipway.build/pkg/prove/cluster"
)

// Options say what to run.
type Options struct {
	Checks    []Check
	Limit     time.Duration       // for each check, instead of its own; zero keeps that
	KeepGoing bool                // run checks even if a component that they need does not run
	Each      func(report.Result) // receives each result as it comes, one at a time; may be nil
}

// A Report has the results of the checks.
type Report struct {
	Cluster string         `json:"cluster"`
	Version string         `json:"version"`
	Seconds float64        `json:"seconds"`
	Results report.Results `json:"checks"`
}

// Summary returns the last line of the table.
func (r Report) Summary() string { return r.Results.Summary("checks", r.took()) }

// JUnit writes a report as JUnit's XML, with a suite for each group.
func (r Report) JUnit(w io.Writer) error {
	return r.Results.JUnit(w, "slipway cluster verify "+r.Version, "cluster", r.took())
}

func (r Report) took() time.Duration { return time.Duration(r.Seconds * float64(time.Second)) }

// NewTable returns a table for the results of checks.
func NewTable(w io.Writer, checks []Check, color bool) *report.Table {
	var planned report.Results
	for _, c := range checks {
		planned = append(planned, report.Result{Group: c.Group, Name: c.Name})
	}
	return report.NewTable(w, planned, color)
}

// maxParallel is how many checks run at once. They mostly wait, for example for containers to start.
const maxParallel = 6

// Run runs checks of a cluster. It returns the error of ctx if that ends before all checks have run, and no error if checks fail.
func Run(ctx context.Context, s *cluster.State, o Options) (Report, error) {
	t, err := open(s)
	if err != nil {
		return Report{}, err
	}
	try := t.try
	if s.ControlPlaneOnly {
		o.Checks, try = withoutNodes(o.Checks, try)
	} else if missing := s.LacksAddons(); len(missing) > 0 {
		o.Checks, try = withoutAddons(o.Checks, try, missing)
	}
	r, err := run(ctx, o, try)
	r.Cluster, r.Version = s.Name, s.Version
	return r, err
}

// A tryFunc runs one check. It returns why the check failed, and details: what explains the failure, or what a check that passed has
// measured.
type tryFunc func(context.Context, Check) (details string, err error)

// A runner runs checks and collects their results.
type runner struct {
	Options
	try tryFunc

	mu      sync.Mutex
	results map[string]report.Result // by GROUP/NAME
}

func run(ctx context.Context, o Options, try tryFunc) (Report, error) {
	start := time.Now()
	r := &runner{Options: o, try: try, results: map[string]report.Result{}}
	for _, stage := range stages(o.Checks) {
		r.parallel(ctx, stage)
	}
	all := Report{Seconds: time.Since(start).Seconds()}
	for _, c := range o.Checks {
		if result, ok := r.results[c.String()]; ok {
			all.Results = append(all.Results, result)
		}
	}
	return all, ctx.Err()
}

// stages returns the checks in the order in which they run: those of a stage in parallel. Of the components, the API server comes
// before those that can only be asked through it.
func stages(checks []Check) [][]Check {
	var first, second, long, short []Check
	var alone [][]Check
	for _, c := range checks {
		switch {
		case c.Group == components && c.Needs == nil:
			first = append(first, c)
		case c.Group == components:
			second = append(second, c)
		case c.Alone:
			alone = append(alone, []Check{c})
		case c.Long:
			long = append(long, c)
		default:
			short = append(short, c)
		}
	}
	return append([][]Check{first, second, append(long, short...)}, alone...)
}

// parallel runs checks at the same time.
func (r *runner) parallel(ctx context.Context, checks []Check) {
	var running sync.WaitGroup
	free := make(chan struct{}, maxParallel)
	for _, c := range checks {
		free <- struct{}{}
		running.Go(func() { defer func() { <-free }(); r.one(ctx, c) })
	}
	running.Wait()
}

func (r *runner) one(ctx context.Context, c Check) {
	if ctx.Err() != nil {
		return
	}
	result := r.result(ctx, c)
	if ctx.Err() != nil {
		return // the interruption is not the check's failure
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.results[c.String()] = result
	if r.Each != nil {
		r.Each(result)
	}
}

// result runs one check within its limit, unless a component that it needs does not run.
func (r *runner) result(ctx context.Context, c Check) report.Result {
	result := report.Result{Group: c.Group, Name: c.Name, Outcome: report.Passed}
	if down := r.down(c); down != "" {
		result.Outcome, result.Message = report.Failed, "not tried: "+down+" does not run, see "+components+"/"+down
		return result
	}
	limit := cmp.Or(r.Limit, c.Limit, defaultLimit)
	limited, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not done after %v", limit))
	defer cancel()
	start := time.Now()
	details, err := r.try(limited, c)
	result.Seconds = time.Since(start).Seconds()
	if err == nil {
		result.Message = details
		return result
	}
	result.Outcome, result.Message, result.Details = report.Failed, strings.TrimSpace(err.Error()), details
	var why skip
	switch {
	case !errors.As(err, &why):
	case c.Skips:
		result.Outcome, result.Details = report.Skipped, ""
	default:
		result.Message = "skipped, which this check must not be: " + result.Message
	}
	return result
}

// down returns the first component that a check needs and that has failed, or nothing.
func (r *runner) down(c Check) string {
	if r.KeepGoing {
		return ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range c.Needs {
		if r.results[components+"/"+name].Outcome == report.Failed {
			return name
		}
	}
	return ""
}

// try runs a check in a namespace of its own, and cleans up after it. Checks of components run in theirs, because a namespace can only be
// created with them.
func (t *target) try(ctx context.Context, c Check) (details string, err error) {
	e := &env{target: t, ctx: ctx, namespace: "kube-system"}
	err = attempt(func() {
		if c.Group != components {
			e.namespace = "verify-" + c.Name + "-" + strings.ToLower(rand.Text()[:5])
			e.begin()
		}
		c.run(e)
	})
	var why skip
	switch {
	case err == nil:
		details = e.message
	case !errors.As(err, &why):
		details = e.explain(ctx, c)
	}
	if left := e.cleanUp(); left != nil {
		if errors.As(err, &why) { // a check is not skipped that leaves something behind
			err = nil
		}
		err = errors.Join(err, left)
	}
	return details, err
}
