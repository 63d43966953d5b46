package console

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"slipway.build/pkg/mechanism/action"
)

func TestPlainReadsAsALog(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		events  []action.Event
		verbose int
	}{
		"release":     {release(), 0},
		"verbose":     {release(), 1},
		"unchanged":   {unchanged(), 0},
		"broken":      {broken(), 0},
		"interrupted": {release()[:10], 0},
		"killed":      {broken()[:6], 0},
		"two-runs":    {append(unchanged(), broken()...), 0},
		"empty":       {nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage()
			o := s.options()
			o.Verbose = test.verbose
			view := newPlain(o)
			s.play(view, test.events)
			for range 2 { // the second must not say anything
				if err := view.Close(); err != nil {
					t.Fatal(err)
				}
			}
			golden(t, "plain-"+name+".txt", s.String())
		})
	}
}

func TestPlainSpeaksWhileNoEventComes(t *testing.T) {
	t.Parallel()
	s := newStage()
	view := newPlain(s.options())
	s.play(view, []action.Event{
		{Time: at(0), Kind: action.Planned, Total: 2},
		{Time: at(0), Kind: action.Started, Action: "link", Phase: "compile"},
		{Time: at(5), Kind: action.Started, Action: "pull", Phase: "image"},
	})
	s.Reset()
	for second := range 100 {
		s.now = at(float64(second))
		view.tick()
	}
	want := "link: 30s\nlink: 1m00s\npull: 55s\nlink: 1m30s\npull: 1m25s\n"
	if s.String() != want {
		t.Errorf("in 100 silent seconds:\n%swant:\n%s", s.String(), want)
	}
}

func TestOutputAndErrorGoToErrAlone(t *testing.T) {
	t.Parallel()
	s := newStage()
	var errs bytes.Buffer
	for name, make := range map[string]func(Options) ticker{
		"plain":    func(o Options) ticker { return newPlain(o) },
		"terminal": func(o Options) ticker { return newTerminal(o) },
	} {
		s.env["NO_COLOR"] = "1"
		o := s.options()
		errs.Reset()
		o.Err = &errs
		s.play(make(o), broken())
		output, cause := broken()[4].Text, broken()[7].Text
		if want := output + "error: " + cause + "\n"; errs.String() != want {
			t.Errorf("%s: Err got %q, want %q", name, errs.String(), want)
		}
		if out := s.String(); strings.Contains(out, "main.go:9") || strings.Contains(out, "release-tars") {
			t.Errorf("%s: Out repeats the error, or lists stale artifacts:\n%s", name, out)
		}
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

var errFull = errors.New("no space left")

func TestCloseTellsThatWritingFailed(t *testing.T) {
	t.Parallel()
	for _, mode := range []Mode{Plain, Terminal, JSON} {
		o := newStage().options()
		o.Out, o.Mode = fullDisk{}, mode
		view := New(o)
		for _, ev := range release() {
			view.Event(ev)
		}
		if err := view.Close(); !errors.Is(err, errFull) {
			t.Errorf("%s: Close = %v, want %v", mode, err, errFull)
		}
	}
}

func TestPhaseTimesAreUnions(t *testing.T) {
	t.Parallel()
	var r run
	for _, ev := range []action.Event{
		{Time: at(0), Kind: action.Started, Action: "a", Phase: "compile"},
		{Time: at(2), Kind: action.Started, Action: "b", Phase: "compile"},
		{Time: at(3), Kind: action.Started, Action: "c", Phase: "compile"},
		{Time: at(4), Kind: action.Done, Action: "c", Phase: "compile"},
		{Time: at(5), Kind: action.Done, Action: "a", Phase: "compile"},
		{Time: at(6), Kind: action.Done, Action: "b", Phase: "compile"},
		{Time: at(10), Kind: action.Done, Action: "d", Phase: "compile", Duration: time.Second}, // its start was not seen
		{Time: at(10), Kind: action.Started, Action: "e", Phase: "package"},
		{Time: at(20), Kind: action.Done, Action: "e", Phase: "package"},
	} {
		r.add(ev)
	}
	got := r.phases()
	if len(got) != 2 || got[0] != (phaseTime{"package", 10 * time.Second}) || got[1] != (phaseTime{"compile", 7 * time.Second}) {
		t.Errorf("phases = %v, want package 10s, compile 7s", got)
	}
}

func TestBatchFailureIsToldOnce(t *testing.T) {
	t.Parallel()
	started := action.Event{Time: at(0), Kind: action.Started, Action: "compile x", Phase: "compile", Text: "2 of 2: new"}
	failed := func(id string) action.Event {
		return action.Event{Time: at(1), Kind: action.Failed, Action: id, Batch: "compile x", Phase: "compile", Text: id + ": exit status 1"}
	}
	for name, events := range map[string][]action.Event{
		"batch alone":      {started, failed("compile x")},
		"members":          {started, failed("compile x a"), failed("compile x b")},
		"batch and member": {started, failed("compile x"), failed("compile x a"), failed("compile x b")},
	} {
		s := newStage()
		s.play(newPlain(s.options()), events)
		if got, want := s.String(), "compile x (2 of 2: new)\ncompile x FAILED after 1.0s: exit status 1\n"; got != want {
			t.Errorf("%s: got\n%swant\n%s", name, got, want)
		}
	}
}

// Two batches run side by side, and the actions of the one are called as if they were the other's.
func TestActionBelongsToTheBatchThatMadeIt(t *testing.T) {
	t.Parallel()
	start := func(id, why string) action.Event {
		return action.Event{Time: at(0), Kind: action.Started, Action: id, Phase: "compile", Text: why}
	}
	done := func(second float64, id, batch string, memory int64) action.Event {
		return action.Event{Time: at(second), Kind: action.Done, Action: id, Batch: batch, Phase: "compile", Memory: memory}
	}
	s := newStage()
	s.play(newPlain(s.options()), []action.Event{
		start("compile x", "2 of 2: new"), start("compile x of y", "2 of 2: new"),
		done(1, "compile x c", "compile x of y", 1<<20), done(2, "compile x d", "compile x of y", 1<<20),
		done(3, "compile x a", "compile x", 1<<30), done(4, "compile x b", "compile x", 1<<30),
		{Time: at(4), Kind: action.Finished, Duration: 4 * time.Second},
	})
	for _, want := range []string{"compile x of y done in 2.0s\ncompile x done in 4.0s\n", "peak memory 1.0 GiB (compile x)\n"} {
		if got := s.String(); !strings.Contains(got, want) {
			t.Errorf("got\n%swant\n%s", got, want)
		}
	}
}

func TestFailureBeforeTheStartHasNoTime(t *testing.T) {
	t.Parallel()
	s := newStage()
	s.play(newPlain(s.options()), []action.Event{{Time: at(1), Kind: action.Failed, Action: "pack", Text: "pack: input x: missing"}})
	if got, want := s.String(), "pack FAILED: input x: missing\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
