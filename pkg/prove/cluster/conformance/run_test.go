//go:build unix

package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The test binary is the programs that a runner starts, too, by their names.
func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) {
	case "e2e.test", "ginkgo", "kubectl":
		os.Exit(fake(filepath.Base(os.Args[0]), os.Args[1:]))
	}
	os.Exit(m.Run())
}

// fakeSpecs are those of the suite that is none. What is in brackets are labels, and what a spec does is in its name.
var fakeSpecs = []string{
	"[sig-a] passes [Conformance]", "[sig-a] fails [Conformance]", "[sig-b] skips [Conformance]", "[sig-b] passes alone [Serial] [Conformance]",
	"[sig-b] is no conformance", "[sig-c] hangs [Conformance]", "[sig-c] crashes [Conformance]", "[sig-c] is never told of [Conformance]",
}

// fake is a program that understands as much of e2e.test's flags as a runner uses. Each call is a line of the file "calls".
func fake(name string, args []string) int {
	dir := filepath.Dir(os.Args[0])
	calls, err := os.OpenFile(filepath.Join(dir, "calls"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		panic(err)
	}
	fmt.Fprintln(calls, name, strings.Join(args, " "))
	calls.Close()
	if name == "kubectl" {
		return 0
	}
	flags := map[string][]string{}
	for _, arg := range args {
		flag, value, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(arg, "--"), "ginkgo."), "=")
		flags[flag] = append(flags[flag], value)
	}
	has := func(text string, patterns []string) bool {
		return slices.ContainsFunc(patterns, func(p string) bool { return strings.Contains(text, strings.Trim(p, `\[]`)) })
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt)
	interrupted := false
	var out []map[string]any
	code := 0
	for _, spec := range fakeSpecs {
		var labels []string
		for _, l := range []string{"Conformance", "Serial"} {
			if strings.Contains(spec, "["+l+"]") {
				labels = append(labels, l)
			}
		}
		group, leaf, _ := strings.Cut(spec, " ")
		row := map[string]any{
			"ContainerHierarchyTexts": []string{group}, "LeafNodeText": leaf, "LeafNodeType": "It", "LeafNodeLabels": labels, "State": "skipped",
		}
		out = append(out, row)
		runs := !interrupted && (len(flags["focus"]) == 0 || has(spec, flags["focus"])) && !has(spec, flags["skip"])
		for part := range strings.SplitSeq(flags["label-filter"][0], " && ") {
			l, without := strings.CutPrefix(part, "!")
			runs = runs && slices.Contains(labels, l) != without
		}
		if !runs {
			continue
		}
		row["State"] = "passed"
		if flags["dry-run"] != nil {
			continue
		}
		row["RunTime"] = 2 * time.Second
		word := "PASSED"
		switch {
		case strings.HasPrefix(leaf, "fails"):
			word, code, row["State"] = "FAILED", 1, "failed"
			row["Failure"] = map[string]any{"Message": "no luck\nat all", "Location": map[string]any{"FileName": "a.go", "LineNumber": 7}}
			row["CapturedGinkgoWriterOutput"] = "what it said"
		case strings.HasPrefix(leaf, "skips"):
			word, row["State"] = "", "skipped"
			row["Failure"] = map[string]any{"Message": "not on Tuesdays"}
		case strings.HasPrefix(leaf, "is never"):
			word = ""
		case strings.HasPrefix(leaf, "crashes"):
			return 3
		case strings.HasPrefix(leaf, "hangs"):
			fmt.Println("hanging")
			<-stop
			interrupted, code, word, row["State"] = true, 1, "", "interrupted"
			row["Failure"] = map[string]any{"Message": "Interrupted by User"}
		}
		if word != "" {
			body, _ := json.Marshal(map[string]any{"msg": word + " " + spec})
			if _, err := http.Post(flags["progress-report-url"][0], "application/json", bytes.NewReader(body)); err != nil {
				panic(err)
			}
		}
	}
	text, _ := json.Marshal([]any{map[string]any{"SpecReports": append(out, map[string]any{"LeafNodeType": "BeforeSuite", "State": "passed"})}})
	file := flags["json-report"][0]
	if flags["output-dir"] != nil {
		file = filepath.Join(flags["output-dir"][0], file)
	}
	if err := os.WriteFile(file, text, 0o644); err != nil {
		panic(err)
	}
	return code
}

// fakeRunner is a runner of such programs, and calls reads how they were called.
func fakeRunner(t *testing.T, o Options) (r runner, calls func() []string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range []string{"e2e.test", "ginkgo", "kubectl"} {
		if err := os.Symlink(self, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	o.Procs = max(o.Procs, 1)
	if o.Each == nil {
		o.Each = func(Row, int, int) {}
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	return runner{
			suite: in("e2e.test"), ginkgo: in("ginkgo"), kubectl: in("kubectl"), kubeconfig: in("kubeconfig"), dir: dir, log: in("log"), options: o,
		}, func() []string {
			text, err := os.ReadFile(in("calls"))
			if err != nil {
				t.Fatal(err)
			}
			return strings.Split(strings.TrimSpace(string(text)), "\n")
		}
}

func results(r Report) string {
	var b strings.Builder
	for _, row := range r.Rows {
		fmt.Fprintf(&b, "%s: %s\n", row.Result, row.Name)
	}
	return b.String()
}

var skips = []string{"hangs", "crashes"}

func TestEverySpecThatWasChosenHasARow(t *testing.T) {
	t.Parallel()
	var told []string
	r, calls := fakeRunner(t, Options{Skip: skips, Each: func(row Row, done, total int) {
		told = append(told, fmt.Sprintf("%d/%d %s", done, total, row.Result))
	}})
	report, err := r.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := `passed: [sig-a] passes [Conformance]
failed: [sig-a] fails [Conformance]
skipped: [sig-b] skips [Conformance]
passed: [sig-b] passes alone [Serial] [Conformance]
passed: [sig-c] is never told of [Conformance]
`
	if got := results(report); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if got := strings.Join(told, ", "); got != "1/5 passed, 2/5 failed, 3/5 passed, 4/5 skipped, 5/5 passed" {
		t.Errorf("told %s", got)
	}
	if n := len(calls()); n != 2 {
		t.Errorf("%d calls, want one that lists and one that runs: %q", n, calls())
	}
	if report.Rows[1].Message != "no luck\nat all" || report.Rows[1].Location != "a.go:7" || report.Rows[1].Seconds != 2 {
		t.Errorf("row %+v", report.Rows[1])
	}
}

func TestFocusChoosesAmongConformanceSpecs(t *testing.T) {
	t.Parallel()
	r, _ := fakeRunner(t, Options{Focus: []string{"sig-b"}})
	report, err := r.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := results(report), "skipped: [sig-b] skips [Conformance]\npassed: [sig-b] passes alone [Serial] [Conformance]\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	r, calls := fakeRunner(t, Options{Focus: []string{"is no conformance"}})
	if _, err := r.run(t.Context()); !errors.Is(err, ErrNoSpecs) {
		t.Errorf("got %v, want ErrNoSpecs", err)
	}
	if n := len(calls()); n != 1 {
		t.Errorf("%d calls: %q", n, calls())
	}
}

func TestSerialSpecsRunByThemselves(t *testing.T) {
	t.Parallel()
	r, calls := fakeRunner(t, Options{Skip: skips, Procs: 3})
	report, err := r.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if report.Count(Passed) != 3 || report.Count(NotRun) != 0 {
		t.Errorf("got\n%s", results(report))
	}
	c := calls()
	if len(c) != 3 || !strings.HasPrefix(c[1], "ginkgo --label-filter=Conformance && !Serial ") || !strings.Contains(c[1], "--procs=3") ||
		!strings.HasPrefix(c[2], "e2e.test --ginkgo.label-filter=Conformance && Serial ") {
		t.Errorf("calls %q", c)
	}
}

func TestInterruptEndsTheSpecAndRemovesNamespaces(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, calls := fakeRunner(t, Options{Focus: []string{"passes", "hangs", "never"}})
	go func() {
		for ctx.Err() == nil {
			if text, _ := os.ReadFile(r.log); bytes.Contains(text, []byte("hanging")) {
				cancel()
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	report, err := r.run(ctx)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it was canceled", err)
	}
	want := `passed: [sig-a] passes [Conformance]
passed: [sig-b] passes alone [Serial] [Conformance]
not run: [sig-c] hangs [Conformance]
not run: [sig-c] is never told of [Conformance]
`
	if got := results(report); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if c := calls(); !strings.Contains(c[len(c)-1], "delete namespaces --selector=e2e-run") {
		t.Errorf("calls %q", c)
	}
}

func TestSuiteThatCrashes(t *testing.T) {
	t.Parallel()
	r, _ := fakeRunner(t, Options{Skip: []string{"hangs"}})
	report, err := r.run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "left no report") || !strings.Contains(err.Error(), r.log) {
		t.Errorf("got %v", err)
	}
	if got, want := report.Summary(), "2 passed, 1 failed, 0 skipped, 3 not run"; !strings.HasSuffix(got, want) {
		t.Errorf("got %s, want %s\n%s", got, want, results(report))
	}
}

func TestNothingOfASuiteOutlivesIt(t *testing.T) {
	t.Parallel()
	r, _ := fakeRunner(t, Options{})
	script := filepath.Join(r.dir, "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nsleep 1000 >/dev/null 2>&1 &\necho $!\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(r.log)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if err := r.start(t.Context(), log, script); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(r.log)
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Sscan(string(text), &pid); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err != nil || bytes.Contains(stat, []byte(") Z ")) || syscall.Kill(pid, 0) != nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("process %d still runs", pid)
}

func TestReportNamesWhatDidNotPass(t *testing.T) {
	t.Parallel()
	r := Report{Version: "v1", Seconds: 61, Log: "/log", Rows: []Row{
		{Name: "a", Result: Passed, Seconds: 1}, {Name: "b", Result: Failed, Message: "one\n2\n3\n4\n5\n6\n7\n8\n9", Location: "b.go:1", Output: "said"},
		{Name: "c", Result: Skipped, Message: "why"}, {Name: "d", Result: NotRun},
	}}
	var text, junit bytes.Buffer
	if err := r.Text(&text); err != nil {
		t.Fatal(err)
	}
	want := `
failed: b
    at b.go:1
    one
    2
    3
    4
    5
    6
    … 3 more lines in the log, and in what --json and --junit write

skipped: c
    why

not run: d

4 specs in 1m1s: 1 passed, 1 failed, 1 skipped, 1 not run
log: /log
`
	if text.String() != want {
		t.Errorf("got\n%swant\n%s", text.String(), want)
	}
	if err := r.JUnit(&junit); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`tests="4" failures="1" skipped="2"`, `<failure message="one">`, "<system-out>said</system-out>", `message="skipped: why"`} {
		if !strings.Contains(junit.String(), part) {
			t.Errorf("JUnit lacks %s:\n%s", part, junit.String())
		}
	}
}
