package gotest

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"slipway.build/pkg/mechanism/report"
)

// A Package is a package that was tested.
type Package struct {
	Path    string
	Outcome report.Outcome // NotRun if the run ended before its tests did
	Seconds float64
	Cached  bool    // go test had the outcome in its cache
	Tests   []*Test // in the order in which they started, with subtests
	Build   string  // output of a compile that failed

	tests      map[string]*Test
	output     strings.Builder // of the package itself; the last line is go test's own
	everything strings.Builder // the output of the package and its tests, in verbose runs
}

// Output returns what a package printed outside of tests.
func (p *Package) Output() string { return p.output.String() }

// A Test is a test, or a subtest ("TestA/b"). If it ran several times, it is the first run that failed, or else the last one.
type Test struct {
	Name       string
	Outcome    report.Outcome
	Unfinished bool // it failed because its package ended first: by a panic, a timeout, an exit
	Seconds    float64

	verdict string          // "--- FAIL: TestA (0.1s)\n"
	output  strings.Builder // without the verdict; empty if the test passed
}

// Output returns what a test printed, unless it passed.
func (t *Test) Output() string { return t.output.String() + t.verdict }

// An event is a line of `go test -json`: see `go doc test2json`, and `go help buildjson` for events of compiles.
type event struct {
	Action      string
	Package     string
	Test        string
	ImportPath  string // of what was compiled
	Output      string
	FailedBuild string // the ImportPath whose compile failed
	Elapsed     float64
}

// A collector builds packages from events.
type collector struct {
	verbose bool
	running map[string]*Package
	builds  map[string]string // output of compiles, by ImportPath
}

// line reads a line of output. It returns the package that the line ends, if any, and whether the line is an event.
func (c *collector) line(line []byte) (ended *Package, ok bool) {
	var e event
	if len(line) == 0 || line[0] != '{' || json.Unmarshal(line, &e) != nil || e.Action == "" {
		return nil, false
	}
	if e.Action == "build-output" {
		c.builds[e.ImportPath] += e.Output
	}
	if e.Package == "" {
		return nil, true
	}
	p := c.running[e.Package]
	if p == nil {
		p = &Package{Path: e.Package, Outcome: report.NotRun, tests: map[string]*Test{}}
		c.running[e.Package] = p
	}
	if e.Action == "output" && c.verbose {
		p.everything.WriteString(e.Output)
	}
	switch outcome, ends := outcomes[e.Action]; {
	case e.Test != "":
		p.test(e.Test).add(e)
	case e.Action == "output":
		p.output.WriteString(e.Output)
	case ends:
		delete(c.running, e.Package)
		p.Outcome, p.Seconds, p.Build = outcome, e.Elapsed, c.builds[e.FailedBuild]
		p.Cached = strings.Contains(p.lastLine(), "\t(cached)")
		for _, t := range p.Tests {
			if t.Outcome == report.NotRun && outcome == report.Failed {
				t.Outcome, t.Unfinished = report.Failed, true
			}
		}
		return p, true
	}
	return nil, true
}

// test returns the test with a name.
func (p *Package) test(name string) *Test {
	if p.tests[name] == nil {
		p.tests[name] = &Test{Name: name, Outcome: report.NotRun}
		p.Tests = append(p.Tests, p.tests[name])
	}
	return p.tests[name]
}

// outcomes are those that end a test or a package.
var outcomes = map[string]report.Outcome{"pass": report.Passed, "fail": report.Failed, "skip": report.Skipped}

// frame matches a line that only says that a test starts or pauses.
var frame = regexp.MustCompile(`^=== (RUN|PAUSE|CONT|NAME) `)

func (t *Test) add(e event) {
	if t.Outcome == report.Failed {
		return // of another run
	}
	switch outcome, ends := outcomes[e.Action]; {
	case ends:
		t.Outcome, t.Seconds = outcome, e.Elapsed
		if outcome == report.Passed {
			t.output.Reset()
			t.verdict = ""
		}
	case e.Action != "output" || frame.MatchString(e.Output):
	case strings.HasPrefix(strings.TrimLeft(e.Output, " "), "--- ") && strings.Contains(e.Output, ": "+t.Name+" ("):
		t.verdict = strings.TrimLeft(e.Output, " ")
	default:
		t.output.WriteString(e.Output)
	}
}

func (p *Package) lastLine() string {
	text := strings.TrimRight(p.Output(), "\n")
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// failed returns the outermost tests that failed.
func (p *Package) failed() []*Test {
	var failed []*Test
	for _, t := range p.Tests {
		if t.Outcome == report.Failed && !strings.Contains(t.Name, "/") {
			failed = append(failed, t)
		}
	}
	return failed
}

// text returns what go test prints about a package. In verbose runs that is everything.
func (p *Package) text(verbose bool) string {
	switch {
	case p.Build != "":
		return p.Build + p.Output()
	case verbose:
		return p.everything.String()
	case p.Outcome == report.Failed:
		text := ""
		for _, t := range p.failed() {
			text += p.family(t)
		}
		return text + p.Output()
	case p.Output() != "":
		return p.lastLine() + "\n"
	}
	return ""
}

// family returns what a test and its failed subtests printed, each below the line with its outcome, as go test prints it.
func (p *Package) family(root *Test) string {
	var tests []*Test // each follows its parent, although subtests that run side by side start in any order
	for _, t := range p.Tests {
		if t != root && (t.Outcome != report.Failed || !strings.HasPrefix(t.Name, root.Name+"/")) {
			continue
		}
		at, parent := len(tests), t.Name[:strings.LastIndexByte(t.Name, '/')+1]
		for at > 1 && !strings.HasPrefix(tests[at-1].Name+"/", parent) {
			at--
		}
		tests = slices.Insert(tests, at, t)
	}
	var b strings.Builder
	for _, t := range tests {
		indent := strings.Repeat("    ", strings.Count(t.Name, "/"))
		b.WriteString(indent + cmp.Or(t.verdict, "--- FAIL: "+t.Name+" (unfinished)\n"))
		for line := range strings.Lines(t.output.String()) {
			b.WriteString(indent + line)
		}
	}
	return b.String()
}
