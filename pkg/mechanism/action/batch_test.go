package action

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// letters returns a batch of three actions; got lists those that it last ran.
func letters(root string) (actions []*Action, got *[]string) {
	got = new([]string)
	batch := &Batch{ID: "letters", Run: func(_ context.Context, t *Task, stale []*Action) error {
		*got = nil
		for _, a := range stale {
			*got = append(*got, a.ID)
			data, err := os.ReadFile(filepath.Join(root, a.Inputs[0]))
			if err != nil {
				return err
			}
			if string(data) == "fail" {
				return errors.New("failed")
			}
			if string(data) == "forget" {
				continue
			}
			if err := os.WriteFile(t.Path(a.Outputs[0]), data, 0o666); err != nil {
				return err
			}
			t.Report.Memory(int64(len(stale)) * 100)
		}
		return nil
	}}
	for _, id := range []string{"a", "b", "c"} {
		actions = append(actions, &Action{ID: id, Phase: "letter", Inputs: []string{"src/" + id}, Outputs: []string{"out/" + id}, Batch: batch})
	}
	return actions, got
}

func newBatchBench(t *testing.T) (*bench, *[]string) {
	b := newBench(t)
	actions, got := letters(b.Root)
	b.Actions = append(actions, join("all", "out/all", "out/a", "out/b", "out/c"))
	for _, id := range []string{"a", "b", "c"} {
		b.write("src/"+id, id)
	}
	return b, got
}

func TestBatchRunsOnlyStaleMembers(t *testing.T) {
	t.Parallel()
	b, got := newBatchBench(t)
	b.ran("a", "b", "c", "all")
	b.because("letters", "3 of 3: new")
	if peak, ok := b.Measured("letters"); peak != 300 || !ok {
		t.Errorf("measured %d, %t", peak, ok)
	}
	b.ran()

	b.write("src/b", "B")
	b.ran("b", "all")
	b.because("letters", "1 of 3: inputs changed: src/b")
	if diff := cmp.Diff([]string{"b"}, *got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"a", "c"}, b.ids(Skipped)); diff != "" {
		t.Error(diff)
	}
	if peak, _ := b.Measured("letters"); peak != 300 {
		t.Errorf("a run of one member lowered what the batch needs to %d", peak)
	}

	b.write("src/a", "A")
	b.write("out/c", "damaged")
	b.ran("a", "c", "all")
	b.because("letters", "2 of 3: inputs changed: src/a; output out/c was edited")
	b.want("out/all", "[A][B][c]")
}

func TestFailedBatchRecordsNone(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"fail": "letters: failed", "forget": "letters: c: did not make out/c"} {
		b, _ := newBatchBench(t)
		b.write("src/c", text)
		err := b.try(t.Context())
		if err == nil || err.Error() != want {
			t.Fatalf("error %v, want %s", err, want)
		}
		if diff := cmp.Diff([]string{"letters"}, b.ids(Failed)); diff != "" {
			t.Error(diff)
		}
		if _, err := os.Lstat(filepath.Join(b.Root, "out/a")); err == nil {
			t.Error("an output of the failed batch has its final name")
		}
		b.write("src/c", "c")
		b.ran("a", "b", "c", "all")
	}
}

func TestMembersShareRecordsWithOtherGraphs(t *testing.T) {
	t.Parallel()
	b, _ := newBatchBench(t)
	all := b.Actions
	b.Actions = all[1:2] // `WHAT=b`
	b.ran("b")
	b.because("letters", "1 of 1: new")
	b.Actions = all
	b.ran("a", "c", "all")
	b.because("letters", "2 of 3: new")
}

func TestBatchesAreAskedBeforeAnythingRuns(t *testing.T) {
	t.Parallel()
	b, _ := newBatchBench(t)
	ran := false
	b.Actions = append(b.Actions, &Action{ID: "other", Outputs: []string{"out/other"}, Run: func(_ context.Context, t *Task) error {
		ran = true
		return os.WriteFile(t.Path("out/other"), nil, 0o666)
	}})
	missing, asked := errors.New("rsync is missing"), 0
	b.Actions[0].Batch.Ready = func(context.Context) error { asked++; return missing }
	if err := b.try(t.Context()); !errors.Is(err, missing) || ran || asked != 1 {
		t.Fatalf("error %v, and another action ran: %v", err, ran)
	}
	if diff := cmp.Diff([]string{"letters"}, b.ids(Failed)); diff != "" {
		t.Error(diff)
	}
	missing = nil
	b.ran("a", "b", "c", "all", "other")
	b.ran()
	if asked != 2 {
		t.Errorf("asked %d times, once without anything to do", asked)
	}
}

// What the first batch of a lane leaves to the next saves work, so they never run together, and keep the graph's order. Others do not wait.
func TestBatchesOfALaneRunOneAfterAnother(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	beside := make(chan struct{})
	var mu sync.Mutex
	var order []string
	inLane := 0
	batch := func(id string) *Action {
		return &Action{ID: id + " a", Outputs: []string{"out/" + id}, Batch: &Batch{ID: id, Lane: "compile",
			Run: func(ctx context.Context, t *Task, _ []*Action) error {
				mu.Lock()
				order = append(order, id)
				inLane++
				if inLane > 1 {
					order = append(order, "beside another")
				}
				mu.Unlock()
				select {
				case <-beside:
				case <-ctx.Done():
					return errors.New("what is not of the lane waits for it")
				}
				mu.Lock()
				inLane--
				mu.Unlock()
				return os.WriteFile(t.Path("out/"+id), nil, 0o666)
			}}}
	}
	other := &Action{ID: "other", Run: func(context.Context, *Task) error { close(beside); return nil }}
	b := newBench(t, batch("components"), batch("etcd"), batch("traefik"), other)
	if err := b.Run(ctx, Options{Budget: Budget{CPU: 8}}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"components", "etcd", "traefik"}, order); diff != "" {
		t.Error(diff)
	}
}
