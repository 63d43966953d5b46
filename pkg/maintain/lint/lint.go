package lint

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"slipway.build/pkg/maintain/kubetest"
	"slipway.build/pkg/mechanism/tail"
	"slipway.build/pkg/tree/catalog"
)

const (
	ToolName = "slipway-lint" // by which `go vet` starts the tool of package vettool

	// Analyzers of upstream's, whose configuration is in files of these names beside the tool.
	Logs  = "logcheck"
	Names = "forbidigo"
)

// HasTool says that this program can be started as the tool.
var HasTool bool

// Options say what to look for, and where.
type Options struct {
	Platforms []catalog.Platform
	All       bool // also problems of upstream's that no patch brings in
	Say       func(string)
}

// A Problem is a mistake in code.
type Problem struct {
	File      string   `json:"file,omitempty"` // relative to the tree's root, slash-separated; "" if the problem is in no certain file
	Line      int      `json:"line,omitempty"`
	Column    int      `json:"column,omitempty"` // in bytes, from 1
	Check     string   `json:"check"`            // an analyzer's name, "compile", "import-boss", "feature-gates" or "api"
	Message   string   `json:"message"`
	Platforms []string `json:"platforms,omitempty"` // on which the problem was found; none if it does not depend on them
}

func (p Problem) String() string {
	text := p.Check + ": " + p.Message
	if p.File != "" {
		text = fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, text)
	}
	return text
}

// linter returns the name that golangci-lint has for the check.
func (p Problem) linter() string {
	if p.Check == Logs || p.Check == Names {
		return p.Check
	}
	return "govet"
}

// compile is the check of problems that the compiler reports.
const compile = "compile"

// Run analyzes the packages that a request names, and those in which the tree's patches for Kubernetes change files. The caller must hold
// the lock on the copy of upstream's repository, as for tests.
func Run(ctx context.Context, s *kubetest.Sources, r kubetest.Request, o Options) ([]Problem, error) {
	l, err := prepare(s, o)
	if l != nil {
		defer os.RemoveAll(l.dir)
	}
	if err != nil {
		return nil, err
	}
	l.upstream = append(l.upstream, r.Upstream...)
	for _, on := range o.Platforms {
		for _, dir := range slices.Sorted(maps.Keys(r.Tree)) {
			if err := l.vet(ctx, on, dir, r.Tree[dir]); err != nil {
				return nil, err
			}
		}
		if len(l.upstream) > 0 {
			if err := l.vet(ctx, on, "", l.upstream); err != nil {
				return nil, err
			}
		}
	}
	if len(l.touched) > 0 {
		o.Say("checking imports, feature gates and fields of the API")
		more, err := l.runPrograms(ctx)
		if err != nil {
			return nil, err
		}
		fields, err := checkFields(s)
		if err != nil {
			return nil, err
		}
		l.problems = slices.Concat(l.problems, more, fields)
	}
	return l.sorted(), nil
}

// A linter collects the problems of a run.
type linter struct {
	*kubetest.Sources
	Options
	rules    rules
	dir      string                  // of the link to this program
	flags    []string                // of go vet
	upstream []string                // patterns of packages in the components' module, with upstream's repository
	touched  []string                // folders, as import paths, in which patches change files
	found    []string                // packages of the components' module and of upstream's that have files for a platform
	gates    bool                    // patches may change feature gates
	imports  bool                    // patches may change imports, or which are forbidden
	changed  map[string]map[int]bool // lines that patches add or change, by paths in upstream's repository
	lines    map[string][]string     // of files that have problems
	problems []Problem
}

// prepare finds out what patches change, and how upstream configures analyzers.
func prepare(s *kubetest.Sources, o Options) (*linter, error) {
	if !HasTool {
		return nil, errors.New("this program links no analyzers: package vettool has them")
	}
	l := &linter{Sources: s, Options: o, changed: map[string]map[int]bool{}, lines: map[string][]string{}}
	touched, before, err := s.Touched()
	if err != nil {
		return nil, err
	}
	l.touched, l.upstream = touched, slices.Clone(touched)
	for name, old := range before {
		now, err := os.ReadFile(filepath.Join(s.Repository, filepath.FromSlash(name)))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		l.changed[name] = changedLines(old, now)
		l.gates = l.gates || defineGates(name, old, now)
		l.imports = l.imports || o.All || changeImports(name, old, now)
	}
	folder := filepath.Join(s.Root, filepath.FromSlash(kubetest.Folder))
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	l.dir = filepath.Join(folder, "lint")
	if err := errors.Join(os.RemoveAll(l.dir), os.MkdirAll(l.dir, 0o777)); err != nil { // a killed run has left it
		return nil, err
	}
	tool := filepath.Join(l.dir, ToolName)
	l.flags = []string{"-json", "-buildvcs=false", "-trimpath", "-tags=" + strings.Join(s.Tags, ","), "-vettool=" + tool}
	if err := os.Symlink(program, tool); err != nil || s.Repository == "" {
		return l, err
	}
	if l.rules, err = readRules(s.Repository); err != nil {
		return l, err
	}
	flag, err := l.rules.write(s.Repository, l.dir)
	l.flags = append(l.flags, flag)
	return l, err
}

// vet analyzes packages for one platform: those of a module of the tree, or, if dir is "", of the components' module.
func (l *linter) vet(ctx context.Context, on catalog.Platform, dir string, patterns []string) error {
	command := func(verb string, args ...string) *exec.Cmd {
		if dir == "" {
			return l.Command(ctx, on.OS, on.Arch, verb, args...)
		}
		return l.Go.Command(ctx, filepath.Join(l.Root, filepath.FromSlash(dir)), on.OS, on.Arch, append([]string{verb}, args...)...)
	}
	// go vet fails for a package without files for the platform.
	list := command("list", slices.Concat([]string{"-e", "-find", "-tags=" + strings.Join(l.Tags, ","),
		"-f={{if or .GoFiles .CgoFiles .InvalidGoFiles .TestGoFiles .XTestGoFiles}}{{.ImportPath}}\t{{.Dir}}{{end}}"}, patterns)...)
	var stderr tail.Lines
	list.Stderr = &stderr
	out, err := list.Output()
	if err != nil {
		return stderr.Explain(fmt.Errorf("go list: %w", err))
	}
	dirs := map[string]string{} // of packages
	for line := range strings.Lines(string(out)) {
		if pkg, dir, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
			dirs[pkg] = dir
		}
	}
	if len(dirs) == 0 {
		l.Say("nothing is analyzed for " + on.String() + ": no package has files for it")
		return nil
	}
	packages := slices.Sorted(maps.Keys(dirs))
	if dir == "" {
		l.found = append(l.found, packages...)
	}
	l.Say("analyzing what is compiled for " + on.String())
	var stdout, messages bytes.Buffer
	cmd := command("vet", slices.Concat(l.flags, packages)...)
	cmd.Stdout, cmd.Stderr = &stdout, &messages
	failed := cmd.Run()
	if _, exited := errors.AsType[*exec.ExitError](failed); failed != nil && !exited {
		return failed
	}
	compiled, err := l.readCompiler(cmd.Dir, on, messages.String())
	if err != nil {
		return err
	}
	if failed != nil && compiled {
		var last tail.Lines
		last.Write(messages.Bytes())
		return last.Explain(fmt.Errorf("go vet: %w", failed))
	}
	return l.readVet(dirs, on, &stdout)
}

// message matches a line of the compiler's or of vet's messages.
var message = regexp.MustCompile(`^(?:vet: )?(.+?\.go:\d+(?::\d+)?): (.+)$`)

// readCompiler reads the messages of the compiler, whose files are relative to dir. It reports whether there are none.
func (l *linter) readCompiler(dir string, on catalog.Platform, messages string) (none bool, err error) {
	none = true
	for line := range strings.Lines(messages) {
		m := message.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		none = false
		if !filepath.IsAbs(m[1]) {
			m[1] = filepath.Join(dir, m[1])
		}
		if err := l.add(on, m[1], compile, m[2]); err != nil {
			return false, err
		}
	}
	return none, nil
}

// readVet reads what `go vet -json` prints: an object for each package, with diagnostics by analyzer. Their files may be in the folder of
// another tree, whose result the go command has kept for this one, too.
func (l *linter) readVet(dirs map[string]string, on catalog.Platform, out io.Reader) error {
	for d := json.NewDecoder(out); ; {
		var packages map[string]map[string]json.RawMessage
		if err := d.Decode(&packages); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("go vet printed no JSON: %w", err)
		}
		for pkg, analyzers := range packages {
			name, _, _ := strings.Cut(pkg, " [") // as in "example.com/pkg_test [example.com/pkg.test]"
			dir, ok := dirs[name]
			if !ok {
				dir = dirs[strings.TrimSuffix(name, "_test")]
			}
			for check, data := range analyzers {
				var diagnostics []struct{ Posn, Message string }
				if err := json.Unmarshal(data, &diagnostics); err != nil { // an analyzer that failed has an object with the reason
					return fmt.Errorf("%s, %s: %s", pkg, check, data)
				}
				for _, found := range diagnostics {
					if err := l.add(on, filepath.Join(dir, filepath.Base(found.Posn)), check, found.Message); err != nil {
						return err
					}
				}
			}
		}
	}
}

// posn matches a position.
var posn = regexp.MustCompile(`^(.+?):(\d+)(?::(\d+))?$`)

// add adds a problem at a position such as /file.go:3:14, if it is in the tree's own code, or if patches bring it in.
func (l *linter) add(on catalog.Platform, at, check, text string) error {
	m := posn.FindStringSubmatch(at)
	if m == nil {
		return fmt.Errorf("%s: %s: %q is no position", check, text, at)
	}
	file := m[1]
	rel, err := filepath.Rel(l.Root, file)
	if err != nil {
		return err
	}
	p := Problem{File: filepath.ToSlash(rel), Check: check, Message: text, Platforms: []string{on.String()}}
	p.Line, _ = strconv.Atoi(m[2])
	p.Column, _ = strconv.Atoi(cmp.Or(m[3], "1"))
	if p.Check != compile {
		silenced, err := l.silenced(file, p)
		if err != nil || silenced {
			return err
		}
		name, err := filepath.Rel(cmp.Or(l.Repository, l.Root), file)
		isUpstream := l.Repository != "" && err == nil && filepath.IsLocal(name)
		if isUpstream && (l.rules.hides(p, filepath.ToSlash(name)) || !l.All && !l.changed[filepath.ToSlash(name)][p.Line]) ||
			!isUpstream && p.Check == Names {
			return nil
		}
	}
	same := slices.IndexFunc(l.problems, func(q Problem) bool { return q.String() == p.String() })
	if same < 0 {
		l.problems = append(l.problems, p)
	} else if q := &l.problems[same]; !slices.Contains(q.Platforms, on.String()) {
		q.Platforms = append(q.Platforms, on.String())
	}
	return nil
}

// noLint matches a comment that hides problems of its line, or of the next one if nothing else is on its own.
var noLint = regexp.MustCompile(`//\s*nolint(?::([\w, -]+))?(?:\s|$)`)

// silenced reports whether a comment in the file hides a problem.
func (l *linter) silenced(file string, p Problem) (bool, error) {
	lines, ok := l.lines[file]
	if !ok {
		data, err := os.ReadFile(file)
		if err != nil {
			return false, err
		}
		lines = strings.Split(string(data), "\n")
		l.lines[file] = lines
	}
	hides := func(row int, alone bool) bool {
		if row < 1 || row > len(lines) || alone && !strings.HasPrefix(strings.TrimSpace(lines[row-1]), "//") {
			return false
		}
		m := noLint.FindStringSubmatch(lines[row-1])
		return m != nil && (m[1] == "" || slices.ContainsFunc(strings.Split(m[1], ","), func(name string) bool {
			return slices.Contains([]string{p.Check, p.linter(), "all"}, strings.TrimSpace(name))
		}))
	}
	return hides(p.Line, false) || hides(p.Line-1, true), nil
}

// sorted returns the problems by place.
func (l *linter) sorted() []Problem {
	slices.SortFunc(l.problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), a.Line-b.Line, a.Column-b.Column, cmp.Compare(a.Check, b.Check),
			cmp.Compare(a.Message, b.Message))
	})
	return l.problems
}
