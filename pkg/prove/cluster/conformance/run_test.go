//go:build unix

package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"slipway.build/pkg/mechanism/child/childtest"
	"slipway.build/pkg/mechanism/report"
	"slipway.build/pkg/prove/cluster"
	"slipway.build/pkg/tree/catalog"
)

// TestMain makes the test binary act as the programs that a runner starts, if it is called by their names.
func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) {
	case "ginkgo", "kubectl":
		os.Exit(fake(filepath.Base(os.Args[0]), os.Args[1:]))
	}
	os.Exit(m.Run())
}

// fakeSpecs are the specs of the fake suite. Labels are in brackets, and the name says what the spec does.
var fakeSpecs = []string{
	"[sig-a] passes [Conformance]", "[sig-a] fails [Conformance]", "[sig-b] skips [Conformance]",
	"[sig-b] passes alone [Serial] [Conformance]",
	"[sig-b] is no conformance", "[sig-c] hangs [Conformance]", "[sig-c] crashes [Conformance]", "[sig-c] is never printed [Conformance]",
	"[sig-node] runs in a node [NodeConformance]",
}

// fake acts as ginkgo or kubectl, as far as a runner uses their flags. Each call is a line in the file "calls".
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
		flag, value, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		flags[flag] = append(flags[flag], value)
	}
	has := func(text string, patterns []string) bool {
		return slices.ContainsFunc(patterns, func(p string) bool { return strings.Contains(text, strings.Trim(p, `\[]`)) })
	}
	writeReport := func(text []byte) {
		if err := os.WriteFile(filepath.Join(flags["output-dir"][0], flags["json-report"][0]), text, 0o644); err != nil {
			panic(err)
		}
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt)
	interrupted := false
	var out []map[string]any
	code := 0
	for _, spec := range fakeSpecs {
		var labels []string
		for _, l := range []string{"Conformance", "NodeConformance", "Serial"} {
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
		for part := range strings.SplitSeq(strings.Trim(strings.ReplaceAll(flags["label-filter"][0], ")", ""), "("), " && ") {
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
		word := "•"
		switch {
		case strings.HasPrefix(leaf, "fails"):
			word, code, row["State"] = "• [FAILED]", 1, "failed"
			row["Failure"] = map[string]any{"Message": "no luck\nat all", "Location": map[string]any{"FileName": "a.go", "LineNumber": 7}}
			row["CapturedGinkgoWriterOutput"] = "what it said"
		case strings.HasPrefix(leaf, "skips"):
			word, row["State"] = "S [SKIPPED]", "skipped"
			row["Failure"] = map[string]any{"Message": "not on Tuesdays"}
		case strings.HasPrefix(leaf, "is never"):
			word = ""
		case strings.HasPrefix(leaf, "crashes"):
			writeReport([]byte("[]")) // the suite has left none that could be in it
			return 3
		case strings.HasPrefix(leaf, "hangs"):
			fmt.Println("hanging")
			<-stop
			interrupted, code, word, row["State"] = true, 1, "", "interrupted"
			row["Failure"] = map[string]any{"Message": "Interrupted by User"}
		}
		if word != "" {
			name := spec
			if word == "• [FAILED]" {
				name = group + " [It] " + leaf
			}
			fmt.Printf("------\n%s [1.500 seconds]\n%s [%s]\nfile.go:1\n", word, name, strings.Join(labels, ", "))
		}
	}
	text, _ := json.Marshal([]any{map[string]any{"SpecReports": append(out,
		map[string]any{"LeafNodeType": "BeforeSuite", "State": "passed"})}})
	writeReport(text)
	return code
}

// A node's suite runs in the node: its command line begins with what enters that, and it names files as it sees them.
func TestNodeSuiteRunsInTheNode(t *testing.T) {
	t.Parallel()
	r, calls := fakeRunner(t, Options{})
	r.suite.labels, r.suite.flags, r.suite.enter, r.kubectl = "NodeConformance", []string{"--node-name=n"}, []string{"env", "IN=node"}, ""
	got, err := r.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if text, want := outcomes(got), "passed: [sig-node] runs in a node [NodeConformance]\n"; text != want {
		t.Errorf("got\n%swant\n%s", text, want)
	}
	if c := calls(); len(c) != 2 || !strings.HasPrefix(c[1], "ginkgo ") || !strings.Contains(c[1], " --label-filter=NodeConformance ") ||
		!strings.HasSuffix(c[1], " --node-name=n") {
		t.Errorf("calls %q", c)
	}
}

// fakeRunner returns a runner of the fake programs, and a function that returns their calls.
func fakeRunner(t *testing.T, o Options) (r runner, calls func() []string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range []string{"ginkgo", "kubectl"} {
		if err := os.Symlink(self, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	o.Procs = max(o.Procs, 1)
	if o.Each == nil {
		o.Each = func(report.Result, int, int) {}
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	return runner{
			suite: clusterSuite(in("e2e.test"), in("ginkgo"), dir, in("kubectl"), in("kubeconfig"), Conformance), kubectl: in("kubectl"),
			kubeconfig: in("kubeconfig"), dir: dir, log: in("log"), options: o,
		}, func() []string {
			text, err := os.ReadFile(in("calls"))
			if err != nil {
				t.Fatal(err)
			}
			return strings.Split(strings.TrimSpace(string(text)), "\n")
		}
}

func outcomes(r Report) string {
	var b strings.Builder
	for _, result := range r.Results {
		fmt.Fprintf(&b, "%s: %s\n", result.Outcome, result.Name)
	}
	return b.String()
}

var skips = []string{"hangs", "crashes"}

func TestEveryChosenSpecHasAResult(t *testing.T) {
	t.Parallel()
	var seen []string
	r, calls := fakeRunner(t, Options{Skip: skips, Each: func(result report.Result, done, total int) {
		seen = append(seen, fmt.Sprintf("%d/%d %s %v", done, total, result.Outcome, result.Seconds))
	}})
	got, err := r.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := `passed: [sig-a] passes [Conformance]
failed: [sig-a] fails [Conformance]
skipped: [sig-b] skips [Conformance]
passed: [sig-b] passes alone [Serial] [Conformance]
passed: [sig-c] is never printed [Conformance]
`
	if text := outcomes(got); text != want {
		t.Errorf("got\n%swant\n%s", text, want)
	}
	if each := strings.Join(seen, ", "); each != "1/5 passed 1.5, 2/5 failed 1.5, 3/5 skipped 1.5, 4/5 passed 1.5, 5/5 passed 2" {
		t.Errorf("Each received %s", each)
	}
	if n := len(calls()); n != 2 {
		t.Errorf("%d calls, want one that lists and one that runs: %q", n, calls())
	}
	if failed := got.Results[1]; failed.Message != "no luck\nat all" || failed.Location != "a.go:7" || failed.Seconds != 2 {
		t.Errorf("result %+v", failed)
	}
}

func TestFocusChoosesAmongConformanceSpecs(t *testing.T) {
	t.Parallel()
	r, _ := fakeRunner(t, Options{Focus: []string{"sig-b"}})
	got, err := r.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if text, want := outcomes(got), "skipped: [sig-b] skips [Conformance]\npassed: [sig-b] passes alone [Serial] "+
		"[Conformance]\n"; text != want {
		t.Errorf("got\n%swant\n%s", text, want)
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
	got, err := r.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got.Results.Count(report.Passed) != 3 || got.Results.Count(report.NotRun) != 0 {
		t.Errorf("got\n%s", outcomes(got))
	}
	c := calls()
	if len(c) != 3 || !strings.Contains(c[1], " --label-filter=(Conformance) && !Serial ") || !strings.Contains(c[1], " --procs=3 ") ||
		!strings.Contains(c[2], " --label-filter=(Conformance) && Serial ") || !strings.Contains(c[2], " --procs=1 ") {
		t.Errorf("calls %q", c)
	}
}

func TestInterruptionEndsTheSpecAndRemovesNamespaces(t *testing.T) {
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
	got, err := r.run(ctx)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it was canceled", err)
	}
	want := `passed: [sig-a] passes [Conformance]
passed: [sig-b] passes alone [Serial] [Conformance]
not run: [sig-c] hangs [Conformance]
not run: [sig-c] is never printed [Conformance]
`
	if text := outcomes(got); text != want {
		t.Errorf("got\n%swant\n%s", text, want)
	}
	if c := calls(); !strings.Contains(c[len(c)-1], "delete namespaces --selector=e2e-run") {
		t.Errorf("calls %q", c)
	}
}

func TestSuiteThatCrashesIsAnError(t *testing.T) {
	t.Parallel()
	r, _ := fakeRunner(t, Options{Skip: []string{"hangs"}})
	got, err := r.run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "left no report") ||
		!strings.Contains(err.Error(), r.log) {
		t.Errorf("got %v", err)
	}
	if text, want := got.Summary(), "2 passed, 1 failed, 1 skipped, 2 not run"; !strings.HasSuffix(text, want) {
		t.Errorf("got %s, want %s\n%s", text, want, outcomes(got))
	}
}

func TestChildrenOfASuiteDoNotOutliveIt(t *testing.T) {
	t.Parallel()
	r, _ := fakeRunner(t, Options{})
	script := filepath.Join(r.dir, "script")
	childtest.Script(t, script, "#!/bin/sh\nsleep 1000 >/dev/null 2>&1 &\necho $!\n")
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
		if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err != nil || bytes.Contains(stat, []byte(") Z ")) ||
			syscall.Kill(pid, 0) != nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("process %d still runs", pid)
}

func TestReportNamesSpecsThatDidNotPassAndSubstitutedImages(t *testing.T) {
	t.Parallel()
	r := Report{Version: "v1", Seconds: 61, Log: "/log", Results: report.Results{
		{Name: "a", Outcome: report.Passed, Seconds: 1}, {Name: "b", Outcome: report.Failed, Message: "one\n2\n3\n4\n5\n6\n7\n8\n9",
			Location: "b.go:1", Output: "said"},
		{Name: "c", Outcome: report.Skipped, Message: "why"}, {Name: "d", Outcome: report.NotRun},
	}, Substitutes: []cluster.TestImage{{Name: "registry.k8s.io/e2e/agnhost:2", Title: "Test programs"},
		{Name: "registry.k8s.io/e2e/nginx:1", Title: "nginx"}}}
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
    … 3 more lines

skipped: c
    why

not run: d

4 specs in 1m1s: 1 passed, 1 failed, 1 skipped, 1 not run
log: /log
images: 2 of the images are not upstream's, but built with the release: agnhost:2, nginx:1
`
	if text.String() != want {
		t.Errorf("got\n%swant\n%s", text.String(), want)
	}
	if err := r.JUnit(&junit); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		`tests="4" failures="1" skipped="2"`, `<failure message="one">`, "<system-out>said</system-out>", `<skipped message="why">`,
		`<property name="substitute for registry.k8s.io/e2e/agnhost:2" value="Test programs"></property>`,
	} {
		if !strings.Contains(junit.String(), part) {
			t.Errorf("JUnit lacks %s:\n%s", part, junit.String())
		}
	}
	object, err := json.Marshal(r)
	if err != nil || !strings.Contains(string(object), `"substitutes":[{"name":"registry.k8s.io/e2e/agnhost:2","title":"Test programs"},`) {
		t.Errorf("JSON is %s, %v", object, err)
	}
}

// The images and their titles are data of release.yaml. The page adds what is in them.
func TestPageListsTheTestImagesOfTheCatalog(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..", "..", "..")
	c, err := catalog.Load(root)
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "conformance.md"))
	if err != nil {
		t.Fatal(err)
	}
	listed := strings.Count(string(page), "\n| `e2e-test-images/")
	for _, i := range c.Images {
		if !i.In(catalog.Test) || !i.Versioned() {
			continue
		}
		listed--
		if row := fmt.Sprintf("\n| `%s:%s` | %s |", i.Name, i.Version, i.Title); !strings.Contains(string(page), row) {
			t.Errorf("the page lacks%s", row)
		}
	}
	if listed != 0 {
		t.Errorf("the page has %d images that the catalog does not have", listed)
	}
}
