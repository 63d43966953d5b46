package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"slipway.build/pkg/prove/cluster/machine"
)

func TestProcessIsInTheStateAndEndedByDown(t *testing.T) {
	t.Parallel()
	s := created(t, t.TempDir(), "test")
	if err := s.start(Process{Name: "sleeper"}, 0, "/", "sleep", "1000"); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(s.dir)
	read, err := Load(dir, "test")
	if err != nil || len(read.Processes) != 1 || !read.Processes[0].Alive() {
		t.Fatalf("the state is %+v, %v", read, err)
	}
	p := read.Processes[0]
	if err := Down(t.Context(), dir, "test"); err != nil {
		t.Fatal(err)
	}
	if p.Alive() {
		t.Error("it still runs")
	}
	if _, err := os.Stat(s.dir); err == nil {
		t.Error("the folder is still there")
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
	// proc(5): the start time is field 22.
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", other.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	start, err := strconv.ParseUint(strings.Fields(string(stat))[21], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*State){
		"another start": func(s *State) { s.Processes[0].Start-- },
		"another boot":  func(s *State) { s.Boot = "before" },
	} {
		s := created(t, t.TempDir(), "test")
		s.Processes = []Process{{Name: "x", Process: machine.Process{PID: other.Process.Pid, Start: start}}}
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

func TestErrorHasTheLastLinesOfAProgram(t *testing.T) {
	t.Parallel()
	s := created(t, t.TempDir(), "test")
	if err := s.start(Process{Name: "program"}, 0, "/", "sh", "-c", "echo address already in use; exit 1"); err != nil {
		t.Fatal(err)
	}
	if err := s.Processes[0].Await(t.Context()); err != nil {
		t.Fatal(err)
	}
	err := s.checkAlive()
	if !strings.Contains(err.Error(), "program has ended") || !strings.Contains(err.Error(), "address already in use") ||
		!strings.Contains(err.Error(), s.log("program")) {
		t.Errorf("error %v", err)
	}
}

func TestWaitEndsWithPatienceOrAProcess(t *testing.T) {
	t.Parallel()
	s := created(t, t.TempDir(), "test")
	s.patience = 10 * time.Millisecond
	broken := errors.New("connection refused")
	try := func(context.Context) error { return broken }
	if err := s.eventually(t.Context(), time.Millisecond, try); !errors.Is(err, ErrNotReady) || !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	if err := s.start(Process{Name: "program"}, 0, "/", "false"); err != nil {
		t.Fatal(err)
	}
	s.patience = time.Hour
	if err := s.eventually(t.Context(), time.Millisecond, try); err == nil || !strings.Contains(err.Error(), "program has ended") {
		t.Errorf("error %v", err)
	}
}
