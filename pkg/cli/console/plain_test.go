package console

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
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
			s := newFixture()
			o := s.options()
			o.Verbose = test.verbose
			view := newPlain(o)
			s.show(view, test.events)
			for range 2 { // the second must not print anything
				if err := view.Close(); err != nil {
					t.Fatal(err)
				}
			}
			golden(t, "plain-"+name+".txt", s.String())
		})
	}
}

func TestPlainReportsLongJobsWhileNoEventComes(t *testing.T) {
	t.Parallel()
	s := newFixture()
	view := newPlain(s.options())
	s.show(view, []action.Event{
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
	s := newFixture()
	var errs bytes.Buffer
	for name, make := range views {
		s.env["NO_COLOR"] = "1"
		o := s.options()
		errs.Reset()
		o.Err = &errs
		s.show(make(o), broken())
		output, cause := broken()[4].Text, broken()[7].Text
		if want := output + "compile linux/arm64 printed:\n" + output + "error: " + cause + "\n"; errs.String() != want {
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

func TestCloseReturnsErrorsOfWriting(t *testing.T) {
	t.Parallel()
	for _, mode := range []Mode{Plain, Terminal, JSON} {
		o := newFixture().options()
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

func TestFailedBatchCountsAllItsActions(t *testing.T) {
	t.Parallel()
	started := action.Event{Time: at(0), Kind: action.Started, Action: "compile x", Phase: "compile",
		Text: "2 of 3: new", Stale: 2, Members: 3}
	done := action.Event{Time: at(1), Kind: action.Done, Action: "compile x a", Batch: "compile x", Phase: "compile"}
	failed := action.Event{Time: at(1), Kind: action.Failed, Action: "compile x", Phase: "compile", Text: "exit status 1"}
	for name, test := range map[string]struct {
		events []action.Event
		tally  string
	}{
		"none done": {[]action.Event{started, failed}, "1 failed in 1.0s"},
		"one done":  {[]action.Event{started, done, failed}, "1 done, 1 failed in 1.0s"},
	} {
		s := newFixture()
		events := append([]action.Event{{Time: at(0), Kind: action.Planned, Total: 2}}, test.events...)
		s.show(newPlain(s.options()), append(events, action.Event{Time: at(1), Kind: action.Finished, Text: "compile x: exit status 1"}))
		want := "compile x (2 of 3: new)\ncompile x FAILED after 1.0s: exit status 1\n" + test.tally + "\nerror: compile x: exit status 1\n"
		if got := s.String(); got != want {
			t.Errorf("%s: got\n%swant\n%s", name, got, want)
		}
	}
}

// views are the views that people read.
var views = map[string]func(Options) ticker{
	"plain":    func(o Options) ticker { return newPlain(o) },
	"terminal": func(o Options) ticker { return newTerminal(o) },
}

// The output of the failed action comes last if lines of other actions followed it, and is not repeated if none did.
func TestErrorOfTheFailedActionIsLast(t *testing.T) {
	t.Parallel()
	start := func(id string) action.Event {
		return action.Event{Time: at(0), Kind: action.Started, Action: id, Phase: "compile", Text: "new"}
	}
	output := func(id, text string) action.Event {
		return action.Event{Time: at(1), Kind: action.Output, Action: id, Text: text}
	}
	failed := func(id string) action.Event {
		return action.Event{Time: at(2), Kind: action.Failed, Action: id, Phase: "compile", Text: "go build: exit status 1"}
	}
	done := action.Event{Time: at(13), Kind: action.Done, Action: "other", Phase: "compile"}
	finished := func(text string) action.Event {
		return action.Event{Time: at(14), Kind: action.Finished, Text: text}
	}
	var many []action.Event
	for i := range 25 {
		many = append(many, output("a", fmt.Sprintf("line %d\n", i)))
	}
	last20 := ""
	for i := 5; i < 25; i++ {
		last20 += fmt.Sprintf("line %d\n", i)
	}
	const oneError = "error: a: go build: exit status 1\n"
	for name, test := range map[string]struct {
		events []action.Event
		want   string // the end of what is printed
		once   string // must be printed once
	}{
		"nothing after it": {[]action.Event{start("other"), start("a"), output("a", "main.go:3: undefined"), failed("a"),
			finished("a: go build: exit status 1")},
			oneError, "undefined"},
		"another action ends after it": {[]action.Event{start("other"), start("a"), output("a", "main.go:3: undefined"), failed("a"), done,
			finished("a: go build: exit status 1")},
			"a printed:\nmain.go:3: undefined\n" + oneError, "a printed:"},
		"another action prints after it": {[]action.Event{start("other"), start("a"), output("a", "main.go:3: undefined"),
			output("other", "warning"), failed("a"), finished("a: go build: exit status 1")},
			"a printed:\nmain.go:3: undefined\n" + oneError, "warning"},
		"too long": {slices.Concat([]action.Event{start("other"), start("a")}, many,
			[]action.Event{failed("a"), done, finished("a: go build: exit status 1")}),
			"a printed, in its last 20 lines:\n" + last20 + oneError, "line 4\n"},
		"no output": {[]action.Event{start("other"), start("a"), failed("a"), done, finished("a: go build: exit status 1")}, oneError, oneError},
		"output in the error": {[]action.Event{start("other"), start("a"), output("a", "exit status 1"), failed("a"), done,
			finished("a: go build: exit status 1")},
			oneError, oneError},
		"two failures": {[]action.Event{start("a"), start("b"), output("a", "in a"), output("b", "in b"), failed("a"), failed("b"),
			finished("a: one\nb: two")},
			"a printed:\nin a\nb printed:\nin b\nerror: a: one\nb: two\n", "error:"},
		"the second failure's output": {[]action.Event{start("a"), start("b"), output("a", "in a"), failed("a"), output("b", "in b"), failed("b"),
			finished("a: one\nb: two")},
			"a printed:\nin a\nb printed:\nin b\nerror: a: one\nb: two\n", "error:"},
		"killed before the end": {[]action.Event{start("other"), start("a"), output("a", "main.go:3: undefined"), failed("a"), done},
			"a printed:\nmain.go:3: undefined\n" + oneError, "a printed:"},
	} {
		for kind, newView := range views {
			t.Run(name+" "+kind, func(t *testing.T) {
				t.Parallel()
				s := newFixture()
				s.env["NO_COLOR"] = "1"
				view := newView(s.options())
				s.show(view, test.events)
				if err := view.Close(); err != nil {
					t.Fatal(err)
				}
				if got := s.String(); !strings.HasSuffix(got, test.want) || strings.Count(got, test.once) != 1 {
					t.Errorf("got\n%s\nwant at its end\n%sand %q once", got, test.want, test.once)
				}
			})
		}
	}
}

// Two batches run side by side, and the actions of one have names as if they were the other's.
func TestActionBelongsToTheBatchThatMadeIt(t *testing.T) {
	t.Parallel()
	start := func(id, why string) action.Event {
		return action.Event{Time: at(0), Kind: action.Started, Action: id, Phase: "compile", Text: why, Stale: 2, Members: 2}
	}
	done := func(second float64, id, batch string, memory int64) action.Event {
		return action.Event{Time: at(second), Kind: action.Done, Action: id, Batch: batch, Phase: "compile", Memory: memory}
	}
	s := newFixture()
	s.show(newPlain(s.options()), []action.Event{
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

func TestFailureBeforeTheStartHasOneLineAndNoTime(t *testing.T) {
	t.Parallel()
	s := newFixture()
	s.show(newPlain(s.options()), []action.Event{{Time: at(1), Kind: action.Failed, Action: "pack",
		Text: "input x: missing:\nlook elsewhere"}})
	if got, want := s.String(), "pack FAILED: input x: missing …\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
