package gotest

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"slipway.build/pkg/mechanism/report"
)

// An event is a line of `go test -json`: see `go doc test2json`, and `go help buildjson` for those of the compile.
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
	packages map[string]*packageRun
	builds   map[string]*bytes.Buffer // what compiles printed, by ImportPath
	verbose  bool
}

// A packageRun is a package that is being tested.
type packageRun struct {
	Package
	tests map[string]int // index in Tests
	all   bytes.Buffer   // everything in its order, only in verbose runs
	own   bytes.Buffer   // what it printed outside of tests
	texts []bytes.Buffer // what each test printed
}

func newCollector(verbose bool) *collector {
	return &collector{packages: map[string]*packageRun{}, builds: map[string]*bytes.Buffer{}, verbose: verbose}
}

// line reads a line of output. It returns the package that the line ends, if any, and whether the line is an event.
func (c *collector) line(line []byte) (ended *Package, ok bool) {
	var e event
	if len(line) == 0 || line[0] != '{' || json.Unmarshal(line, &e) != nil || e.Action == "" {
		return nil, false
	}
	switch {
	case e.Action == "build-output":
		c.build(e.ImportPath).WriteString(e.Output)
	case e.Package == "":
	case e.Test != "":
		c.pkg(e.Package).test(e, c.verbose)
	case e.Action == "output":
		p := c.pkg(e.Package)
		p.own.WriteString(e.Output)
		if c.verbose {
			p.all.WriteString(e.Output)
		}
	case e.Action == "pass" || e.Action == "fail" || e.Action == "skip":
		return c.end(e), true
	}
	return nil, true
}

func (c *collector) build(path string) *bytes.Buffer {
	if c.builds[path] == nil {
		c.builds[path] = &bytes.Buffer{}
	}
	return c.builds[path]
}

func (c *collector) pkg(path string) *packageRun {
	if c.packages[path] == nil {
		c.packages[path] = &packageRun{Package: Package{Path: path}, tests: map[string]int{}}
	}
	return c.packages[path]
}

// outcomes are those that end a test or a package.
var outcomes = map[string]report.Outcome{"pass": report.Passed, "fail": report.Failed, "skip": report.Skipped}

func (p *packageRun) test(e event, verbose bool) {
	i, known := p.tests[e.Test]
	if !known {
		i = len(p.Tests)
		p.tests[e.Test] = i
		p.Tests = append(p.Tests, Test{Name: e.Test, Outcome: report.NotRun})
		p.texts = append(p.texts, bytes.Buffer{})
	}
	if e.Action == "output" {
		if verbose {
			p.all.WriteString(e.Output)
		}
		if !isFrame(e.Output) {
			p.texts[i].WriteString(e.Output)
		}
		return
	}
	if outcome, ends := outcomes[e.Action]; ends {
		p.Tests[i].Outcome, p.Tests[i].Seconds = outcome, e.Elapsed
		if outcome == report.Passed {
			p.texts[i] = bytes.Buffer{} // nothing prints or reports it
		}
	}
}

// isFrame reports whether a line only says that a test starts or pauses.
func isFrame(line string) bool {
	return strings.HasPrefix(line, "=== ") && slices.ContainsFunc([]string{"RUN ", "PAUSE ", "CONT ", "NAME "}, func(word string) bool {
		return strings.HasPrefix(line[len("=== "):], word)
	})
}

// end completes a package.
func (c *collector) end(e event) *Package {
	p := c.pkg(e.Package)
	delete(c.packages, e.Package)
	p.Outcome, p.Seconds = outcomes[e.Action], e.Elapsed
	for i := range p.Tests {
		p.Tests[i].Output = p.texts[i].String()
		if p.Tests[i].Outcome == report.NotRun && p.Outcome == report.Failed {
			p.Tests[i].Outcome, p.Tests[i].Unfinished = report.Failed, true
		}
	}
	p.Output = p.own.String()
	if e.FailedBuild != "" {
		p.Build = c.build(e.FailedBuild).String()
	}
	p.said = p.all.String()
	p.Cached = strings.Contains(lastLine(p.Output), "\t(cached)")
	return &p.Package
}

// interrupted returns the packages that did not end, by path.
func (c *collector) interrupted() []Package {
	var left []Package
	for _, p := range c.packages {
		p.Outcome, p.Output = report.NotRun, p.own.String()
		left = append(left, p.Package)
	}
	slices.SortFunc(left, func(a, b Package) int { return strings.Compare(a.Path, b.Path) })
	return left
}

func lastLine(text string) string {
	text = strings.TrimRight(text, "\n")
	return text[strings.LastIndexByte(text, '\n')+1:]
}
