package conformance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"slipway.build/pkg/prove/cluster"
)

// Options say what is wanted of a run.
type Options struct {
	Tarballs string   // the folder with the test tarball; empty: the one that the cluster was made of
	Focus    []string // patterns of which a spec's name has to match one; none: all conformance specs
	Skip     []string // patterns of which it must match none
	Procs    int      // how many specs run at once

	Say  func(string)                   // is told what happens before the first spec; not nil
	Each func(row Row, done, total int) // is told each spec that ended, one at a time; not nil
}

// ErrNoSpecs says that there is no conformance spec of such a name.
var ErrNoSpecs = errors.New("no conformance spec matches")

// Run runs conformance specs. Its error is that of ctx, if it ended before all had run, or says why e2e.test could not go on; that
// specs failed is none. The report has every spec that was to run.
func Run(ctx context.Context, s *cluster.State, o Options) (Report, error) {
	if err := runnable(s); err != nil {
		return Report{}, err
	}
	o.Say("unpack the test tarball")
	tests, err := s.UnpackTests(ctx, o.Tarballs)
	if err != nil {
		return Report{}, err
	}
	o.Say("import its images into the nodes")
	n, err := tests.Import(ctx)
	if err != nil {
		return Report{}, err
	}
	o.Say(fmt.Sprintf("%d images are there; list the specs", n))
	tmp, err := os.MkdirTemp("", "slipway-conformance-")
	if err != nil {
		return Report{}, err
	}
	defer os.RemoveAll(tmp)
	r := runner{
		suite: tests.Program("e2e.test"), ginkgo: tests.Program("ginkgo"), kubectl: s.Kubectl(), kubeconfig: s.Kubeconfig(),
		dir: tmp, log: filepath.Join(filepath.Dir(s.Kubeconfig()), "log", "conformance.log"), options: o,
	}
	report, err := r.run(ctx)
	report.Cluster, report.Version, report.Log = s.Name, s.Version, r.log
	return report, err
}

// runnable says why a cluster cannot run specs.
func runnable(s *cluster.State) error {
	if s.ControlPlaneOnly {
		return fmt.Errorf("cluster %s is a control plane without nodes, which can run nothing: `slipway cluster up` makes one with nodes", s.Name)
	}
	if !s.Ready {
		return fmt.Errorf("cluster %s is not finished: make it again with `slipway cluster up`", s.Name)
	}
	return nil
}

// A runner has all that specs are run by.
type runner struct {
	suite, ginkgo       string // programs
	kubectl, kubeconfig string
	dir                 string // for reports, temporary
	log                 string // of what the programs say
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
	rows := newRows(specs, r.options.Each)
	var failure error
	for _, pass := range passes(specs, r.options.Procs) {
		if failure = r.pass(ctx, pass, rows, log); failure != nil {
			break
		}
	}
	if failure != nil {
		failure = errors.Join(failure, r.cleanUp(ctx))
	}
	report := Report{Focus: r.options.Focus, Skip: r.options.Skip, Procs: r.options.Procs, Seconds: time.Since(start).Seconds(), Rows: rows.all()}
	return report, failure
}

func openLog(name string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return nil, err
	}
	return os.Create(name)
}

// A pass is a part of the specs that e2e.test runs at once.
type pass struct {
	name   string
	filter string // of labels
	procs  int
}

const label = "Conformance"

// passes are two where specs run side by side, as [Serial] ones must not.
func passes(specs []Spec, procs int) []pass {
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

// list asks e2e.test for the specs that would run.
func (r runner) list(ctx context.Context, log *os.File) ([]Spec, error) {
	file := filepath.Join(r.dir, "list.json")
	args := append(r.choice(label), "--ginkgo.dry-run", "--ginkgo.succinct", "--ginkgo.no-color", "--ginkgo.json-report="+file)
	if err := r.start(ctx, log, r.suite, append(args, r.cluster()...)...); err != nil {
		return nil, fmt.Errorf("list specs: %w", err)
	}
	reports, err := readReport(file)
	if err != nil {
		return nil, fmt.Errorf("list specs: %w", err)
	}
	specs := chosen(reports)
	if len(specs) == 0 {
		return nil, ErrNoSpecs
	}
	return specs, nil
}

// pass runs a part of the specs, and notes what came of them.
func (r runner) pass(ctx context.Context, p pass, rows *rows, log *os.File) error {
	progress, err := listen(func(result Result, name string) { rows.told(result, name, p.procs == 1) })
	if err != nil {
		return err
	}
	defer progress.close()
	rows.begin()
	name := p.name + ".json"
	file := filepath.Join(r.dir, name)
	cluster := append(r.cluster(), "--progress-report-url="+progress.address())
	if p.procs == 1 {
		args := append(r.choice(p.filter), "--ginkgo.v", "--ginkgo.no-color", "--ginkgo.timeout="+limit, "--ginkgo.json-report="+file)
		err = r.start(ctx, log, r.suite, append(args, cluster...)...)
	} else {
		args := append(r.ginkgoChoice(p.filter), "-v", "--no-color", "--timeout="+limit, fmt.Sprintf("--procs=%d", p.procs),
			"--output-dir="+r.dir, "--json-report="+name, r.suite, "--")
		err = r.start(ctx, log, r.ginkgo, append(args, cluster...)...)
	}
	reports, failed := readReport(file)
	if failed == nil {
		rows.reported(reports)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if failed != nil {
		// Without a report the suite has not come to its end, and err says how it ended.
		return errors.Join(err, fmt.Errorf("e2e.test left no report: %w: see %s", failed, r.log))
	}
	if why := reports.failure(); err != nil && why != "" {
		return fmt.Errorf("e2e.test: %s: see %s", why, r.log)
	}
	return nil // that specs failed is in the rows
}

// limit is how long ginkgo has a pass take: by default an hour, which is not enough for all specs.
const limit = "24h"

// choice has e2e.test run some specs: those whose labels a filter takes, of the names that were asked for.
func (r runner) choice(filter string) []string { return r.chooseBy("--ginkgo.", filter) }

// ginkgoChoice is the same for ginkgo.
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

// cluster is what e2e.test is told of the cluster.
func (r runner) cluster() []string {
	return []string{
		"--provider=skeleton", "--kubeconfig=" + r.kubeconfig, "--kubectl-path=" + r.kubectl, "--e2e-output-dir=" + r.dir,
		"--disable-log-dump",
	}
}
