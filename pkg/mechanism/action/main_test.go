package action

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The test binary doubles as a second process: with this variable it runs a graph in the named root.
const childRoot = "ACTION_TEST_ROOT"

func TestMain(m *testing.M) {
	root := os.Getenv(childRoot)
	if root == "" {
		os.Exit(m.Run())
	}
	graph := children[os.Getenv("ACTION_TEST_GRAPH")](root)
	out := json.NewEncoder(os.Stdout)
	if err := graph.Run(context.Background(), Options{Events: func(e Event) { out.Encode(e) }}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// children are the graphs that a second process can run.
var children = map[string]func(root string) *Graph{
	"hold": holdGraph,
	"many": manyGraph,
}

// A child is a second process that runs a graph.
type child struct {
	*exec.Cmd
	stdin  io.WriteCloser
	events *bufio.Scanner
}

func startChild(t *testing.T, graph, root string) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childRoot+"="+root, "ACTION_TEST_GRAPH="+graph)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return &child{cmd, stdin, bufio.NewScanner(stdout)}
}

// A bench is a tree with a graph, and the events of its last run.
type bench struct {
	t *testing.T
	*Graph
	events []Event
}

func newBench(t *testing.T, actions ...*Action) *bench {
	return &bench{t: t, Graph: &Graph{Root: t.TempDir(), State: "_output/.slipway", Actions: actions}}
}

func (b *bench) write(p, text string) {
	b.t.Helper()
	if err := writeFile(filepath.Join(b.Root, p), text); err != nil {
		b.t.Fatal(err)
	}
}

func writeFile(name, text string) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return err
	}
	return os.WriteFile(name, []byte(text), 0o666)
}

func (b *bench) want(p, text string) {
	b.t.Helper()
	data, err := os.ReadFile(filepath.Join(b.Root, p))
	if err != nil {
		b.t.Fatal(err)
	}
	if string(data) != text {
		b.t.Fatalf("%s: %q, want %q", p, data, text)
	}
}

func (b *bench) try(ctx context.Context) error {
	b.events = nil
	return b.Run(ctx, Options{Budget: Budget{CPU: 4}, Events: func(e Event) { b.events = append(b.events, e) }})
}

func (b *bench) run() {
	b.t.Helper()
	if err := b.try(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
}

// ids returns the actions of the last run's events of a kind, sorted.
func (b *bench) ids(k EventKind) []string {
	var ids []string
	for _, e := range b.events {
		if e.Kind == k {
			ids = append(ids, e.Action)
		}
	}
	slices.Sort(ids)
	return ids
}

// ran runs the graph, which must run these actions and skip all others.
func (b *bench) ran(want ...string) {
	b.t.Helper()
	b.run()
	slices.Sort(want)
	if diff := cmp.Diff(want, b.ids(Done)); diff != "" {
		b.t.Fatalf("ran (-want +got):\n%s", diff)
	}
	if n := len(b.ids(Done)) + len(b.ids(Skipped)); n != len(b.Actions) {
		b.t.Fatalf("%d actions done or skipped, want %d", n, len(b.Actions))
	}
}

// because compares the reason, in words, for which the last run ran an action or a batch.
func (b *bench) because(id, want string) {
	b.t.Helper()
	for _, e := range b.events {
		if e.Kind == Started && e.Action == id {
			if e.Text != want {
				b.t.Fatalf("%s ran because of %q, want %q", id, e.Text, want)
			}
			return
		}
	}
	b.t.Fatalf("%s did not run", id)
}

// join returns an action that writes its recipe and its input files to an output.
func join(id, output string, inputs ...string) *Action {
	a := &Action{ID: id, Inputs: inputs, Outputs: []string{output}}
	a.Run = func(ctx context.Context, t *Task) error {
		var b strings.Builder
		b.WriteString(strings.Join(a.Recipe, " "))
		for _, in := range inputs {
			data, err := os.ReadFile(t.run.absolute(in))
			if err != nil {
				return err
			}
			b.WriteString("[" + string(data) + "]")
		}
		return os.WriteFile(t.Path(output), []byte(b.String()), 0o666)
	}
	return a
}

func sumOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
