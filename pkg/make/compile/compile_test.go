package compile

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/make/road"
	"slipway.build/pkg/mechanism/action"
)

// A fake road writes a package's name into its output.
type fake struct {
	looked   *int
	compiled *[]string
	ready    error
}

func (fake) Info() road.Info { return road.Info{Name: "fake", Output: "bin"} }
func (fake) Recipe(s road.Spec, b road.Binary) []string {
	return []string{s.Module, b.Package}
}
func (f fake) Ready(context.Context) error { *f.looked++; return f.ready }
func (fake) Commands(c road.Compilation) []string {
	return []string{"fake " + c.Targets[0].Package + " " + c.Targets[0].Output}
}
func (f fake) Compile(_ context.Context, c road.Compilation, r action.Report) error {
	r.SetWorker("fake")
	for _, t := range c.Targets {
		*f.compiled = append(*f.compiled, t.Package)
		if err := os.WriteFile(t.Output, []byte(t.Package), 0o755); err != nil {
			return err
		}
	}
	slices.Sort(*f.compiled)
	return nil
}

// graph returns the compiles of two programs of one module, and one of another.
func graph(t *testing.T, by road.Road) *action.Graph {
	t.Helper()
	g := &action.Graph{Root: t.TempDir(), State: "state"}
	c := Compiler{Root: g.Root, Cache: filepath.Join(g.Root, "cache"), Measured: g.Measured}
	for _, s := range []Spec{
		{ID: "compile a", Batch: "compile", Output: "bin/a", Spec: road.Spec{Module: "cmd"}, Binary: road.Binary{Package: "./a"}},
		{ID: "compile b", Batch: "compile", Output: "bin/b", Spec: road.Spec{Module: "cmd"}, Binary: road.Binary{Package: "./b"}},
		{ID: "compile c", Batch: "compile of other", Output: "bin/c", Spec: road.Spec{Module: "other"},
			Binary: road.Binary{Package: "./c"}, Elsewhere: true},
	} {
		a, err := c.Action(by, s)
		if err != nil {
			t.Fatal(err)
		}
		g.Actions = append(g.Actions, a)
	}
	return g
}

func TestBinariesOfAModuleAreOneBatch(t *testing.T) {
	t.Parallel()
	var looked int
	var compiled, by []string
	g := graph(t, fake{&looked, &compiled, nil})
	if g.Actions[0].Batch != g.Actions[1].Batch || g.Actions[0].Batch == g.Actions[2].Batch {
		t.Error("want one batch for each module")
	}
	if got := g.Actions[0].Batch.Commands(g.Actions[:1]); !slices.Equal(got, []string{"fake ./a " + filepath.Join(g.Root, "bin", "a")}) {
		t.Errorf("commands %q", got)
	}
	err := g.Run(t.Context(), action.Options{Events: func(e action.Event) {
		if e.Kind == action.Done {
			by = append(by, e.Action+" by "+e.By)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(by)
	want := []string{"compile a by fake", "compile b by fake", "compile c by the fake road: fake"}
	if diff := cmp.Diff(want, by); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if looked != 1 {
		t.Errorf("the road checked %d times whether it is ready", looked)
	}

	// Only the missing binary is compiled again.
	compiled = nil
	if err := os.Remove(filepath.Join(g.Root, "bin", "b")); err != nil {
		t.Fatal(err)
	}
	if err := g.Run(t.Context(), action.Options{}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(compiled, []string{"./b"}) {
		t.Errorf("compiled again: %q", compiled)
	}
}

func TestARoadThatIsNotReadyCompilesNothing(t *testing.T) {
	t.Parallel()
	var looked int
	var compiled []string
	missing := errors.New("missing")
	if err := graph(t, fake{&looked, &compiled, missing}).Run(t.Context(), action.Options{}); !errors.Is(err, missing) || compiled != nil {
		t.Errorf("error %v, compiled %q", err, compiled)
	}
}

// A borrower may take parts from other machines.
type borrower struct{ fake }

func (borrower) Borrows() bool { return true }

// Nobody has signed what was borrowed, so no cache gets it, and it does not count as made here.
func TestBorrowedBinariesStayHere(t *testing.T) {
	t.Parallel()
	var looked int
	var compiled []string
	road := fake{&looked, &compiled, nil}
	own, borrowed := graph(t, road), graph(t, borrower{road})
	for _, a := range borrowed.Actions {
		if !a.Local {
			t.Errorf("%s may be shared", a.ID)
		}
	}
	for g, want := range map[*action.Graph]int{own: 0, borrowed: len(borrowed.Actions)} {
		if err := g.Run(t.Context(), action.Options{}); err != nil {
			t.Fatal(err)
		}
		var outputs []string
		for _, a := range g.Actions {
			outputs = append(outputs, a.Outputs...)
		}
		if taken, err := g.Taken(outputs); err != nil || len(taken) != want {
			t.Errorf("%d outputs count as taken from elsewhere, want %d: %v", len(taken), want, err)
		}
	}
}

// A limited road cannot compile tests.
type limited struct{ fake }

func (limited) CheckOptions(road.Options) error { return nil }
func (limited) CheckBinary(b road.Binary) error {
	if b.Test {
		return &road.UnsupportedError{Road: "limited", What: b.Package}
	}
	return nil
}

func TestABinaryThatTheRoadCannotCompileIsAnError(t *testing.T) {
	t.Parallel()
	c := Compiler{Measured: func(string) (int64, bool) { return 0, false }}
	if _, err := c.Action(limited{}, Spec{Binary: road.Binary{Package: "p", Test: true}}); !errors.As(err, new(*road.UnsupportedError)) {
		t.Errorf("error %v", err)
	}
}

// What is packed ahead has a sum, under any name, unless it was changed afterwards.
func TestSumsOfPackedBinariesAreKnown(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := Compiler{Cache: filepath.Join(dir, "cache")}
	p := c.ahead(t.Context())
	stop := sync.OnceFunc(p.stop)
	defer stop()
	content := bytes.Repeat([]byte("binary\n"), 20_000)
	names := []string{"same", "touched", "replaced"}
	for _, name := range names {
		built, final := filepath.Join(dir, "built-"+name), filepath.Join(dir, name)
		if err := os.WriteFile(built, append([]byte(name), content...), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Link(built, final); err != nil {
			t.Fatal(err)
		}
		p.built()(built)
	}
	if err := awaitSplits(c.Cache, len(names)); err != nil {
		t.Fatal(err)
	}
	stop()
	if err := os.Chtimes(filepath.Join(dir, "touched"), time.Time{}, time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	replaced := filepath.Join(dir, "replaced")
	if err := errors.Join(os.Remove(replaced), os.WriteFile(replaced, append([]byte("REPLACED"), content...), 0o755)); err != nil {
		t.Fatal(err)
	}
	if want, got := fmt.Sprintf("%x", sha256.Sum256(append([]byte("same"), content...))), p.sum(filepath.Join(dir, "same")); got != want {
		t.Errorf("SHA-256 %q, want %s", got, want)
	}
	for _, name := range append(names[1:], "missing") {
		if sum := p.sum(filepath.Join(dir, name)); sum != "" {
			t.Errorf("%s: SHA-256 %s", name, sum)
		}
	}
}

// awaitSplits waits until so many contents are cut, and so have sums.
func awaitSplits(cache string, n int) error {
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		splits, err := filepath.Glob(filepath.Join(cache, "*", "*.split"))
		if err != nil || len(splits) == n {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d of %d contents are cut: %q", len(splits), n, splits)
		}
	}
}

// A watched road reports each binary when it is finished, and then calls built.
type watched struct {
	fake
	built func(file string) error
}

func (w *watched) Compile(_ context.Context, c road.Compilation, _ action.Report) error {
	for _, t := range c.Targets {
		if err := os.WriteFile(t.Output, bytes.Repeat([]byte(t.Package+"\n"), 20_000), 0o755); err != nil {
			return err
		}
		c.Built(t.Output)
		if err := w.built(t.Output); err != nil {
			return err
		}
	}
	return nil
}

// The sum that a road's binary has in the record is the one that packing computed: it is not read again.
func TestPackedBinariesAreNotReadAgain(t *testing.T) {
	t.Parallel()
	g := &action.Graph{Root: t.TempDir(), State: "state"}
	c := Compiler{Root: g.Root, Cache: filepath.Join(g.Root, "cache"), Measured: g.Measured}
	by := &watched{fake{looked: new(int)}, func(file string) error {
		if err := awaitSplits(c.Cache, 1); err != nil {
			return err
		}
		info, err := os.Stat(file)
		if err != nil {
			return err
		}
		f, err := os.OpenFile(file, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = f.Write([]byte("not")) // who reads the file again sees this
		return errors.Join(err, f.Close(), os.Chtimes(file, info.ModTime(), info.ModTime()))
	}}
	a, err := c.Action(by, Spec{ID: "compile a", Batch: "compile", Output: "bin/a", Spec: road.Spec{Module: "cmd"},
		Binary: road.Binary{Package: "./a"}})
	if err != nil {
		t.Fatal(err)
	}
	g.Actions = append(g.Actions, a)
	var files []action.File
	if err := g.Run(t.Context(), action.Options{Events: func(e action.Event) { files = append(files, e.Files...) }}); err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("%x", sha256.Sum256(bytes.Repeat([]byte("./a\n"), 20_000))); len(files) != 1 || files[0].SHA256 != want {
		t.Errorf("files %v, want SHA-256 %s", files, want)
	}
}
