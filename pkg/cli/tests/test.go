package tests

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mattn/go-shellwords"
	"github.com/spf13/cobra"

	"slipway.build/pkg/cli/making"
	"slipway.build/pkg/cli/session"
	"slipway.build/pkg/maintain/kubetest"
	"slipway.build/pkg/make/patched"
	"slipway.build/pkg/make/project"
	"slipway.build/pkg/make/road"
	"slipway.build/pkg/mechanism/atomicfile"
	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/mechanism/gotest"
	"slipway.build/pkg/tree/catalog"
	"slipway.build/pkg/tree/patch"
)

// A testRun holds the flags of slipway test.
type testRun struct {
	race, timeout    string
	cover            bool
	junit            string
	subtests         bool
	integration      bool
	all              bool
	own, patched     bool
	dryRun           bool
	words, arguments []string // packages, and what follows --
}

func newTest(o commands) *cobra.Command {
	var run testRun
	c := &cobra.Command{
		Use:   "test package... [-- argument...]",
		Short: "Run Kubernetes' unit tests",
		Long: `test runs Kubernetes' own tests, at the tree's versions and with its patches, in a writable copy of upstream's repository.
Packages are

  k8s.io/kubernetes/pkg/scheduler/...   import paths, those of staging modules and of the tree's own packages, too
  pkg/scheduler, ./cmd/kubeadm/app/...  folders of the tree, or else of upstream's repository

What follows -- is for go test: -short, -run NAME, -v, -count=1, and, after -args, for the test itself. With --json, the events
of go test -json are all that is on standard output.

The results are cached as go test caches them. The exit code is 1 if a test fails.`,
		Example: "  slipway test k8s.io/kubernetes/pkg/kubelet/types\n  slipway test k8s.io/client-go/tools/... --race -- -short -run " +
			"TestReflector",
		Args: func(c *cobra.Command, args []string) error {
			run.words = args
			if at := c.ArgsLenAtDash(); at >= 0 {
				run.words, run.arguments = args[:at], args[at:]
			}
			if len(run.words) == 0 && !run.own && !run.patched && !run.all {
				return errors.New("name a package, or use --own, --patched or --all")
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return o.test(c.Context(), run) },
	}
	flags := c.Flags()
	flags.StringVar(&run.race, "race", o.Getenv("KUBE_RACE"), "-race finds data races; it needs a C compiler (default $KUBE_RACE)")
	flags.Lookup("race").NoOptDefVal = "-race"
	flags.StringVar(&run.timeout, "timeout", o.Getenv("KUBE_TIMEOUT"),
		"how long the tests of one package may take (default $KUBE_TIMEOUT, else 180s; with --integration 600s)")
	flags.BoolVar(&run.cover, "cover", o.IsOn(session.Cover),
		"measure coverage, for $KUBE_COVER_REPORT_DIR or _output/coverage (default $KUBE_COVER)")
	flags.StringVar(&run.junit, "junit-dir", cmp.Or(o.Getenv("KUBE_JUNIT_REPORT_DIR"), o.Getenv("ARTIFACTS")),
		"also write a JUnit XML report to this folder (default $KUBE_JUNIT_REPORT_DIR, else $ARTIFACTS)")
	flags.BoolVar(&run.subtests, "junit-subtests", !o.IsOn(session.PruneReports),
		"subtests have cases of their own in the report (default $KUBE_PRUNE_JUNIT_TESTS is false)")
	flags.BoolVar(&run.integration, "integration", false, "start the release's etcd first, for k8s.io/kubernetes/test/integration/..., with "+
		"upstream's defaults for these tests")
	flags.BoolVar(&run.all, "all", false, "also test all packages with unit tests, as upstream's make test does")
	flags.BoolVar(&run.own, "own", false, "also test the packages of the tree, in all of its modules")
	flags.BoolVar(&run.patched, "patched", false, "also test what the tree's patches touch, and what imports that directly")
	flags.BoolVarP(&run.dryRun, "dry-run", "n", false, "print which packages would be tested, and how; test nothing")
	return c
}

// OfTree reports whether all words of WHAT= name packages of the toolchain, in the tree that dir lies in.
func OfTree(dir string, words []string) (bool, error) {
	root, err := project.FindRoot(dir)
	if err != nil {
		return false, err
	}
	declared, err := catalog.Load(root)
	if err != nil {
		return false, err
	}
	own, others, err := kubetest.InTree(root, declared.Module, words)
	return len(others) == 0 && len(own.Tree) == 1 && own.Tree["."] != nil, err
}

func (o commands) test(ctx context.Context, run testRun) error {
	p, err := o.Open(ctx)
	if err != nil {
		return err
	}
	how, err := o.testOptions(p, run)
	if err != nil {
		return err
	}
	return o.testIn(ctx, p, run, how)
}

// testOptions returns the options of a run, from its flags and from variables.
func (o commands) testOptions(p *project.Project, run testRun) (kubetest.Options, error) {
	how := kubetest.Options{
		Race:    strings.Fields(run.race),
		Timeout: []string{"-timeout=180s"},
		GoFlags: p.Settings.Build.GoFlags,
		Env:     os.Environ(),
		Err:     o.Err,
		Show:    gotest.Options{Out: o.Out, JSON: o.JSON},
	}
	watchPanic := "true"
	if run.integration {
		how.Timeout, how.Args, watchPanic = []string{"-timeout=600s"}, []string{"-short=true"}, "false"
	}
	if run.race != "" && run.race != "-race" {
		return how, badrequest.Mark(fmt.Errorf("--race=%s: it takes no value", run.race))
	}
	if timeout, err := session.TestTimeout(run.timeout); err != nil {
		return how, err
	} else if timeout != "" {
		how.Timeout = []string{timeout}
	}
	words, err := shellwords.Parse(o.Getenv("KUBE_TEST_ARGS"))
	if err != nil {
		return how, badrequest.Mark(fmt.Errorf("KUBE_TEST_ARGS: %w: quote it as in a shell", err))
	}
	how.Args = slices.Concat(how.Args, words, run.arguments)
	before := how.Args
	if i := slices.Index(before, "-args"); i >= 0 {
		before = before[:i]
	}
	how.Show.Verbose = slices.ContainsFunc(append(slices.Clone(before), strings.Fields(how.GoFlags)...), func(arg string) bool {
		return slices.Contains([]string{"v", "v=true", "test.v", "test.v=true"}, strings.TrimLeft(arg, "-"))
	})
	if run.cover {
		dir, err := filepath.Abs(cmp.Or(o.Getenv("KUBE_COVER_REPORT_DIR"), filepath.Join(p.Root, project.Output, "coverage")))
		if err != nil {
			return how, err
		}
		how.Cover = &kubetest.Cover{Mode: cmp.Or(o.Getenv("KUBE_COVERMODE"), "atomic"), Dir: dir}
	}
	// These are upstream's defaults.
	for _, v := range []struct{ name, value string }{
		{"KUBE_CACHE_MUTATION_DETECTOR", "true"}, {"KUBE_PANIC_WATCH_DECODE_ERROR", watchPanic},
	} {
		if o.Getenv(v.name) == "" {
			how.Env = append(how.Env, v.name+"="+v.value)
		}
	}
	return how, nil
}

// testTree returns the tree that package kubetest tests.
func (o commands) testTree(ctx context.Context, p *project.Project, how kubetest.Options) (kubetest.Tree, error) {
	tree := kubetest.Tree{Root: p.Root, Components: p.Catalog.Module, Version: p.Catalog.Kubernetes}
	g, err := p.Go(ctx, o.Say)
	if err != nil {
		return tree, err
	}
	tree.Go = g
	tree.Tags = append(slices.Clone(p.Catalog.Tags), road.UserTags(how.GoFlags)...)
	if p.Generator != nil {
		tree.Generator = kubetest.Generator{
			Recipe: p.Generator.Recipe(),
			Run: func(ctx context.Context, overlay *patch.Overlay, tmp string) error {
				if !p.Generator.Affects(overlay.Changes()) {
					return nil
				}
				return p.Generator.Generate(ctx, patched.Tree{Overlay: overlay, Go: g, Tmp: tmp}, o.Say)
			},
		}
	}
	return tree, nil
}

// testIn runs the requested tests. It makes the copy of upstream's repository only if some of them are in it.
func (o commands) testIn(ctx context.Context, p *project.Project, run testRun, how kubetest.Options) error {
	if run.own {
		run.words = append(run.words, ownWithTests(p.Sources.Names())...)
	}
	own, others, err := kubetest.InTree(p.Root, p.Catalog.Module, run.words)
	if err != nil {
		return err
	}
	if len(others)+len(own.Upstream) == 0 && !run.patched && !run.all {
		tree, err := o.testTree(ctx, p, how)
		if err != nil {
			return err
		}
		return o.testOrPrint(ctx, &kubetest.Sources{Tree: tree}, own, run, how)
	}
	if patched, err := kubetest.Patched(p.Root); err != nil {
		return err
	} else if !patched && !run.all && len(run.words) == 0 {
		o.Say("the tree has no patches of Kubernetes: nothing to test")
		return nil
	}
	return o.withTests(ctx, p, how, func(s *kubetest.Sources) error {
		r, err := s.Find(run.words)
		if err != nil {
			return err
		}
		if run.all {
			units, err := s.Units(ctx)
			if err != nil {
				return err
			}
			r.Upstream = append(r.Upstream, units...)
		}
		if run.patched {
			affected, err := s.Affected(ctx)
			if err != nil {
				return err
			}
			r.Upstream = append(r.Upstream, affected...)
			if len(r.Upstream)+len(r.Tree) == 0 {
				o.Say("no patch touches a package with unit tests")
				return nil
			}
		}
		return o.testOrPrint(ctx, s, r, run, how)
	})
}

// ownWithTests returns patterns that name, for each module of a tree that has test files, all packages.
func ownWithTests(files []string) []string {
	var patterns []string
	for _, name := range files {
		if !strings.HasSuffix(name, "_test.go") {
			continue
		}
		dir := path.Dir(name)
		for dir != "." && !slices.Contains(files, path.Join(dir, "go.mod")) {
			dir = path.Dir(dir)
		}
		if pattern := "./" + path.Join(dir, "..."); !slices.Contains(patterns, pattern) {
			patterns = append(patterns, pattern)
		}
	}
	return patterns
}

// testOrPrint tests what a request names. In a dry run it prints the command lines instead.
func (o commands) testOrPrint(ctx context.Context, s *kubetest.Sources, r kubetest.Request, run testRun, how kubetest.Options) error {
	if run.dryRun {
		lines, err := s.CommandLines(ctx, r, how)
		for _, line := range lines {
			fmt.Fprintln(o.Out, line)
		}
		return err
	}
	test := func(ctx context.Context, how kubetest.Options) error {
		summary, err := s.Run(ctx, r, how)
		return o.report(run, s.Version, summary, err)
	}
	if !run.integration {
		return test(ctx, how)
	}
	programs, err := making.Programs(ctx, o.Session, []string{"etcd"})
	if err != nil {
		return err
	}
	return kubetest.Integration(ctx, programs[0], how, test)
}

// report prints the outcome of tests, and writes it as XML if the user wants that. It returns the run's error, or one for failed tests.
func (o commands) report(run testRun, version string, summary *gotest.Summary, err error) error {
	if summary == nil || len(summary.Packages) == 0 {
		return err
	}
	if run.junit != "" {
		err = errors.Join(err, writeJUnit(run, version, summary))
	}
	out := o.Out
	if o.JSON {
		out = o.Err
	}
	if err = errors.Join(err, summary.Text(out)); err != nil {
		return err
	}
	if n := summary.Count("failed"); n > 0 {
		return session.ShownError{Err: fmt.Errorf("the tests of %d packages failed", n)}
	}
	return nil
}

// writeJUnit writes the report. Its name has the time, because CI systems collect the reports of several runs in one folder.
func writeJUnit(run testRun, version string, summary *gotest.Summary) error {
	if err := os.MkdirAll(run.junit, 0o777); err != nil {
		return err
	}
	file := filepath.Join(run.junit, "junit_"+time.Now().UTC().Format("20060102-150405")+".xml")
	return atomicfile.Write(file, 0o644, func(w io.Writer) error {
		return summary.Results(run.subtests).JUnit(w, "Kubernetes "+version, "", summary.Took)
	})
}
