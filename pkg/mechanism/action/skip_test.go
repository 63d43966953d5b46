package action

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/mechanism/statcache"
)

func TestReasonsToRun(t *testing.T) {
	t.Parallel()
	b := newBench(t, join("a", "out/a", "src/one", "src/two"), join("b", "out/b", "out/a"))
	a := b.Actions[0]
	path := func(p string) string { return filepath.Join(b.Root, p) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	b.write("src/one", "1")
	b.write("src/two", "2")
	for _, step := range []struct {
		name string
		do   func()
		want []string // what runs
		why  string   // the first of them
	}{
		{"first run", func() {}, []string{"a", "b"}, "new"},
		{"nothing", func() {}, nil, ""},
		{"touched", func() { must(os.Chtimes(path("src/one"), time.Now(), time.Now())) }, nil, ""},
		{"same content", func() { b.write("src/one", "1") }, nil, ""},
		{"edited", func() { b.write("src/one", "!") }, []string{"a", "b"}, "inputs changed: src/one"},
		{"two edited", func() { b.write("src/one", "x"); b.write("src/two", "y") }, []string{"a", "b"}, "inputs changed: src/one (+1 more)"},
		{"executable", func() { must(os.Chmod(path("src/one"), 0o755)) }, []string{"a"}, "inputs changed: src/one"},
		{"recipe", func() { a.Recipe = []string{"v1"} }, []string{"a", "b"}, "recipe changed"},
		{"recipe's element", func() { a.Recipe = []string{"v2"} }, []string{"a", "b"}, "recipe changed: v2, was v1"},
		{"recipe's field", func() { a.Recipe = []string{"v2", `Tag="1"`} }, []string{"a", "b"}, `recipe changed: Tag="1" (new)`},
		{"field's value", func() { a.Recipe = []string{"v2", `Tag="2"`} }, []string{"a", "b"}, `recipe changed: Tag="2", was "1"`},
		{"output edited", func() { b.write("out/a", "v2[?][y]") }, []string{"a"}, "output out/a was edited"},
		{"output truncated", func() { must(os.Truncate(path("out/a"), 1)) }, []string{"a"}, "output out/a was edited"},
		{"output executable", func() { must(os.Chmod(path("out/a"), 0o755)) }, []string{"a"}, "output out/a was edited"},
		{"output missing", func() { must(os.Remove(path("out/b"))) }, []string{"b"}, "output out/b is missing"},
		{"record damaged", func() { must(os.Truncate(b.ledger().name("a", ".json"), 10)) }, []string{"a"}, "its record cannot be read"},
		{"stat cache damaged", func() { must(os.Truncate(path(b.State+"/stat"), 100)) }, nil, ""},
		{"state deleted", func() { must(os.RemoveAll(path(b.State))) }, []string{"a", "b"}, "new"},
	} {
		step.do()
		plan, err := b.Plan(t.Context(), Options{})
		must(err)
		if len(plan) > 0 != (len(step.want) > 0) || (len(plan) > 0 && (plan[0].Reason.String() != step.why || !plan[0].Certain)) {
			t.Fatalf("%s: plan %+v", step.name, plan)
		}
		b.run()
		if diff := cmp.Diff(step.want, b.ids(Done)); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", step.name, diff)
		}
		if step.why != "" {
			b.because(step.want[0], step.why)
		}
	}
}

func TestPlanNamesWhatMayRun(t *testing.T) {
	t.Parallel()
	b := newBench(t,
		join("package", "out/package", "out/image"),
		join("image", "out/image", "out/binary", "Dockerfile"),
		join("binary", "out/binary", "main.go"),
		join("docs", "out/docs", "docs.md"),
	)
	for _, p := range []string{"main.go", "Dockerfile", "docs.md"} {
		b.write(p, p)
	}
	plan := func(want ...string) {
		t.Helper()
		decisions, err := b.Plan(t.Context(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, d := range decisions {
			got = append(got, fmt.Sprintf("%s %t: %s", d.Action.ID, d.Certain, d.Reason))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	}
	plan("binary true: new", "image true: new", "package true: new", "docs true: new")
	if _, err := os.Lstat(filepath.Join(b.Root, "_output")); err == nil {
		t.Error("planning left files")
	}
	b.ran("binary", "image", "package", "docs")
	plan()
	b.write("main.go", "edited")
	plan("binary true: inputs changed: main.go",
		"image false: input out/binary will be made again",
		"package false: input out/image may be made again")
	b.write("Dockerfile", "edited")
	plan("binary true: inputs changed: main.go",
		"image true: inputs changed: Dockerfile",
		"package false: input out/image will be made again")
}

// A model is a random graph whose outputs are computed without running it. They have few values, so that an action makes
// the same output from other inputs now and then.
type model struct {
	sources map[string]int
	inputs  map[string][]string // of each action, whose ID is its output's name
	order   []string
}

func newModel(r *rand.Rand, sources, actions int) *model {
	m := &model{sources: make(map[string]int), inputs: make(map[string][]string)}
	var paths []string
	for i := range sources {
		p := fmt.Sprintf("src/%d", i)
		m.sources[p] = r.IntN(10)
		paths = append(paths, p)
	}
	for i := range actions {
		p := fmt.Sprintf("out/%d", i)
		for range 1 + r.IntN(3) {
			if in := paths[r.IntN(len(paths))]; !slices.Contains(m.inputs[p], in) {
				m.inputs[p] = append(m.inputs[p], in)
			}
		}
		m.order = append(m.order, p)
		paths = append(paths, p)
	}
	return m
}

func (m *model) values() map[string]int {
	v := make(map[string]int)
	for p, n := range m.sources {
		v[p] = n
	}
	for _, p := range m.order {
		for _, in := range m.inputs[p] {
			v[p] += v[in] / 2
		}
		v[p] %= 5
	}
	return v
}

func (m *model) actions(root string) []*Action {
	var actions []*Action
	for _, p := range m.order {
		actions = append(actions, &Action{ID: p, Inputs: m.inputs[p], Outputs: []string{p}, Run: func(_ context.Context, t *Task) error {
			sum := 0
			for _, in := range m.inputs[p] {
				data, err := os.ReadFile(filepath.Join(root, in))
				if err != nil {
					return err
				}
				n := 0
				if _, err := fmt.Sscan(string(data), &n); err != nil {
					return err
				}
				sum += n / 2
			}
			return os.WriteFile(t.Path(p), fmt.Append(nil, sum%5), 0o666)
		}})
	}
	slices.Reverse(actions) // so that the order in the graph is of no help
	return actions
}

func TestExactlyWhatChangedRuns(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 0))
			m := newModel(r, 6, 14)
			b := newBench(t)
			b.Actions = m.actions(b.Root)
			for p, n := range m.sources {
				b.write(p, fmt.Sprint(n))
			}
			b.ran(slices.Clone(m.order)...)
			for range 8 {
				before := m.values()
				damaged := make(map[string]bool)
				for range r.IntN(4) {
					src := fmt.Sprintf("src/%d", r.IntN(len(m.sources)))
					out := m.order[r.IntN(len(m.order))]
					switch r.IntN(4) {
					case 0, 1:
						m.sources[src] = r.IntN(10)
						b.write(src, fmt.Sprint(m.sources[src]))
					case 2:
						b.write(out, "damaged")
						damaged[out] = true
					case 3:
						os.Remove(filepath.Join(b.Root, out))
						damaged[out] = true
					}
				}
				after := m.values()
				var want []string
				for _, p := range m.order {
					if damaged[p] || slices.ContainsFunc(m.inputs[p], func(in string) bool { return before[in] != after[in] }) {
						want = append(want, p)
					}
				}
				plan, err := b.Plan(t.Context(), Options{})
				if err != nil {
					t.Fatal(err)
				}
				b.ran(want...)
				for p, n := range after {
					b.want(p, fmt.Sprint(n))
				}
				checkPlan(t, plan, want)
			}
		})
	}
}

// checkPlan requires that everything that ran was planned, and that everything that was certain to run ran.
func checkPlan(t *testing.T, plan []Decision, ran []string) {
	t.Helper()
	planned := make(map[string]bool)
	for _, d := range plan {
		planned[d.Action.ID] = true
		if d.Certain && !slices.Contains(ran, d.Action.ID) {
			t.Fatalf("%s was certain to run: %s", d.Action.ID, d.Reason)
		}
	}
	for _, id := range ran {
		if !planned[id] {
			t.Fatalf("%s was not planned", id)
		}
	}
}

func TestEditIsNoticedIfItsModificationTimeIsPutBack(t *testing.T) {
	t.Parallel()
	b := newBench(t, join("a", "out/a", "src"))
	b.write("src", "1")
	b.ran("a")
	info, err := os.Stat(filepath.Join(b.Root, "src"))
	if err != nil {
		t.Fatal(err)
	}
	b.write("src", "2")
	if err := os.Chtimes(filepath.Join(b.Root, "src"), info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	b.ran("a")
	b.want("out/a", "[2]")
}

func TestEditWithinOneTickIsNoticed(t *testing.T) {
	t.Parallel()
	j, err := (&Graph{Root: t.TempDir(), State: "state"}).judge(nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(j.root, "src")
	for i, text := range []string{"one", "two"} {
		if err := writeFile(name, text); err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			// Only kernels with coarse times leave the same status, and not always: make it so.
			st, err := statcache.Lstat(name)
			if err != nil {
				t.Fatal(err)
			}
			j.remember("src", st, sha256.Sum256([]byte("one")), st.Ctime+int64(statcache.Tick)/2)
		}
		c, err := j.input("src")
		if err != nil {
			t.Fatal(err)
		}
		if c.hex() != sumOf(text) {
			t.Fatalf("%s: sum %s", text, c.hex())
		}
	}
}

func TestSymbolicLinks(t *testing.T) {
	t.Parallel()
	link := &Action{ID: "link", Inputs: []string{"in"}, Outputs: []string{"out/link"}, Run: func(_ context.Context, t *Task) error {
		return os.Symlink("../data", t.Path("out/link"))
	}}
	b := newBench(t, link, join("dir", "out/dir", "tree/"))
	b.Actions[1].Run = func(_ context.Context, t *Task) error { return os.WriteFile(t.Path("out/dir"), nil, 0o666) }
	b.write("data", "1")
	b.write("tree/file", "f")
	for name, target := range map[string]string{"in": "data", "tree/link": "file", "tree/dangling": "nowhere", "tree/up": ".."} {
		if err := os.Symlink(target, filepath.Join(b.Root, name)); err != nil {
			t.Fatal(err)
		}
	}
	b.ran("link", "dir")
	b.ran()
	b.write("data", "2")
	b.ran("link") // its input counts with what it leads to; its output does not
	b.because("link", "inputs changed: in")
	if err := os.Remove(filepath.Join(b.Root, "tree/link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("elsewhere", filepath.Join(b.Root, "tree/link")); err != nil {
		t.Fatal(err)
	}
	b.ran("dir")
	b.because("dir", "inputs changed: tree/link")
}

// The Go command compiles a .go file that is a symbolic link, wherever it leads.
func TestLinksBelowADirectoryCountWithTheFileTheyLeadTo(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no executable bits")
	}
	b := newBench(t, &Action{ID: "build", Inputs: []string{"cmd/"}, Outputs: []string{"out/bin"}, Run: func(_ context.Context, t *Task) error {
		return os.WriteFile(t.Path("out/bin"), nil, 0o666)
	}})
	path := func(p string) string { return filepath.Join(b.Root, p) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	b.write("shared/shared.go", "1")
	b.write("folder/file", "1")
	b.write("cmd/hello/main.go", "main")
	for name, target := range map[string]string{
		"shared.go": "../../shared/shared.go", "chain.go": "shared.go", "folder": "../../folder", "later.go": "../../later.go",
	} {
		must(os.Symlink(target, path("cmd/hello/"+name)))
	}
	b.ran("build")
	for _, step := range []struct {
		name string
		do   func()
		why  string // nothing runs if empty
	}{
		{"nothing", func() {}, ""},
		{"edited", func() { b.write("shared/shared.go", "2") }, "inputs changed: cmd/hello/chain.go (+1 more)"},
		{"touched", func() { must(os.Chtimes(path("shared/shared.go"), time.Now(), time.Now())) }, ""},
		{"executable", func() { must(os.Chmod(path("shared/shared.go"), 0o755)) }, "inputs changed: cmd/hello/chain.go (+1 more)"},
		{"edited in a folder", func() { b.write("folder/file", "2") }, ""},
		{"the file a link dangled for", func() { b.write("later.go", "1") }, "inputs changed: cmd/hello/later.go"},
		{"dangling again", func() { must(os.Remove(path("later.go"))) }, "inputs changed: cmd/hello/later.go"},
	} {
		step.do()
		if step.why == "" {
			b.ran()
			continue
		}
		b.ran("build")
		b.because("build", step.why)
	}
}

// The file that an output's link leads to is another action's. Who reads the output reads that file, too.
func TestLinksInADirectoryThatIsAnOutputCountByThemselves(t *testing.T) {
	t.Parallel()
	for _, output := range []struct{ name, link string }{{"out/dir/", "out/dir/link"}, {"out/link", "out/link"}} {
		link := &Action{ID: "link", Outputs: []string{output.name}, Run: func(_ context.Context, t *Task) error {
			name := t.Path(output.name)
			if strings.HasSuffix(output.name, "/") {
				name = filepath.Join(name, "link")
			}
			target, err := filepath.Rel(path.Dir(output.link), "data")
			if err != nil {
				return err
			}
			return os.Symlink(target, name)
		}}
		read := &Action{ID: "read", Inputs: []string{output.name}, Outputs: []string{"out/copy"}, Run: func(_ context.Context, t *Task) error {
			return os.WriteFile(t.Path("out/copy"), nil, 0o666)
		}}
		b := newBench(t, link, read)
		b.write("data", "1")
		b.ran("link", "read")
		b.write("data", "2")
		b.ran("read")
		b.because("read", "inputs changed: "+output.link)
		b.ran()
	}
}

func TestInputOutsideOfTheRoot(t *testing.T) {
	t.Parallel()
	outside := filepath.Join(t.TempDir(), "patched")
	inside := "src"
	b := newBench(t)
	b.Actions = []*Action{join("a", "out/a", outside, inside), join("b", "out/b", filepath.Join(b.Root, "out/a"))}
	b.write(inside, "i")
	if err := writeFile(outside, "1"); err != nil {
		t.Fatal(err)
	}
	b.ran("a", "b")
	if err := writeFile(outside, "2"); err != nil {
		t.Fatal(err)
	}
	b.ran("a", "b")
	b.because("a", "inputs changed: "+outside)
	b.want("out/b", "[[2][i]]")
}

func BenchmarkNothingToDo(b *testing.B) {
	root := b.TempDir()
	g := &Graph{Root: root, State: "_output/.slipway"}
	for i := range 400 {
		src := fmt.Sprintf("src/%d", i)
		if err := writeFile(filepath.Join(root, src), src); err != nil {
			b.Fatal(err)
		}
		a := join(fmt.Sprint(i), fmt.Sprintf("out/%d", i), src)
		if i > 20 {
			a = join(a.ID, a.Outputs[0], src, fmt.Sprintf("out/%d", i-20), fmt.Sprintf("out/%d", i-10))
		}
		a.Run = func(_ context.Context, t *Task) error {
			return os.WriteFile(t.Path(a.Outputs[0]), []byte(a.ID), 0o666)
		}
		g.Actions = append(g.Actions, a)
	}
	if err := g.Run(b.Context(), Options{Budget: Budget{CPU: 100}}); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := g.Run(b.Context(), Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
