package cluster

import (
	"context"
	"io"
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
		_, _ = output(context.Background(), "", "sh", "-c", "echo $$ >"+os.Args[2]+"; exec sleep 1000")
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
	is := func() (bool, error) {
		text, _ := os.ReadFile(mark)
		var err error
		if command.PID, err = strconv.Atoi(strings.TrimSpace(string(text))); err != nil {
			return false, nil // not there yet
		}
		command.Start, err = startTime(command.PID)
		return true, err
	}
	limit, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	started := until(limit, time.Millisecond, is)
	_ = parent.Process.Kill()
	_ = parent.Wait()
	if started != nil {
		t.Fatal(started)
	}
	if err := until(limit, time.Millisecond, func() (bool, error) { return !command.alive(), nil }); err != nil {
		t.Errorf("the command still runs: %v", err)
	}
}

func testState(t *testing.T) *State {
	t.Helper()
	s, err := newState(t.TempDir(), "test", "", true, 1)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestProcessIsInTheStateAndEndedByDown(t *testing.T) {
	t.Parallel()
	s := testState(t)
	if err := s.start(Process{Name: "sleeper"}, 0, "/", "sleep", "1000"); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(s.dir)
	read, err := Load(dir, "test")
	if err != nil || len(read.Processes) != 1 || !read.Processes[0].alive() {
		t.Fatalf("the state is %+v, %v", read, err)
	}
	p := read.Processes[0]
	if err := Down(t.Context(), dir, "test"); err != nil {
		t.Fatal(err)
	}
	if p.alive() {
		t.Error("it still runs")
	}
	if _, err := os.Stat(s.dir); err == nil {
		t.Error("the folder is still there")
	}
}

func TestProcessThatIsNotInTheStateDoesNothing(t *testing.T) {
	t.Parallel()
	mark := filepath.Join(t.TempDir(), "mark")
	c := exec.Command("/bin/sh", "-c", waitForGo, "sh", "touch", mark)
	// Standard input is at its end, as it is when who starts it is killed.
	if err := c.Run(); err == nil {
		t.Error("it claims success")
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("the command has run")
	}
}

func TestLaterProcessWithTheSamePIDSurvives(t *testing.T) {
	t.Parallel()
	other := exec.Command("cat")
	in, err := other.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := other.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Process.Kill(); _ = other.Wait() }()
	start, err := startTime(other.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*State){
		"another start": func(s *State) { s.Processes[0].Start-- },
		"another boot":  func(s *State) { s.Boot = "before" },
	} {
		s := testState(t)
		s.Processes = []Process{{Name: "x", PID: other.Process.Pid, Start: start}}
		change(s)
		if err := s.endProcesses(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		// A signal that was sent to it would end it before it answers.
		answer := make([]byte, len(name))
		if _, err := io.WriteString(in, name); err != nil {
			t.Fatalf("%s: it was ended: %v", name, err)
		}
		if _, err := io.ReadFull(out, answer); err != nil || string(answer) != name {
			t.Fatalf("%s: it was ended: %v", name, err)
		}
	}
}

// A process may end, and another one get its PID, between any two looks at it.
func TestProcessThatGetsThePIDMeanwhileSurvives(t *testing.T) {
	t.Parallel()
	s := testState(t)
	if err := s.start(Process{Name: "sleeper"}, 0, "/", "sleep", "1000"); err != nil {
		t.Fatal(err)
	}
	p := s.Processes[0]
	later := exec.Command("sleep", "1000")
	if err := later.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- later.Wait() }()
	err := p.signal(os.Kill, func(int) (*os.Process, error) {
		if err := s.endProcesses(t.Context()); err != nil { // the process has ended
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

func TestErrorHasTheLastLinesOfAProgram(t *testing.T) {
	t.Parallel()
	s := testState(t)
	if err := s.start(Process{Name: "program"}, 0, "/", "sh", "-c", "echo address already in use; exit 1"); err != nil {
		t.Fatal(err)
	}
	err := until(t.Context(), time.Millisecond, func() (bool, error) { return false, s.checkAlive() })
	if !strings.Contains(err.Error(), "program has ended") || !strings.Contains(err.Error(), "address already in use") ||
		!strings.Contains(err.Error(), s.log("program")) {
		t.Errorf("error %v", err)
	}
}

func TestCommandsDoNotInheritTheEnvironment(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://proxy.example")
	out, err := output(t.Context(), "", "env")
	if err != nil || strings.Contains(out, "proxy") || !strings.Contains(out, "PATH=/") {
		t.Errorf("%q, %v", out, err)
	}
}
