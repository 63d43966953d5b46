package kubetest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"slipway.build/pkg/make/road"
	"slipway.build/pkg/mechanism/atomicfile"
	"slipway.build/pkg/mechanism/gotest"
)

// Options say how tests run. They have the meaning of upstream's variables.
type Options struct {
	Race    []string // KUBE_RACE: -race
	Timeout []string // KUBE_TIMEOUT: -timeout=180s, of one package
	Args    []string // KUBE_TEST_ARGS: for go test, and after -args for the test
	GoFlags string   // GOFLAGS
	Cover   *Cover   // KUBE_COVER=y
	Env     []string // the user's environment, and variables for tests
	Show    gotest.Options
	Err     io.Writer
}

// Cover says how coverage is measured.
type Cover struct {
	Mode string // KUBE_COVERMODE: atomic
	Dir  string // KUBE_COVER_REPORT_DIR: gets combined-coverage.out and combined-coverage.html
}

// A run is one run of go test.
type run struct {
	dir      string // below the root; "" for the components' module, with upstream's repository
	flags    []string
	packages []string
}

// Run tests what a request names. The summary has the packages that ended before an error.
func (s *Sources) Run(ctx context.Context, r Request, o Options) (*gotest.Summary, error) {
	all := &gotest.Summary{}
	runs, err := s.runs(ctx, r)
	if err == nil {
		err = o.findCompiler()
	}
	if err == nil && o.Cover != nil {
		err = os.MkdirAll(o.Cover.Dir, 0o777)
	}
	if err != nil {
		return nil, err
	}
	var profiles []string
	for i, r := range runs {
		var flags []string
		if o.Cover != nil {
			profile := filepath.Join(o.Cover.Dir, fmt.Sprintf("coverage-%d.out", i+1))
			profiles = append(profiles, profile)
			flags = append(flags, "-cover", "-covermode="+o.Cover.Mode, "-coverprofile="+profile)
		}
		cmd := s.goTest(ctx, r, o, flags...)
		o.setEnv(cmd)
		if slices.Contains(r.flags, "-trimpath") { // with upstream's flags, test servers find their files by paths as they are
			cmd.Env = append(cmd.Env, "TEST_SRCDIR="+filepath.Join(s.Root, filepath.FromSlash(Folder)), "TEST_WORKSPACE="+links)
		}
		cmd.Stderr = o.Err
		summary, err := gotest.Run(ctx, cmd, o.Show)
		all.Join(summary)
		if err != nil {
			return all, err
		}
	}
	return all, s.reportCoverage(ctx, profiles, o)
}

// CommandLines returns the command lines that Run would run.
func (s *Sources) CommandLines(ctx context.Context, r Request, o Options) ([]string, error) {
	runs, err := s.runs(ctx, r)
	var lines []string
	for _, r := range runs {
		cmd := s.goTest(ctx, r, o)
		rel, err := filepath.Rel(s.Root, cmd.Dir)
		if err != nil {
			return nil, err
		}
		lines = append(lines, road.ShellCommand(filepath.ToSlash(rel), nil, append([]string{"go"}, cmd.Args[1:]...)...))
	}
	return lines, err
}

// runs returns the runs of go test that a request needs.
func (s *Sources) runs(ctx context.Context, r Request) ([]run, error) {
	var runs []run
	if len(r.Upstream) > 0 {
		groups, err := s.Select(ctx, r.Upstream, s.Tags)
		if err != nil {
			return nil, err
		}
		for _, g := range groups {
			runs = append(runs, run{"", g.Flags, g.Packages})
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(r.Tree)) {
		runs = append(runs, run{dir, nil, r.Tree[dir]})
	}
	return runs, nil
}

// goTest prepares a run, with more flags.
func (s *Sources) goTest(ctx context.Context, r run, o Options, flags ...string) *exec.Cmd {
	args := slices.Concat([]string{"-json"}, r.flags, o.Race, o.Timeout, flags, r.packages, o.Args)
	if r.dir != "" {
		return s.Go.Command(ctx, filepath.Join(s.Root, filepath.FromSlash(r.dir)), "", "", append([]string{"test"}, args...)...)
	}
	return s.Command(ctx, "", "", "test", args...)
}

// setEnv gives a command the user's environment, without the settings of Go that would change what is compiled.
func (o Options) setEnv(cmd *exec.Cmd) {
	env := slices.DeleteFunc(slices.Clone(o.Env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains([]string{"GOFLAGS", "GOOS", "GOARCH", "GOROOT", "GOEXPERIMENT", "GOWORK"}, name)
	})
	cmd.Env = append(env, cmd.Env...) // the last one wins
	cmd.Env = append(cmd.Env, "GOFLAGS="+o.GoFlags, "PATH="+o.path())
	if o.races() {
		cmd.Env = append(cmd.Env, "CGO_ENABLED=1")
	}
}

// getenv returns the value of a variable in the environment.
func (o Options) getenv(name string) string {
	for _, kv := range slices.Backward(o.Env) {
		if value, ok := strings.CutPrefix(kv, name+"="); ok {
			return value
		}
	}
	return ""
}

// races reports whether tests are compiled with the race detector.
func (o Options) races() bool {
	return slices.ContainsFunc(o.Race, func(flag string) bool { return strings.TrimLeft(flag, "-") == "race" })
}

// findCompiler returns an error if the race detector is requested, and there is no C compiler.
func (o Options) findCompiler() error {
	if !o.races() || o.getenv("CC") != "" {
		return nil
	}
	if _, err := exec.LookPath("gcc"); err != nil { // go's default
		return fmt.Errorf("-race needs a C compiler: %w: install gcc, or name another in CC", err)
	}
	return nil
}

// path returns the PATH of the environment.
func (o Options) path() string { return cmp.Or(o.getenv("PATH"), os.Getenv("PATH")) }

// reportCoverage joins profiles, and writes an HTML page of them.
func (s *Sources) reportCoverage(ctx context.Context, profiles []string, o Options) error {
	var joined bytes.Buffer
	for _, name := range profiles {
		data, err := os.ReadFile(name)
		if errors.Is(err, os.ErrNotExist) {
			continue // nothing was compiled
		}
		if err != nil {
			return err
		}
		if joined.Len() > 0 {
			_, data, _ = bytes.Cut(data, []byte("\n")) // the mode, which is the same
		}
		joined.Write(data)
		if err := os.Remove(name); err != nil {
			return err
		}
	}
	if joined.Len() == 0 {
		return nil
	}
	name := filepath.Join(o.Cover.Dir, "combined-coverage.out")
	if err := atomicfile.WriteFile(name, joined.Bytes(), 0o644); err != nil {
		return err
	}
	page := filepath.Join(o.Cover.Dir, "combined-coverage.html")
	var stderr bytes.Buffer
	cmd := s.Go.Command(ctx, filepath.Join(s.Root, filepath.FromSlash(s.Components)), "", "", "tool", "cover", "-html="+name, "-o="+page)
	if s.modfile != "" {
		cmd.Env = append(cmd.Env, "GOFLAGS=-modfile="+filepath.FromSlash(s.modfile))
	}
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		return explain("go tool cover", err, stderr.String())
	}
	_, err := fmt.Fprintf(cmp.Or[io.Writer](o.Err, io.Discard), "coverage: %s\n", page)
	return err
}
