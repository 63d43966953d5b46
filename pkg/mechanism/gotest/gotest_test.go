package gotest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"slipway.build/pkg/mechanism/gotest"
	"slipway.build/pkg/mechanism/report"
)

// run runs the tests of testdata/module.txtar.
func run(t *testing.T, ctx context.Context, o gotest.Options, args ...string) (*gotest.Summary, error) {
	t.Helper()
	dir := t.TempDir()
	ar, err := txtar.ParseFile(filepath.Join("testdata", "module.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	if err := txtar.Write(ar, dir); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-json"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOPROXY=off", "GOFLAGS=-trimpath")
	cmd.Stderr = os.Stderr
	return gotest.Run(ctx, cmd, o)
}

// seconds are different every time.
var seconds = regexp.MustCompile(`\d+\.\d+s`)

func TestRunPrintsWhatGoTestPrints(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s, err := run(t, t.Context(), gotest.Options{Out: &out}, "-p=1", "-count=1", "./broken", "./none", "./fails", "./passes")
	if err != nil {
		t.Fatal(err)
	}
	want := `?   	example.com/m/none	[no test files]
--- FAIL: TestFamily (TIME)
    --- FAIL: TestFamily/bad (TIME)
        fails_test.go:7: bad
--- FAIL: TestLine (TIME)
    fails_test.go:11: one
        two
FAIL
FAIL	example.com/m/fails	TIME
ok  	example.com/m/passes	TIME
`
	text := seconds.ReplaceAllString(out.String(), "TIME")
	broken := "# example.com/m/broken [example.com/m/broken.test]\nbroken/broken_test.go:5:39: undefined: nothing\n" +
		"FAIL\texample.com/m/broken [build failed]\n"
	if !strings.Contains(text, broken) { // when it is printed depends on the compile's speed
		t.Errorf("lacks %q:\n%s", broken, text)
	}
	if diff := cmp.Diff(want, strings.Replace(text, broken, "", 1)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}

	out.Reset()
	if err := s.Text(&out); err != nil {
		t.Fatal(err)
	}
	text = out.String()
	for _, part := range []string{
		"failed: example.com/m/broken: build failed\n", "failed: example.com/m/fails: TestFamily, TestLine\n",
		"4 packages, 5 tests in ", ": 1 passed, 2 failed, 1 without tests\n",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("lacks %q:\n%s", part, text)
		}
	}
}

func TestRunKnowsCachedOutcomes(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	for range 2 {
		out.Reset()
		s, err := run(t, t.Context(), gotest.Options{Out: &out}, "./passes")
		if err != nil {
			t.Fatal(err)
		}
		if printed := strings.Contains(out.String(), "(cached)"); s.Packages[0].Cached != printed {
			t.Errorf("cached is %v:\n%s", s.Packages[0].Cached, out.String())
		}
	}
	if want := "ok  \texample.com/m/passes\t(cached)\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestVerboseRunPrintsEverything(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if _, err := run(t, t.Context(), gotest.Options{Out: &out, Verbose: true}, "./passes"); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"=== RUN   TestPasses\n", "passes_test.go:5: said\n", "--- PASS: TestPasses", "ok  \texample.com/m/passes"} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("lacks %q:\n%s", part, out.String())
		}
	}
}

func TestTimeoutNamesTheTestThatDidNotEnd(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s, err := run(t, t.Context(), gotest.Options{Out: &out}, "-timeout=100ms", "./hangs")
	if err != nil {
		t.Fatal(err)
	}
	results := s.Results(false)
	if len(results) != 2 || results[1].Name != "TestHangs" || results[1].Outcome != report.Failed ||
		!strings.Contains(results[1].Message, "unfinished") || !strings.Contains(results[1].Details, "panic: test timed out after 100ms") {
		t.Errorf("got %+v", results)
	}
	if !strings.Contains(out.String(), "--- FAIL: TestHangs (unfinished)\n") {
		t.Errorf("got:\n%s", out.String())
	}
}

func TestInterruptedRunHasWhatEndedBefore(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("enough")
	// The test that never ends says so in the output, which is printed as it comes.
	watch := writer(func(p []byte) {
		if bytes.Contains(p, []byte("here for good")) {
			cancel(stop)
		}
	})
	began := time.Now()
	s, err := run(t, ctx, gotest.Options{Out: watch, JSON: true}, "-p=1", "./passes", "./hangs")
	if !errors.Is(err, stop) {
		t.Fatalf("error %v", err)
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("ended after %v", took)
	}
	if len(s.Packages) == 0 || s.Packages[0].Path != "example.com/m/passes" || s.Packages[0].Outcome != report.Passed {
		t.Errorf("got %+v", s.Packages)
	}
}

// It is not parallel: it counts allocations.
func TestLongLogIsNotCopiedForEachLine(t *testing.T) {
	const lines = 5000
	var events strings.Builder
	for range lines {
		events.WriteString(`{"Action":"output","Package":"a","Test":"TestA","Output":"    a_test.go:1: one line of a log\n"}` + "\n")
	}
	events.WriteString(`{"Action":"fail","Package":"a","Test":"TestA"}` + "\n" + `{"Action":"fail","Package":"a"}` + "\n")
	var out bytes.Buffer
	s, err := gotest.Read(strings.NewReader(events.String()), gotest.Options{Out: &out})
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "one line"); n != lines {
		t.Errorf("%d lines are printed, want %d", n, lines)
	}
	var results report.Results
	if n := testing.AllocsPerRun(1, func() { results = s.Results(false) }); n > lines/10 {
		t.Errorf("%v allocations for %d lines", n, lines)
	}
	if n := strings.Count(results[0].Details, "one line"); n != lines {
		t.Errorf("a result has %d lines, want %d", n, lines)
	}
}

func TestRunThatIsCanceledBeforeItStarts(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("enough")
	cancel(stop)
	s, err := run(t, ctx, gotest.Options{Out: &bytes.Buffer{}}, "./passes")
	if !errors.Is(err, stop) || len(s.Packages) != 0 {
		t.Errorf("got %+v, %v", s.Packages, err)
	}
}

type writer func([]byte)

func (w writer) Write(p []byte) (int, error) {
	w(p)
	return len(p), nil
}

func TestJSONIsPassedOn(t *testing.T) {
	t.Parallel()
	const events = `{"Action":"start","Package":"a"}
no event
{"Action":"output","Package":"a","Output":"ok  \ta\t0.1s\n"}
{"Action":"pass","Package":"a","Elapsed":0.1}
`
	var out bytes.Buffer
	if _, err := gotest.Read(strings.NewReader(events), gotest.Options{Out: &out, JSON: true}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(events, out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	out.Reset()
	if _, err := gotest.Read(strings.NewReader(events), gotest.Options{Out: &out}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("no event\nok  \ta\t0.1s\n", out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestResultsHaveSubtestsOnlyIfAsked(t *testing.T) {
	t.Parallel()
	s, err := run(t, t.Context(), gotest.Options{Out: &bytes.Buffer{}}, "./fails", "./broken")
	if err != nil {
		t.Fatal(err)
	}
	names := func(results report.Results) (all []string) {
		for _, r := range results {
			if r.Group == "example.com/m/fails" {
				all = append(all, r.Name+" "+string(r.Outcome))
			}
		}
		return all
	}
	want := []string{"TestFamily failed", "TestLine failed", "TestFine passed", "TestSkips skipped"}
	if diff := cmp.Diff(want, names(s.Results(false))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	want = []string{"TestFamily failed", "TestFamily/good passed", "TestFamily/bad failed", "TestLine failed",
		"TestFine passed", "TestSkips skipped"}
	if diff := cmp.Diff(want, names(s.Results(true))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, r := range s.Results(false) {
		switch {
		case r.Name == "TestFamily" && !strings.Contains(r.Details, "fails_test.go:7: bad"),
			r.Name == "TestSkips" && r.Message != "fails_test.go:16: not today",
			r.Group == "example.com/m/broken" && (r.Message != "build failed" || !strings.Contains(r.Details, "undefined: nothing")):
			t.Errorf("got %+v", r)
		}
	}
}

func TestTestThatFailsOnceInSeveralRunsHasFailed(t *testing.T) {
	t.Parallel()
	const events = `{"Action":"run","Package":"a","Test":"TestA"}
{"Action":"output","Package":"a","Test":"TestA","Output":"    a_test.go:1: unlucky\n"}
{"Action":"output","Package":"a","Test":"TestA","Output":"--- FAIL: TestA (0.10s)\n"}
{"Action":"fail","Package":"a","Test":"TestA","Elapsed":0.1}
{"Action":"run","Package":"a","Test":"TestA"}
{"Action":"output","Package":"a","Test":"TestA","Output":"--- PASS: TestA (0.20s)\n"}
{"Action":"pass","Package":"a","Test":"TestA","Elapsed":0.2}
{"Action":"fail","Package":"a"}
`
	var out bytes.Buffer
	s, err := gotest.Read(strings.NewReader(events), gotest.Options{Out: &out})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("--- FAIL: TestA (0.10s)\n    a_test.go:1: unlucky\n", out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if results := s.Results(true); len(results) != 1 || results[0].Outcome != report.Failed || results[0].Seconds != 0.1 {
		t.Errorf("got %+v", results)
	}
}

func TestSubtestsWithSlashesInTheirNamesArePrinted(t *testing.T) {
	t.Parallel()
	const events = `{"Action":"run","Package":"a","Test":"TestA"}
{"Action":"output","Package":"a","Test":"TestA/x/y","Output":"        a_test.go:1: bad\n"}
{"Action":"output","Package":"a","Test":"TestA/x/y","Output":"    --- FAIL: TestA/x/y (0.10s)\n"}
{"Action":"fail","Package":"a","Test":"TestA/x/y"}
{"Action":"output","Package":"a","Test":"TestA","Output":"--- FAIL: TestA (0.10s)\n"}
{"Action":"fail","Package":"a","Test":"TestA"}
{"Action":"fail","Package":"a"}
`
	var out bytes.Buffer
	if _, err := gotest.Read(strings.NewReader(events), gotest.Options{Out: &out}); err != nil {
		t.Fatal(err)
	}
	want := "--- FAIL: TestA (0.10s)\n        --- FAIL: TestA/x/y (0.10s)\n                a_test.go:1: bad\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestSubtestsThatRunSideBySideArePrintedBelowTheirParents(t *testing.T) {
	t.Parallel()
	names := []string{"TestA", "TestA/x", "TestA/y", "TestA/x/in", "TestA/y/in", "TestA/x/on"}
	var events strings.Builder
	for _, name := range names {
		fmt.Fprintf(&events, `{"Action":"run","Package":"a","Test":%q}`+"\n", name)
	}
	for _, name := range names {
		fmt.Fprintf(&events, `{"Action":"output","Package":"a","Test":%q,"Output":"--- FAIL: %s (0.00s)\n"}`+"\n", name, name)
		fmt.Fprintf(&events, `{"Action":"fail","Package":"a","Test":%q}`+"\n", name)
	}
	events.WriteString(`{"Action":"fail","Package":"a"}` + "\n")
	var out bytes.Buffer
	if _, err := gotest.Read(strings.NewReader(events.String()), gotest.Options{Out: &out}); err != nil {
		t.Fatal(err)
	}
	want := `--- FAIL: TestA (0.00s)
    --- FAIL: TestA/x (0.00s)
        --- FAIL: TestA/x/in (0.00s)
        --- FAIL: TestA/x/on (0.00s)
    --- FAIL: TestA/y (0.00s)
        --- FAIL: TestA/y/in (0.00s)
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
