package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"slipway.build/pkg/mechanism/report"
	"slipway.build/pkg/mechanism/tail"
	"slipway.build/pkg/prove/cluster"
)

// Options say which specs to run, and how.
type Options struct {
	Tarballs string   // the folder with the test tarball; empty means the one that the cluster was made from
	Labels   string   // an expression over labels that a spec must match, as ginkgo reads it; empty means any
	Focus    []string // patterns, one of which the name of a spec must match; none means all of these
	Skip     []string // patterns, none of which it may match
	Procs    int      // how many specs run at once
	Logs     string   // the folder for the logs of RunNode

	Say  func(string)                                // receives what happens before the first spec; not nil
	Each func(result report.Result, done, total int) // receives the result of each spec, one at a time; not nil
}

// Labels of the specs that a conforming cluster, and a conforming node, must pass.
const (
	Conformance     = "Conformance"
	NodeConformance = "NodeConformance"
)

// ErrNoSpecs is the error if no spec was chosen.
var ErrNoSpecs = errors.New("no spec matches")

// Run runs specs of e2e.test. It returns the error of ctx if that ended first, an error if e2e.test could not go on, and none if
// specs failed. The report has every spec that was chosen.
func Run(ctx context.Context, s *cluster.State, o Options) (Report, error) {
	if err := s.RequireNodes(); err != nil {
		return Report{}, err
	}
	tests, images, err := prepare(ctx, s, cluster.ClusterSuite, o)
	if err != nil {
		return Report{}, err
	}
	tmp, err := os.MkdirTemp("", "slipway-conformance-")
	if err != nil {
		return Report{}, err
	}
	defer os.RemoveAll(tmp)
	program, ginkgo, err := tests.Programs()
	if err != nil {
		return Report{}, err
	}
	kubectl, err := s.Kubectl()
	if err != nil {
		return Report{}, err
	}
	suite := clusterSuite(program, ginkgo, tmp, kubectl, s.Kubeconfig(), o.Labels)
	all, err := runner{
		suite: suite, kubectl: kubectl, kubeconfig: s.Kubeconfig(),
		dir: tmp, log: filepath.Join(filepath.Dir(s.Kubeconfig()), "log", suite.title+".log"), options: o,
	}.run(ctx)
	all.Cluster, all.Version, all.Substitutes = s.Name, s.Version, images
	return all, err
}

// prepare unpacks a suite, and pushes the images that its specs run in Pods to the registry of the cluster.
func prepare(ctx context.Context, s *cluster.State, suite string, o Options) (*cluster.Tests, []cluster.TestImage, error) {
	o.Say("unpack the test tarball")
	tests, err := s.UnpackTests(ctx, o.Tarballs, suite)
	if err != nil {
		return nil, nil, err
	}
	o.Say("push its images to the registry of the cluster")
	images, err := tests.Publish(ctx)
	if err != nil {
		return nil, nil, err
	}
	o.Say(fmt.Sprintf("pushed %d images; list the specs", len(images)))
	return tests, images, nil
}

// A suite is one of Kubernetes' test programs. Paths are as that program sees them.
type suite struct {
	title   string   // in JUnit's XML
	program string   // its path
	ginkgo  string   // the path of the program that runs it
	labels  string   // see Options
	flags   []string // of the suite itself: what it tests
	dir     string   // the runner's folder
	enter   []string // what command lines begin with, to run in a node; empty to run here
}

// clusterSuite is e2e.test.
func clusterSuite(program, ginkgo, dir, kubectl, kubeconfig, labels string) suite {
	title := "e2e"
	if labels == Conformance {
		title = "conformance"
	}
	return suite{
		title: title, program: program, ginkgo: ginkgo, labels: labels, dir: dir,
		flags: []string{
			"--provider=skeleton", "--kubeconfig=" + kubeconfig, "--kubectl-path=" + kubectl, "--e2e-output-dir=" + dir,
			"--disable-log-dump",
		},
	}
}

// A runner runs specs.
type runner struct {
	suite               suite
	kubectl, kubeconfig string // empty if there is no cluster
	dir                 string // for reports, temporary
	log                 string // the output of the programs
	options             Options
}

func (r runner) run(ctx context.Context) (Report, error) {
	start := time.Now()
	if err := os.MkdirAll(filepath.Dir(r.log), 0o755); err != nil {
		return Report{}, err
	}
	log, err := os.Create(r.log)
	if err != nil {
		return Report{}, err
	}
	defer log.Close()
	specs, err := r.list(ctx, log)
	if err != nil {
		return Report{}, err
	}
	results := &results{each: r.options.Each, specs: specs, byName: map[string]report.Result{}}
	var failure error
	for _, pass := range passes(r.suite.labels, specs, r.options.Procs) {
		if failure = r.pass(ctx, pass, results, log); failure != nil {
			break
		}
	}
	if failure != nil {
		failure = errors.Join(failure, r.cleanUp(ctx))
	}
	return Report{
		Suite: r.suite.title, Focus: r.options.Focus, Skip: r.options.Skip, Procs: r.options.Procs, Seconds: time.Since(start).Seconds(),
		Log: r.log, Results: results.all(),
	}, failure
}

// A pass is one run of the suite, over a part of the specs.
type pass struct {
	name   string
	filter string // of labels
	procs  int
}

// passes returns the passes: if several specs run at once, the [Serial] ones need a pass of their own.
func passes(labels string, specs []Spec, procs int) []pass {
	if procs == 1 {
		return []pass{{"all", labels, 1}}
	}
	and := func(more string) string {
		if labels == "" {
			return more
		}
		return "(" + labels + ") && " + more
	}
	var all []pass
	if slices.ContainsFunc(specs, func(s Spec) bool { return !s.Serial }) {
		all = append(all, pass{"parallel", and("!Serial"), procs})
	}
	if slices.ContainsFunc(specs, func(s Spec) bool { return s.Serial }) {
		all = append(all, pass{"serial", and("Serial"), 1})
	}
	return all
}

// list asks the suite which specs would run.
func (r runner) list(ctx context.Context, log io.Writer) ([]Spec, error) {
	report, err := r.ginkgo(ctx, log, r.suite.labels, "list", "--dry-run", "--succinct")
	if err != nil {
		return nil, fmt.Errorf("list specs: %w", err)
	}
	specs := report.chosen()
	if len(specs) == 0 {
		return nil, ErrNoSpecs
	}
	return specs, nil
}

// limit is how long ginkgo allows a pass to take. Its default of an hour is not enough for all specs.
const limit = "24h"

// pass runs a part of the specs, and notes their results.
func (r runner) pass(ctx context.Context, p pass, results *results, log io.Writer) error {
	output := &tail.Lines{Each: (&parser{each: results.printed}).line}
	report, err := r.ginkgo(ctx, io.MultiWriter(log, output), p.filter, p.name, "-v", "--timeout="+limit, fmt.Sprintf("--procs=%d", p.procs))
	if report != nil {
		results.reported(report)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if report == nil {
		return err
	}
	if why := report.failure(); err != nil && why != "" {
		return fmt.Errorf("%s: %s: see %s", filepath.Base(r.suite.program), why, r.log)
	}
	return nil // the results say which specs failed
}

// ginkgo runs the suite through ginkgo, with the options' patterns and a filter of labels, and returns its report. The error is ginkgo's,
// which fails if a spec does, or says that there is no report because the suite did not finish.
func (r runner) ginkgo(ctx context.Context, output io.Writer, filter, name string, flags ...string) (*suiteReport, error) {
	flags = append(flags, "--no-color", "--label-filter="+filter, "--output-dir="+r.suite.dir, "--json-report="+name+".json")
	for _, f := range r.options.Focus {
		flags = append(flags, "--focus="+f)
	}
	for _, s := range r.options.Skip {
		flags = append(flags, "--skip="+s)
	}
	err := r.start(ctx, output, r.suite.ginkgo, slices.Concat(flags, []string{r.suite.program, "--"}, r.suite.flags)...)
	report, unreadable := readReport(filepath.Join(r.dir, name+".json"))
	if ctx.Err() == nil && report == nil {
		err = errors.Join(err, fmt.Errorf("%s left no report: %w: see %s", filepath.Base(r.suite.program), unreadable, r.log))
	}
	return report, err
}
