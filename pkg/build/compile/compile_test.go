package compile

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/build/road"
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
func (f fake) Compile(_ context.Context, c road.Compilation, r road.Report) error {
	r.By("fake")
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
		{ID: "compile c", Batch: "compile of other", Output: "bin/c", Spec: road.Spec{Module: "other"}, Binary: road.Binary{Package: "./c"}, Elsewhere: true},
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
