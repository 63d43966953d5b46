// Units runs all of Kubernetes' unit tests, a batch of packages at a time, and prints how many packages pass, and which do not:
//
//	go run ./test/units                              # hours; it goes on where an earlier run ended
//	go run ./test/units k8s.io/client-go             # packages whose paths begin so
//	go run ./test/units -events test.json            # add what `go test -json` printed elsewhere
//	go run ./test/units -bazel k8s.io/apimachinery   # by Bazel, whose results are in units-bazel.jsonl
//	go run ./test/units -table                       # only print what is known
//
// Patches are applied, but code is not generated anew.
//
// Results are kept in _output/.slipway/test/units.jsonl, one package a line: remove it, or some of its lines, to measure again. Those of
// another version of Kubernetes or of other patches are not told apart from today's.
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"slipway.build/pkg/maintain/kubetest"
	"slipway.build/pkg/make/project"
	"slipway.build/pkg/make/toolchain"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/gotest"
	"slipway.build/pkg/mechanism/report"
	"slipway.build/pkg/tree/catalog"
)

// A unit is what is known of a package.
type unit struct {
	Package string         `json:"package"`
	Outcome report.Outcome `json:"outcome"`
	Seconds float64        `json:"seconds,omitempty"`
	Tests   int            `json:"tests,omitempty"`  // without subtests
	Failed  []string       `json:"failed,omitempty"` // without subtests
	Output  string         `json:"output,omitempty"` // the end of what a package that failed printed
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "units:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("units", flag.ContinueOnError)
	batch := flags.Int("batch", 20, "how many packages are tested at once")
	most := flags.Int("most", 0, "test at most so many batches, such as between other work (0: all)")
	timeout := flags.String("timeout", "10m", "the time for the tests of one package")
	table := flags.Bool("table", false, "only print what is known")
	events := flags.String("events", "", "add the results in a `file` of go test -json")
	byBazel := flags.Bool("bazel", false, "test by Bazel: the targets of the packages that go list finds")
	results := flags.String("results", "", "the `file` of results (default _output/.slipway/test/units.jsonl)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	root, err := project.FindRoot(".")
	if err != nil {
		return err
	}
	file := "units.jsonl"
	if *byBazel {
		file = "units-bazel.jsonl"
	}
	name := cmp.Or(*results, filepath.Join(root, filepath.FromSlash(kubetest.Folder), file))
	if *events != "" {
		return addEvents(name, *events)
	}
	var all []string
	err = action.Locked(ctx, root, kubetest.Folder, nil, func() error {
		s, err := open(ctx, root)
		if err != nil {
			return err
		}
		if all, err = s.Units(ctx); err != nil || *table {
			return err
		}
		test := bazelTest(root, *timeout)
		if !*byBazel {
			test = goTest(s, *timeout)
		}
		return measure(ctx, test, chosen(all, flags.Args()), name, *batch, *most)
	})
	if err != nil {
		return err
	}
	known, err := load(name)
	if err != nil {
		return err
	}
	return write(out, all, known)
}

func open(ctx context.Context, root string) (*kubetest.Sources, error) {
	c, err := catalog.Load(root)
	if err != nil {
		return nil, err
	}
	g, err := toolchain.Find(ctx, toolchain.Pin{Version: c.Go.Version, Sums: c.Go.Sums}, nil)
	if err != nil {
		return nil, err
	}
	return kubetest.Open(ctx, kubetest.Tree{Root: root, Components: c.Module, Tags: c.Tags, Go: g})
}

// chosen returns the packages whose paths begin with one of the prefixes, or all if there are none.
func chosen(all, prefixes []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(pkg string) bool {
		return len(prefixes) > 0 && !slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(pkg, prefix) })
	})
}

// A tester tests packages, and returns what is known of those that ended.
type tester func(ctx context.Context, packages []string) ([]unit, error)

// goTest returns the tester that runs go test.
func goTest(s *kubetest.Sources, timeout string) tester {
	options := kubetest.Options{
		Timeout: []string{"-timeout=" + timeout},
		Args:    []string{"-short"},
		Env:     append(os.Environ(), "KUBE_CACHE_MUTATION_DETECTOR=true", "KUBE_PANIC_WATCH_DECODE_ERROR=true"),
		Show:    gotest.Options{Out: os.Stderr},
		Err:     os.Stderr,
	}
	return func(ctx context.Context, packages []string) ([]unit, error) {
		summary, err := s.Run(ctx, kubetest.Request{Upstream: packages}, options)
		if err != nil {
			return nil, err
		}
		return units(summary), nil
	}
}

// measure tests the packages that the results lack, and adds each batch to these.
func measure(ctx context.Context, test tester, packages []string, name string, batch, most int) error {
	known, err := load(name)
	if err != nil {
		return err
	}
	left := slices.DeleteFunc(packages, func(pkg string) bool { _, ok := known[pkg]; return ok })
	if most > 0 {
		left = left[:min(len(left), most*batch)]
	}
	for some := range slices.Chunk(left, max(batch, 1)) {
		tested, err := test(ctx, some)
		if err != nil {
			return err
		}
		if err := add(name, tested); err != nil {
			return err
		}
	}
	return nil
}

// addEvents adds the results in a file of events.
func addEvents(name, events string) error {
	f, err := os.Open(events)
	if err != nil {
		return err
	}
	defer f.Close()
	summary, err := gotest.Read(f, gotest.Options{Out: io.Discard})
	if err != nil {
		return err
	}
	return add(name, units(summary))
}

// load returns what is known, by package. The last line of a package wins, and a line that a killed run left unfinished does not count.
func load(name string) (map[string]unit, error) {
	known := map[string]unit{}
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return known, nil
	}
	for line := range bytes.Lines(data) {
		var u unit
		if json.Unmarshal(line, &u) == nil && u.Package != "" {
			known[u.Package] = u
		}
	}
	return known, err
}

// units returns what a run of go test gave of each package that ended.
func units(summary *gotest.Summary) []unit {
	var all []unit
	for _, p := range summary.Packages {
		if p.Outcome == report.NotRun {
			continue
		}
		u := unit{Package: p.Path, Outcome: p.Outcome, Seconds: p.Seconds}
		for _, t := range p.Tests {
			if strings.Contains(t.Name, "/") {
				continue
			}
			u.Tests++
			if t.Outcome == report.Failed {
				u.Failed = append(u.Failed, t.Name)
				u.Output += t.Output()
			}
		}
		if p.Outcome == report.Failed {
			u.Output = ending(p.Build + u.Output + p.Output())
		}
		all = append(all, u)
	}
	return all
}

// add appends the packages that ended.
func add(name string, tested []unit) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o666)
	if err != nil {
		return err
	}
	defer f.Close()
	b := bufio.NewWriter(f)
	if end, err := f.Seek(0, io.SeekEnd); err != nil {
		return err
	} else if end > 0 {
		b.WriteByte('\n') // ends the line of a killed run; blank lines do not count
	}
	lines := json.NewEncoder(b)
	for _, u := range tested {
		if err := lines.Encode(u); err != nil {
			return err
		}
	}
	return errors.Join(b.Flush(), f.Close())
}

// ending returns the end of a text: 4 KiB.
func ending(text string) string { return text[max(0, len(text)-4096):] }

// write prints counts, and a table of the packages that did not pass.
func write(w io.Writer, all []string, known map[string]unit) error {
	counts := map[report.Outcome]int{}
	tests := 0
	var failed []unit
	for _, pkg := range slices.Sorted(maps.Keys(known)) {
		u := known[pkg]
		if !slices.Contains(all, pkg) {
			continue
		}
		counts[u.Outcome]++
		tests += u.Tests
		if u.Outcome == report.Failed {
			failed = append(failed, u)
		}
	}
	measured := counts[report.Passed] + counts[report.Failed] + counts[report.Skipped]
	fmt.Fprintf(w, "%d packages have unit tests. %d were tested (%d tests): %d pass, %d do not.\n",
		len(all), measured, tests, measured-len(failed), len(failed))
	if len(failed) > 0 {
		fmt.Fprint(w, "\n| package | tests that fail |\n|---|---|\n")
	}
	for _, u := range failed {
		fmt.Fprintf(w, "| `%s` | %s |\n", u.Package, cmp.Or(strings.Join(u.Failed, ", "), "the package itself"))
	}
	return nil
}
