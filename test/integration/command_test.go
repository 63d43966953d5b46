//go:build integration

package integration

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A result is the outcome of a command.
type result struct {
	line   string
	stdout string
	stderr string
	code   int // -1 if a signal ended it
	took   time.Duration
}

// ok requires success.
func (r result) ok(t *testing.T) result {
	t.Helper()
	if r.code != 0 {
		t.Fatalf("%v", r)
	}
	return r
}

// fails requires an exit code and texts on standard error.
func (r result) fails(t *testing.T, code int, texts ...string) result {
	t.Helper()
	if r.code != code {
		t.Errorf("want exit code %d: %v", code, r)
	}
	for _, text := range texts {
		if !strings.Contains(r.stderr, text) {
			t.Errorf("standard error does not contain %q: %v", text, r)
		}
	}
	return r
}

func (r result) String() string {
	return fmt.Sprintf("%s: exit code %d after %v\n--- stdout\n%s--- stderr\n%s", r.line, r.code, r.took.Round(time.Millisecond),
		tail(r.stdout), tail(r.stderr))
}

// tail returns the end of a text, where errors are.
func tail(text string) string {
	const most = 4000
	if len(text) > most {
		return "…" + text[len(text)-most:]
	}
	return text
}

// run runs a command to its end.
func run(t *testing.T, dir string, env []string, name string, args ...string) result {
	t.Helper()
	c := command(dir, env, name, args...)
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	start := time.Now()
	err := c.Start()
	if err == nil {
		giveWay(t, c)
		err = c.Wait()
	}
	spend(t.Name(), c.ProcessState)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s: %v", c, err)
	}
	return result{strings.Join(c.Args, " "), stdout.String(), stderr.String(), c.ProcessState.ExitCode(), time.Since(start)}
}

// made runs a command that makes what several tests share, and returns its error with its output.
func made(what string, c *exec.Cmd) error { return madeAt(0, what, c) }

// madeBeside does so at the priority of what computes while clusters wait.
func madeBeside(what string, c *exec.Cmd) error { return madeAt(low, what, c) }

func madeAt(priority int, what string, c *exec.Cmd) error {
	start := time.Now()
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	err := c.Start()
	if err == nil {
		_ = syscall.Setpriority(syscall.PRIO_PROCESS, c.Process.Pid, priority) // it may have ended
		err = c.Wait()
	}
	spend("("+what+")", c.ProcessState)
	fmt.Printf("made %s in %.1f s\n", what, time.Since(start).Seconds())
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", c, err, tail(out.String()))
	}
	return nil
}

// spent has the processor time of commands by the test that ran them, or by what several tests share, in parentheses.
var spent struct {
	sync.Mutex
	by map[string]time.Duration
}

// spend adds the processor time of a command that has ended, with that of the commands that it has waited for.
func spend(name string, s *os.ProcessState) {
	if s == nil {
		return // it did not start
	}
	name, _, _ = strings.Cut(name, "/")
	spendTime(name, s.UserTime()+s.SystemTime())
}

func spendTime(name string, d time.Duration) {
	spent.Lock()
	defer spent.Unlock()
	if spent.by == nil {
		spent.by = map[string]time.Duration{}
	}
	spent.by[name] += d
}

// spentBy returns the processor time of a test's commands that have ended.
func spentBy(name string) time.Duration {
	spent.Lock()
	defer spent.Unlock()
	return spent.by[name]
}

// printSpent prints the seconds of processor time of what tests share for the table of test/slowest.
func printSpent() {
	var own syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &own) == nil {
		spendTime("(the tests themselves)", time.Duration(own.Utime.Nano()+own.Stime.Nano()))
	}
	for name, d := range spent.by {
		if !strings.HasPrefix(name, "(") {
			continue // its test has said so
		}
		fmt.Printf("processor %.1f %s\n", d.Seconds(), name)
	}
}

// ours reports whether a variable has a meaning for the commands under test. make sets some of them for the tests themselves.
func ours(name string) bool {
	begins := func(with string) bool { return strings.HasPrefix(name, with) }
	return slices.ContainsFunc([]string{"KUBE_", "GIT_", "SLIPWAY_CACHE"}, begins) || slices.Contains([]string{
		"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "MAKE_TERMOUT", "MAKE_TERMERR", "WHAT", "ROAD", "DBG", "CI", "SOURCE_DATE_EPOCH",
		"GOFLAGS", "GOLDFLAGS", "GOGCFLAGS", "GOOS", "GOARCH", "GOAMD64", "GOARM64", "GOEXPERIMENT", "GODEBUG", "GOWORK", "CGO_ENABLED",
		"MAGEFILE_VERBOSE", "MAGEFILE_DEBUG",
	}, name)
}

// command prepares a command in a clean environment, to which env is added.
func command(dir string, env []string, name string, args ...string) *exec.Cmd {
	c := exec.Command(name, args...)
	c.Dir = dir
	for _, kv := range os.Environ() {
		if key, _, _ := strings.Cut(kv, "="); !ours(key) {
			c.Env = append(c.Env, kv)
		}
	}
	c.Env = append(append(c.Env, "PWD="+dir), env...)
	return c
}

// likeRelease has the settings of make's own compiles. What is compiled with them is compiled once: Go's standard library, the
// toolchain, and components whose packages are in the cache from a release.
var likeRelease = []string{"GOFLAGS=-trimpath -buildvcs=false", "CGO_ENABLED=0"}

// goEnv returns a setting of the Go that runs the tests.
func goEnv(t *testing.T, name string) string {
	t.Helper()
	return strings.TrimSpace(run(t, workspace, nil, "go", "env", name).ok(t).stdout)
}

func sha256File(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
