package action

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// holdGraph has an action that runs until standard input ends.
func holdGraph(root string) *Graph {
	a := join("hold", "out/hold", "src")
	run := a.Run
	a.Run = func(ctx context.Context, t *Task) error {
		bufio.NewReader(os.Stdin).ReadString('\n')
		return run(ctx, t)
	}
	return &Graph{Root: root, State: "_output/.slipway", Actions: []*Action{a}}
}

// until reads events up to the first of a kind.
func (c *child) until(t *testing.T, k EventKind) {
	t.Helper()
	for c.events.Scan() {
		var e Event
		if err := json.Unmarshal(c.events.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		if e.Kind == k {
			return
		}
	}
	t.Fatalf("the process ended before an event %q", k)
}

func TestSecondRunWaitsForTheFirst(t *testing.T) {
	t.Parallel()
	b := newBench(t, join("hold", "out/hold", "src"))
	b.write("src", "s")
	first := startChild(t, "hold", b.Root)
	first.until(t, Started)
	waited := ""
	err := b.Run(t.Context(), Options{Events: func(e Event) {
		b.events = append(b.events, e)
		if e.Kind == Waiting {
			waited = e.Text
			first.stdin.Close()
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("another run in this tree (process %d)", first.Process.Pid); waited != want {
		t.Errorf("waited for %q, want %q", waited, want)
	}
	if skipped := b.ids(Skipped); len(skipped) != 1 {
		t.Errorf("what the first run made was made again: %v", b.events)
	}
}

func TestWaitingEndsWithTheContext(t *testing.T) {
	t.Parallel()
	b := newBench(t, join("a", "out/a"))
	ctx, cancel := context.WithCancel(t.Context())
	err := Locked(t.Context(), b.Root, b.State, nil, func() error {
		return b.Run(ctx, Options{Events: func(e Event) {
			if e.Kind == Waiting {
				cancel()
			}
		}})
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	b.ran("a")
}

func TestLockOutlivesItsFile(t *testing.T) {
	t.Parallel()
	b := newBench(t, join("a", "out/a"))
	done := make(chan error)
	waiting := make(chan struct{})
	err := Locked(t.Context(), b.Root, b.State, nil, func() error {
		go func() {
			done <- b.Run(t.Context(), Options{Events: func(e Event) {
				if e.Kind == Waiting {
					close(waiting)
				}
			}})
		}()
		<-waiting
		return os.RemoveAll(filepath.Join(b.Root, "_output"))
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	b.ran()
}

func TestLockOnADeletedFileDoesNotCount(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "lock")
	for _, successor := range []bool{false, true} {
		f, err := os.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
		if successor {
			if err := writeFile(name, ""); err != nil {
				t.Fatal(err)
			}
		}
		if err := claim(f, name); !errors.Is(err, errLocked) {
			t.Errorf("with a file in its place: %t: error %v", successor, err)
		}
	}
}

// manyGraph has three layers of small actions, some of which make directories, with a batch in between.
func manyGraph(root string) *Graph {
	g := &Graph{Root: root, State: "_output/.slipway"}
	layer := []string{"src"}
	for depth := range 3 {
		var next []string
		for i := range 4 {
			id := fmt.Sprintf("%d-%d", depth, i)
			next = append(next, "out/"+id+"/text")
			g.Actions = append(g.Actions, manyAction(root, id, layer))
		}
		layer = next
	}
	batch := &Batch{ID: "batch", Run: func(ctx context.Context, t *Task, stale []*Action) error {
		for _, a := range stale {
			if err := makeMany(root, a, t); err != nil {
				return err
			}
		}
		return nil
	}}
	for _, a := range g.Actions[4:8] {
		a.Run, a.Batch = nil, batch
	}
	return g
}

func manyAction(root, id string, inputs []string) *Action {
	a := &Action{ID: id, Inputs: inputs, Outputs: []string{"out/" + id + "/", "bin/" + id}}
	a.Run = func(_ context.Context, t *Task) error { return makeMany(root, a, t) }
	return a
}

func makeMany(root string, a *Action, t *Task) error {
	text := a.ID
	for _, in := range a.Inputs {
		data, err := os.ReadFile(filepath.Join(root, in))
		if err != nil {
			return err
		}
		text = sumOf(text + string(data))
	}
	if err := os.WriteFile(filepath.Join(t.Path(a.Outputs[0]), "text"), []byte(text), 0o666); err != nil {
		return err
	}
	f, err := os.Create(t.Path(a.Outputs[1]))
	if err != nil {
		return err
	}
	defer f.Close()
	for range 64 { // many writes, to be killed between them
		if _, err := f.WriteString(strings.Repeat(text, 16)); err != nil {
			return err
		}
	}
	return nil
}

// outputs returns the digest of everything a graph made.
func outputs(t *testing.T, root string) string {
	t.Helper()
	j, err := (&Graph{Root: root, State: "unused"}).judge(nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var digests []string
	for _, dir := range []string{"out/", "bin/"} {
		c, err := j.output(dir)
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, c.String())
	}
	return strings.Join(digests, " ")
}

func TestKilledAtAnyMomentTheNextRunEndsInTheSameBytes(t *testing.T) {
	t.Parallel()
	killed := newBench(t)
	killed.Graph = manyGraph(killed.Root)
	whole := newBench(t)
	whole.Graph = manyGraph(whole.Root)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 8 {
		text := fmt.Sprint("version ", i)
		killed.write("src", text)
		whole.write("src", text)
		c := startChild(t, "many", killed.Root)
		// Reading events takes it somewhere into the run, and some hashing to a moment between two events.
		for range r.IntN(24) {
			c.events.Scan()
		}
		for range r.IntN(200) {
			sumOf(text)
		}
		c.Process.Kill()
		c.Wait()
		killed.run()
		whole.run()
		if got, want := outputs(t, killed.Root), outputs(t, whole.Root); got != want {
			t.Fatalf("killed %d times, %s, want %s", i+1, got, want)
		}
	}
}

func TestFileInPlaceOfTheOutputFolderIsNamed(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "_output"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	err := Locked(t.Context(), root, "_output/.slipway", nil, func() error { return nil })
	if err == nil || !strings.Contains(err.Error(), "move it away") {
		t.Errorf("error %v", err)
	}
}
