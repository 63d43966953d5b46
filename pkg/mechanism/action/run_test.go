package action

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestEventsReportTheWholeRun(t *testing.T) {
	t.Parallel()
	a := join("a", "out/a", "src")
	a.Phase = "join"
	run := a.Run
	a.Run = func(ctx context.Context, t *Task) error {
		t.Report.SetWorker("test")
		t.Report.Count("", 1, 2, "half")
		t.Report.Count(Packages, 2, 2, "whole")
		t.Report.Output("a line")
		t.Report.Memory(3)
		t.Report.Memory(2)
		return run(ctx, t)
	}
	b := newBench(t, a)
	b.write("src", "s")
	b.run()
	files := []File{{Path: "out/a", Size: 3, SHA256: sumOf("[s]")}}
	want := []Event{
		{Kind: Planned, Total: 1},
		{Kind: Started, Action: "a", Phase: "join", Text: "new", Reasons: []Reason{{Kind: New}}},
		{Kind: Progress, Action: "a", Phase: "join", By: "test", Done: 1, Total: 2, Text: "half"},
		{Kind: Progress, Action: "a", Phase: "join", By: "test", Done: 2, Total: 2, Unit: Packages, Text: "whole"},
		{Kind: Output, Action: "a", Phase: "join", By: "test", Text: "a line"},
		{Kind: Done, Action: "a", Phase: "join", By: "test", Memory: 3, Files: files},
		{Kind: Finished},
	}
	ignore := cmpopts.IgnoreFields(Event{}, "Time", "Duration")
	if diff := cmp.Diff(want, b.events, ignore); diff != "" {
		t.Error(diff)
	}
	for i, e := range b.events {
		if e.Time.IsZero() || (i > 0 && e.Time.Before(b.events[i-1].Time)) {
			t.Errorf("event %d is of %s", i, e.Time)
		}
	}
	if peak, ok := b.Measured("a"); peak != 3 || !ok {
		t.Errorf("measured %d, %t", peak, ok)
	}
	if _, ok := b.Measured("b"); ok {
		t.Error("measured what never ran")
	}
	b.run()
	want = []Event{
		{Kind: Planned, Total: 1},
		{Kind: Skipped, Action: "a", Phase: "join", Files: files},
		{Kind: Finished},
	}
	if diff := cmp.Diff(want, b.events, ignore); diff != "" {
		t.Error(diff)
	}
	if _, err := os.Stat(filepath.Join(b.Root, b.State, "tmp")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("temporary files stay behind: %v", err)
	}
}

func TestFailureKeepsFinishedWorkAndStartsNothingElse(t *testing.T) {
	t.Parallel()
	broken := true
	failed := make(chan struct{})
	good := join("good", "out/good", "src")
	run := good.Run
	good.Run = func(ctx context.Context, t *Task) error {
		<-failed // it runs when the other fails, and still finishes
		return run(ctx, t)
	}
	bad := join("bad", "out/bad", "src")
	make := bad.Run
	bad.Run = func(ctx context.Context, t *Task) error {
		if broken {
			defer close(failed)
			return errors.New("broken")
		}
		return make(ctx, t)
	}
	b := newBench(t, good, bad, join("after good", "out/c", "out/good"), join("after bad", "out/d", "out/bad"))
	b.write("src", "s")
	err := b.try(t.Context())
	if err == nil || err.Error() != "bad: broken" {
		t.Fatalf("error %v", err)
	}
	if diff := cmp.Diff([]string{"good"}, b.ids(Done)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"bad"}, b.ids(Failed)); diff != "" {
		t.Error(diff)
	}
	if last := b.events[len(b.events)-1]; last.Kind != Finished || last.Text != "bad: broken" {
		t.Errorf("last event: %+v", last)
	}
	broken = false
	b.ran("bad", "after good", "after bad")
}

func TestAllFailuresAreReturned(t *testing.T) {
	t.Parallel()
	var both sync.WaitGroup
	both.Add(2)
	fail := func(text string) func(context.Context, *Task) error {
		return func(context.Context, *Task) error {
			both.Done()
			both.Wait()
			return errors.New(text)
		}
	}
	b := newBench(t, &Action{ID: "a", Run: fail("one")}, &Action{ID: "b", Run: fail("two")})
	err := b.try(t.Context())
	if err == nil || !strings.Contains(err.Error(), "a: one") || !strings.Contains(err.Error(), "b: two") {
		t.Fatalf("error %v", err)
	}
}

func TestMistakesOfAnActionAreErrors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		run  func(context.Context, *Task) error
		want string
	}{
		"panic":            {func(context.Context, *Task) error { panic("oh") }, "a: panic: oh"},
		"end of goroutine": {func(context.Context, *Task) error { runtime.Goexit(); return nil }, "a: ended its goroutine"},
		"nothing made":     {func(context.Context, *Task) error { return nil }, "a: did not make out/a"},
		"a directory made": {func(_ context.Context, t *Task) error { return os.Mkdir(t.Path("out/a"), 0o777) },
			"a: made out/a, but not as a file"},
		"undeclared path": {func(_ context.Context, t *Task) error { t.Path("out/b"); return nil },
			`a: panic: a: "out/b" is not among its outputs`},
		"not a sum": {func(_ context.Context, t *Task) error { t.SetDigest("out/a", "12"); return nil },
			`a: panic: a: "12" is not a SHA-256 of out/a`},
		"full disk": {func(context.Context, *Task) error { return &fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC} },
			"a: write x: no space left on device: free some and run the same command again; finished work is kept"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, &Action{ID: "a", Outputs: []string{"out/a"}, Run: c.run})
			err := b.try(t.Context())
			if err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Fatalf("error %v, want %s", err, c.want)
			}
			if _, err := os.Lstat(filepath.Join(b.Root, "out/a")); err == nil {
				t.Error("the output has its final name")
			}
		})
	}
}

func TestMissingInputIsFoundBeforeAnythingRuns(t *testing.T) {
	t.Parallel()
	b := newBench(t, join("first", "out/first"), join("second", "out/second", "out/first", "src/gone"))
	err := b.try(t.Context())
	if !errors.Is(err, fs.ErrNotExist) || err.Error() != "second: input src/gone: no such file or directory" {
		t.Errorf("error %v", err)
	}
	if started := b.ids(Started); started != nil {
		t.Errorf("started %v", started)
	}
	if _, err := b.Plan(t.Context(), Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("plan: error %v", err)
	}
}

func TestInterruptedRunRecordsNothingThatFailed(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	a := join("a", "out/a", "src")
	run := a.Run
	interrupted := true
	a.Run = func(ctx context.Context, t *Task) error {
		if err := run(ctx, t); err != nil || !interrupted {
			return err
		}
		cancel()
		<-ctx.Done()
		return errors.New("signal: killed")
	}
	b := newBench(t, a, join("b", "out/b", "out/a"))
	b.write("src", "s")
	err := b.try(ctx)
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "a: context canceled: signal: killed") {
		t.Fatalf("error %v", err)
	}
	interrupted = false
	b.ran("a", "b")
}

func TestInterruptedRunKeepsFinishedWork(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	a := join("a", "out/a", "src")
	run := a.Run
	a.Run = func(ctx context.Context, t *Task) error {
		cancel()
		return run(ctx, t)
	}
	b := newBench(t, a, join("b", "out/b", "out/a"))
	b.write("src", "s")
	if err := b.try(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	b.ran("b")
}

func TestBudgetIsNeverExceeded(t *testing.T) {
	t.Parallel()
	budget := Budget{CPU: 4, Memory: 1000}
	var mu sync.Mutex
	var running, cpu int
	var memory int64
	var actions []*Action
	for i := range 60 {
		c := Cost{CPU: i % 4, Memory: int64(i*37) % 700}
		if i%20 == 7 {
			c = Cost{CPU: 9, Memory: 5000} // above the budget: runs alone
		}
		actions = append(actions, &Action{ID: fmt.Sprint(i), Cost: c, Run: func(context.Context, *Task) error {
			mu.Lock()
			running, cpu, memory = running+1, cpu+threads(c), memory+c.Memory
			if running > 1 && (cpu > budget.CPU || memory > budget.Memory) {
				t.Errorf("%d actions run, with %d threads and %d bytes", running, cpu, memory)
			}
			mu.Unlock()
			for range 100 {
				runtime.Gosched()
			}
			mu.Lock()
			running, cpu, memory = running-1, cpu-threads(c), memory-c.Memory
			mu.Unlock()
			return nil
		}})
	}
	b := newBench(t, actions...)
	if err := b.Run(t.Context(), Options{Budget: budget}); err != nil {
		t.Fatal(err)
	}
}

func TestActionsRunSideBySide(t *testing.T) {
	t.Parallel()
	const n = 3
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var inside atomic.Int32
	all := make(chan struct{})
	run := func(ctx context.Context, _ *Task) error {
		if inside.Add(1) == n {
			close(all)
		}
		select {
		case <-all:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	var actions []*Action
	for i := range n {
		actions = append(actions, &Action{ID: fmt.Sprint(i), Run: run})
	}
	if err := newBench(t, actions...).Run(ctx, Options{Budget: Budget{CPU: n}}); err != nil {
		t.Fatal(err)
	}
}

func TestLongestChainStartsFirstThenOrderOfTheGraph(t *testing.T) {
	t.Parallel()
	b := newBench(t,
		join("short 1", "out/s1"),
		join("short 2", "out/s2"),
		join("long 3", "out/l3", "out/l2"),
		join("long 2", "out/l2", "out/l1"),
		join("long 1", "out/l1"),
	)
	var started []string
	err := b.Run(t.Context(), Options{Budget: Budget{CPU: 1}, Events: func(e Event) {
		if e.Kind == Started {
			started = append(started, e.Action)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if started[0] != "long 1" {
		t.Errorf("started %v", started)
	}
	if slices.Index(started, "short 1") > slices.Index(started, "short 2") {
		t.Errorf("started %v", started)
	}
}

func TestInputEditedDuringARunIsMadeAgain(t *testing.T) {
	t.Parallel()
	a := join("a", "out/a", "src")
	b := newBench(t, a)
	run := a.Run
	edit := true
	a.Run = func(ctx context.Context, t *Task) error {
		if err := run(ctx, t); err != nil || !edit {
			return err
		}
		edit = false
		return writeFile(filepath.Join(b.Root, "src"), "late")
	}
	b.write("src", "early")
	b.ran("a")
	if lines := b.ids(Output); len(lines) != 1 {
		t.Errorf("it was reported %d times", len(lines))
	}
	b.write("src", "early") // as the key says, but not as the action may have seen it
	b.ran("a")
	b.because("a", "input src was edited while it was made")
	b.ran()
}

func TestLeftoversOfKilledRunsAreRemoved(t *testing.T) {
	t.Parallel()
	b := newBench(t, join("a", "out/a"))
	b.write(b.State+"/tmp/123-dead/0/out/x", "half")
	if err := os.Chmod(filepath.Join(b.Root, b.State, "tmp/123-dead/0/out"), 0o555); err != nil {
		t.Fatal(err)
	}
	b.ran("a")
	if _, err := os.Lstat(filepath.Join(b.Root, b.State, "tmp")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("leftovers: %v", err)
	}
}

func TestNoEventComesAfterFinished(t *testing.T) {
	t.Parallel()
	var task *Task
	b := newBench(t, &Action{ID: "a", Run: func(_ context.Context, t *Task) error { task = t; return nil }})
	b.run()
	before := len(b.events)
	task.Report.Output("late")
	if len(b.events) != before {
		t.Error("an event after Finished")
	}
}
