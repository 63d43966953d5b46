// Soak runs the integration tests that take too long for every change: they repeat failures many times, compile everything from nothing,
// break every part of a cluster. They are in parts of under an hour. A test that has passed at this commit is not run again:
//
//	make soak                             all parts, one after another, and then what each one gave last
//	make soak WHAT="kills clusters"       these parts
//	make soak WHAT=list                   only what each part gave last
//
// Results are kept in _output/soak.json. Those of a tree with changes that are not committed count for nobody else, so there every test
// runs.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A result is what a test gave when it ran last.
type result struct {
	Commit  string // and .dirty, if there were other changes
	Result  string // pass, fail, skip, or the empty string if it did not end
	Seconds float64
	Time    time.Time
}

// results have the last one of each test, in a file.
type results struct {
	file   string
	of     map[string]result
	commit string
}

func main() {
	if err := soak(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

func soak(names []string, out io.Writer) error {
	commit, err := commitOf(".")
	if err != nil {
		return err
	}
	last, err := readResults(filepath.Join("_output", "soak.json"), commit)
	if err != nil {
		return err
	}
	chosen := parts
	if !slices.Equal(names, []string{"list"}) {
		if chosen, err = choose(names); err != nil {
			return err
		}
		for _, p := range chosen {
			err = errors.Join(err, p.run(last, out))
		}
	}
	return errors.Join(err, last.table(out, chosen))
}

// choose returns the parts with some names, or all.
func choose(names []string) ([]part, error) {
	if len(names) == 0 {
		return parts, nil
	}
	var chosen []part
	for _, name := range names {
		i := slices.IndexFunc(parts, func(p part) bool { return p.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no part %q; make soak WHAT=list lists them", name)
		}
		chosen = append(chosen, parts[i])
	}
	return chosen, nil
}

// commitOf names what a tree has.
func commitOf(dir string) (string, error) {
	git := func(args ...string) (string, error) {
		out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).Output()
		if err != nil {
			return "", fmt.Errorf("git %s: %w", args[0], err)
		}
		return strings.TrimSpace(string(out)), nil
	}
	commit, err := git("rev-parse", "HEAD")
	if err != nil {
		return "", err
	}
	changes, err := git("status", "--porcelain")
	if changes != "" {
		commit += dirty
	}
	return commit, err
}

const dirty = ".dirty"

func readResults(file, commit string) (*results, error) {
	r := &results{file: file, of: map[string]result{}, commit: commit}
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &r.of)
	}
	if err != nil {
		return nil, fmt.Errorf("%s, which can be removed: %w", file, err)
	}
	return r, nil
}

// add keeps a result, also if the run is interrupted later.
func (r *results) add(test, what string, seconds float64) error {
	r.of[test] = result{r.commit, what, seconds, time.Now().Truncate(time.Second)}
	data, err := json.MarshalIndent(r.of, "", "\t")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(r.file), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(r.file+".new", append(data, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(r.file+".new", r.file)
}

// passed reports whether a test has passed at this commit.
func (r *results) passed(test string) bool {
	return r.of[test].Result == "pass" && r.of[test].Commit == r.commit && !strings.HasSuffix(r.commit, dirty)
}

// pending returns the part's tests that have not passed at this commit.
func (p part) pending(last *results) []string {
	return slices.DeleteFunc(slices.Clone(p.tests), last.passed)
}

// command returns the command line that runs some tests.
func (p part) command(tests []string) []string {
	packages := p.packages
	if packages == "" {
		packages = "./test/integration"
	}
	return []string{"go", "test", "-json", "-tags=integration,soak", "-timeout=3h", "-run=^(" + strings.Join(tests, "|") + ")$", packages}
}

// run runs the part's tests that have not passed at this commit.
func (p part) run(last *results, out io.Writer) error {
	tests := p.pending(last)
	if len(tests) == 0 {
		fmt.Fprintf(out, "%s: has passed at this commit\n", p.name)
		return nil
	}
	args := p.command(tests)
	fmt.Fprintf(out, "%s: about %d minutes: %s\n", p.name, p.minutes, strings.Join(args, " "))
	for _, test := range tests {
		if err := last.add(test, "", 0); err != nil {
			return err
		}
	}
	c := exec.Command(args[0], args[1:]...)
	c.Stderr = os.Stderr
	events, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	if err := last.read(events, tests, out); err != nil {
		return errors.Join(err, c.Wait())
	}
	if err := c.Wait(); err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	for _, test := range tests {
		if last.of[test].Result != "pass" { // a skipped test has shown nothing
			return fmt.Errorf("%s: %s did not pass: %q", p.name, test, last.of[test].Result)
		}
	}
	return nil
}

// read reads what go test -json prints, keeps the results of tests, and copies what they say.
func (r *results) read(events io.Reader, tests []string, out io.Writer) error {
	for lines := bufio.NewReader(events); ; {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		var e struct {
			Action, Test, Output string
			Elapsed              float64
		}
		if err := json.Unmarshal(line, &e); err != nil {
			fmt.Fprintf(out, "%s", line)
			continue
		}
		if e.Action == "output" {
			fmt.Fprint(out, e.Output)
		}
		if slices.Contains(tests, e.Test) && slices.Contains([]string{"pass", "fail", "skip"}, e.Action) {
			if err := r.add(e.Test, e.Action, e.Elapsed); err != nil {
				return err
			}
		}
	}
}

// table prints what each part gave last.
func (r *results) table(out io.Writer, parts []part) error {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%-20s %8s %8s  %s\n", "part", "passed", "minutes", "else")
	for _, p := range parts {
		passed, seconds, other := 0, 0.0, []string{}
		for _, test := range p.tests {
			last, ran := r.of[test]
			seconds += last.Seconds
			switch {
			case ran && last.Result == "pass" && last.Commit == r.commit:
				passed++
			case ran && last.Result == "":
				other = append(other, fmt.Sprintf("%s did not end at %s", test, short(last)))
			case ran:
				other = append(other, fmt.Sprintf("%s: %s at %s", test, last.Result, short(last)))
			default:
				other = append(other, test+" never ran")
			}
		}
		fmt.Fprintf(&b, "%-20s %8s %8.0f  %s\n", p.name, fmt.Sprintf("%d of %d", passed, len(p.tests)), seconds/60, strings.Join(other, "; "))
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// short returns the commit and the day of a result.
func short(last result) string {
	commit, changed := strings.CutSuffix(last.Commit, dirty)
	commit = commit[:min(len(commit), 10)]
	if changed {
		commit += dirty
	}
	return commit + ", " + last.Time.Format(time.DateOnly)
}
