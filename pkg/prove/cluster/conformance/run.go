package conformance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"slipway.build/pkg/mechanism/report"
	"slipway.build/pkg/prove/cluster"
)

// Options say which specs to run, and how.
type Options struct {
	Tarballs string   // the folder with the test tarball; empty means the one that the cluster was made from
	Focus    []string // patterns, one of which the name of a spec must match; none means all conformance specs
	Skip     []string // patterns, none of which it may match
	Procs    int      // how many specs run at once
	Logs     string   // the folder for the logs of RunNode

	Say  func(string)                                // receives what happens before the first spec; not nil
	Each func(result report.Result, done, total int) // receives the result of each spec, one at a time; not nil
}

// ErrNoSpecs is the error if no conformance spec was chosen.
var ErrNoSpecs = errors.New("no conformance spec matches")

// Run runs conformance specs. It returns the error of ctx if that ended first, an error if e2e.test could not go on, and none if
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
	all, err := runner{
		suite: clusterSuite(program, tmp, kubectl, s.Kubeconfig()), ginkgo: ginkgo, kubectl: kubectl, kubeconfig: s.Kubeconfig(),
		dir: tmp, log: logOf(s, "conformance"), options: o,
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

func logOf(s *cluster.State, name string) string {
	return filepath.Join(filepath.Dir(s.Kubeconfig()), "log", name+".log")
}

// A suite is one of Kubernetes' test programs.
type suite struct {
	title   string   // in JUnit's XML
	program string   // as the command line names it
	label   string   // of its specs
	flags   []string // by which it finds what it tests
	dir     string   // the runner's folder as the program sees it
	enter   []string // the command line before those of programs; empty if they run here
}

// clusterSuite is e2e.test.
func clusterSuite(program, dir, kubectl, kubeconfig string) suite {
	return suite{
		title: "conformance", program: program, label: "Conformance", dir: dir,
		flags: []string{
			"--provider=skeleton", "--kubeconfig=" + kubeconfig, "--kubectl-path=" + kubectl, "--e2e-output-dir=" + dir,
			"--disable-log-dump",
		},
	}
}

// A runner runs specs.
type runner struct {
	suite               suite
	ginkgo              string // as the command line names it
	kubectl, kubeconfig string // empty if there is no cluster
	dir                 string // for reports, temporary
	log                 string // the output of the programs
	options             Options
}

func (r runner) run(ctx context.Context) (Report, error) {
	start := time.Now()
	log, err := openLog(r.log)
	if err != nil {
		return Report{}, err
	}
	defer log.Close()
	specs, err := r.list(ctx, log)
	if err != nil {
		return Report{}, err
	}
	results := newResults(specs, r.options.Each)
	var failure error
	for _, pass := range passes(r.suite.label, specs, r.options.Procs) {
		if failure = r.pass(ctx, pass, results, log); failure != nil {
			break
		}
	}
	if failure != nil {
		failure = errors.Join(failure, r.cleanUp(ctx))
	}
	o := r.options
	return Report{
		Suite: r.suite.title, Focus: o.Focus, Skip: o.Skip, Procs: o.Procs, Seconds: time.Since(start).Seconds(), Log: r.log,
		Results: results.all(),
	}, failure
}

func openLog(name string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return nil, err
	}
	return os.Create(name)
}

// A pass is one run of e2e.test, over a part of the specs.
type pass struct {
	name   string
	filter string // of labels
	procs  int
}

// passes splits the specs: if several run at once, the [Serial] ones need a pass of their own.
func passes(label string, specs []Spec, procs int) []pass {
	serial := 0
	for _, s := range specs {
		if s.Serial {
			serial++
		}
	}
	switch {
	case procs == 1:
		return []pass{{"all", label, 1}}
	case serial == 0:
		return []pass{{"parallel", label + " && !Serial", procs}}
	case serial == len(specs):
		return []pass{{"serial", label + " && Serial", 1}}
	}
	return []pass{{"parallel", label + " && !Serial", procs}, {"serial", label + " && Serial", 1}}
}

// list asks the suite which specs would run.
func (r runner) list(ctx context.Context, log *os.File) ([]Spec, error) {
	const name = "list.json"
	args := append(r.choice(r.suite.label), "--ginkgo.dry-run", "--ginkgo.succinct", "--ginkgo.no-color", "--ginkgo.json-report="+r.seen(name))
	if err := r.start(ctx, log, nil, r.suite.program, append(args, r.suite.flags...)...); err != nil {
		return nil, fmt.Errorf("list specs: %w", err)
	}
	reports, err := readReport(filepath.Join(r.dir, name))
	if err != nil {
		return nil, fmt.Errorf("list specs: %w", err)
	}
	specs := chosen(reports)
	if len(specs) == 0 {
		return nil, ErrNoSpecs
	}
	return specs, nil
}

// seen returns the path of a file in the runner's folder as the programs see it.
func (r runner) seen(name string) string { return filepath.Join(r.suite.dir, name) }

// pass runs a part of the specs, and notes their results.
func (r runner) pass(ctx context.Context, p pass, results *results, log *os.File) error {
	flags, output := r.suite.flags, &reader{each: results.printed}
	name := p.name + ".json"
	var err error
	if p.procs == 1 {
		args := append(r.choice(p.filter), "--ginkgo.v", "--ginkgo.no-color", "--ginkgo.timeout="+limit, "--ginkgo.json-report="+r.seen(name))
		err = r.start(ctx, log, output, r.suite.program, append(args, flags...)...)
	} else {
		args := append(r.ginkgoChoice(p.filter), "-v", "--no-color", "--timeout="+limit, fmt.Sprintf("--procs=%d", p.procs),
			"--output-dir="+r.suite.dir, "--json-report="+name, r.suite.program, "--")
		err = r.start(ctx, log, output, r.ginkgo, append(args, flags...)...)
	}
	reports, failed := readReport(filepath.Join(r.dir, name))
	if failed == nil {
		results.reported(reports)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	program := filepath.Base(r.suite.program)
	if failed != nil {
		// Without a report the suite did not finish, and err says how it ended.
		return errors.Join(err, fmt.Errorf("%s left no report: %w: see %s", program, failed, r.log))
	}
	if why := reports.failure(); err != nil && why != "" {
		return fmt.Errorf("%s: %s: see %s", program, why, r.log)
	}
	return nil // the results say which specs failed
}

// limit is how long ginkgo allows a pass to take. Its default of an hour is not enough for all specs.
const limit = "24h"

// choice returns the flags by which a suite chooses specs: by labels, and by the options' patterns.
func (r runner) choice(filter string) []string { return r.chooseBy("--ginkgo.", filter) }

// ginkgoChoice returns the same flags for ginkgo.
func (r runner) ginkgoChoice(filter string) []string { return r.chooseBy("--", filter) }

func (r runner) chooseBy(prefix, filter string) []string {
	args := []string{prefix + "label-filter=" + filter}
	for _, f := range r.options.Focus {
		args = append(args, prefix+"focus="+f)
	}
	for _, s := range r.options.Skip {
		args = append(args, prefix+"skip="+s)
	}
	return args
}
