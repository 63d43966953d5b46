package machine

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

const killed = "be killed while a command runs"

// TestMain is also the process that dies before its command does.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == killed {
		_, _ = Output(context.Background(), "", "sh", "-c", "echo $$ >"+os.Args[2]+"; exec sleep 1000")
		return
	}
	os.Exit(m.Run())
}

func TestCommandEndsWithAKilledProcess(t *testing.T) {
	t.Parallel()
	mark := filepath.Join(t.TempDir(), "pid")
	parent := exec.Command(os.Args[0], killed, mark)
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	var command Process
	limit, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	started := Retry(limit, time.Millisecond, func() error {
		text, err := os.ReadFile(mark)
		if err == nil {
			command.PID, err = strconv.Atoi(strings.TrimSpace(string(text)))
		}
		if err == nil {
			command.Start, err = startTime(command.PID)
		}
		return err
	})
	_ = parent.Process.Kill()
	_ = parent.Wait()
	if started != nil {
		t.Fatal(started)
	}
	if err := command.Await(limit); err != nil {
		t.Errorf("the command still runs: %v", err)
	}
}

func TestProcessThatIsNotRecordedDoesNothing(t *testing.T) {
	t.Parallel()
	mark := filepath.Join(t.TempDir(), "mark")
	c := exec.Command("/bin/sh", "-c", waitForGo, "sh", "touch", mark)
	// Standard input is at its end, as it is when the process that started it is killed.
	if err := c.Run(); err == nil {
		t.Error("it claims success")
	}
	full, started := errors.New("no space"), Process{}
	err := Start("/", filepath.Join(t.TempDir(), "log"), 0, func(p Process) error { started = p; return full }, "touch", mark)
	if !errors.Is(err, full) {
		t.Errorf("error %v", err)
	}
	limit, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := started.Await(limit); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("the command has run")
	}
}

func sleeper(t *testing.T) Process {
	t.Helper()
	var p Process
	err := Start("/", filepath.Join(t.TempDir(), "log"), 0, func(started Process) error { p = started; return nil }, "sleep", "1000")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Kill() })
	return p
}

// A process may end, and another one get its PID, between any two looks at it.
func TestProcessThatGetsThePIDMeanwhileSurvives(t *testing.T) {
	t.Parallel()
	p := sleeper(t)
	later := exec.Command("sleep", "1000")
	if err := later.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- later.Wait() }()
	err := p.signal(os.Kill, func(int) (*os.Process, error) {
		if err := errors.Join(p.Kill(), p.Await(t.Context())); err != nil {
			t.Error(err)
		}
		return os.FindProcess(later.Process.Pid) // this one has its PID now
	})
	if err != nil {
		t.Error(err)
	}
	if err := later.Process.Signal(os.Interrupt); err != nil {
		t.Errorf("it got the signal: %v", err)
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "interrupt") {
		t.Errorf("it has ended by another signal than the test's: %v", err)
	}
}

func TestProcessEnds(t *testing.T) {
	t.Parallel()
	p := sleeper(t)
	for range 2 { // it can be repeated
		if err := p.End(t.Context()); err != nil || p.Alive() {
			t.Errorf("%v, alive %t", err, p.Alive())
		}
	}
}

func TestCommandsDoNotInheritTheEnvironment(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://proxy.example")
	out, err := Output(t.Context(), "", "env")
	if err != nil || strings.Contains(out, "proxy") || !strings.Contains(out, "PATH=/") {
		t.Errorf("%q, %v", out, err)
	}
}

func TestRetryEndsWithItsContextOrAnErrorThatStopsIt(t *testing.T) {
	t.Parallel()
	late, broken, final := errors.New("late"), errors.New("broken"), errors.New("final")
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Millisecond, late)
	defer cancel()
	if err := Retry(ctx, time.Microsecond, func() error { return broken }); !errors.Is(err, late) || !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	canceled, stop := context.WithCancelCause(t.Context())
	stop(late)
	if err := Retry(canceled, time.Hour, func() error { return broken }); err != context.Canceled {
		t.Errorf("error %v", err)
	}
	tries := 0
	err := Retry(t.Context(), time.Microsecond, func() error {
		if tries++; tries < 3 {
			return broken
		}
		return Stop(final)
	})
	if err != final || tries != 3 {
		t.Errorf("after %d tries: %v", tries, err)
	}
	if err := Retry(t.Context(), time.Hour, func() error { return nil }); err != nil {
		t.Error(err)
	}
}
