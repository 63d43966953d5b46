package action

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A cached bench runs its graph with a cache, and wants some outputs.
type cachedBench struct {
	*bench
	cache  Cache
	wanted []string
}

func (b *cachedBench) try() error {
	b.events = nil
	return b.Run(b.t.Context(), Options{Budget: Budget{CPU: 4}, Events: func(e Event) { b.events = append(b.events, e) },
		Cache: b.cache, Wanted: b.wanted})
}

// did runs the graph, which must run some actions and take others from the cache.
func (b *cachedBench) did(ran, hit, fetched string) {
	b.t.Helper()
	if err := b.try(); err != nil {
		b.t.Fatal(err)
	}
	got := []string{strings.Join(b.ids(Done), " "), strings.Join(b.ids(Hit), " "), strings.Join(b.ids(Fetched), " ")}
	if diff := cmp.Diff([]string{ran, hit, fetched}, got); diff != "" {
		b.t.Fatalf("done, cached and fetched (-want +got):\n%s", diff)
	}
}

func (b *cachedBench) absent(paths ...string) {
	b.t.Helper()
	for _, p := range paths {
		if _, err := os.Lstat(filepath.Join(b.Root, p)); !errors.Is(err, fs.ErrNotExist) {
			b.t.Errorf("%s is here: %v", p, err)
		}
	}
}

// chain returns a bench whose actions make a program of a source, a folder of the program, and a package of both and a text.
func chain(t *testing.T, cache Cache, wanted ...string) *cachedBench {
	t.Helper()
	return chainIn(t, "out/", cache, wanted...)
}

// chainIn is chain with another folder for outputs. All have the same name in caches.
func chainIn(t *testing.T, out string, cache Cache, wanted ...string) *cachedBench {
	t.Helper()
	program := join("program", out+"program", "src/main")
	folder := &Action{ID: "folder", Inputs: []string{out + "program"}, Outputs: []string{out + "folder/"}}
	b := newBench(t)
	folder.Run = func(_ context.Context, t *Task) error {
		data, err := os.ReadFile(filepath.Join(b.Root, out+"program"))
		if err != nil {
			return err
		}
		dir := t.Path(out + "folder/")
		return errors.Join(os.Mkdir(filepath.Join(dir, "bin"), 0o777), os.WriteFile(filepath.Join(dir, "bin/tool"), data, 0o755),
			os.WriteFile(filepath.Join(dir, "bin.txt"), []byte("text"), 0o644), os.Mkdir(filepath.Join(dir, "empty"), 0o777))
	}
	pack := join("package", out+"package", out+"program", out+"folder/bin/tool", "src/text")
	pack.Inputs = append(pack.Inputs, out+"folder/bin/")
	folder.Recipe = []string{"Program=" + out + "program"}
	b.Actions, b.Folders = []*Action{program, folder, pack}, map[string]string{out: "made/"}
	b.write("src/main", "1")
	b.write("src/text", "t")
	return &cachedBench{b, cache, wanted}
}

func TestResultsOfAnotherTreeAreTaken(t *testing.T) {
	t.Parallel()
	c := newMemory()
	first := chain(t, c)
	first.did("folder package program", "", "")

	c.readOnly = true
	second := chain(t, c, "out/package")
	second.did("", "folder package program", "package")
	second.want("out/package", "[[1]][[1]][t]")
	second.absent("out/program", "out/folder")
	second.did("", "", "") // it is known from the record
	if c.lookups > 6 {
		t.Errorf("%d lookups", c.lookups)
	}

	second.write("src/text", "u") // what is read now is fetched
	second.did("package", "", "folder program")
	second.want("out/package", "[[1]][[1]][u]")
	second.want("out/folder/bin/tool", "[1]")
	if st, err := os.Stat(filepath.Join(second.Root, "out/folder/bin/tool")); err != nil || st.Mode()&0o100 == 0 {
		t.Errorf("the tool is not executable: %v, %v", st.Mode(), err)
	}

	all := chain(t, c)
	all.did("", "folder package program", "folder package program")
	for _, p := range []string{"out/program", "out/package", "out/folder/bin/tool", "out/folder/bin.txt"} {
		all.want(p, readAll(t, first.Root, p))
	}
	if _, err := os.Stat(filepath.Join(all.Root, "out/folder/empty")); err != nil {
		t.Error(err)
	}
	all.cache = nil
	all.did("", "", "") // and its record is good without the cache
}

func readAll(t *testing.T, root, p string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, p))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestWantedOutputsComeLater(t *testing.T) {
	t.Parallel()
	c := newMemory()
	chain(t, c).did("folder package program", "", "")
	b := chain(t, c, "out/package")
	b.did("", "folder package program", "package")
	b.wanted = []string{"out/folder/bin.txt"}
	b.did("", "", "folder")
	b.want("out/folder/bin.txt", "text")
	b.wanted = []string{"out"}
	b.did("", "", "program")
}

func TestOldBytesDoNotStayUnderAKnownName(t *testing.T) {
	t.Parallel()
	c := newMemory()
	first := chain(t, c)
	first.did("folder package program", "", "")
	first.write("src/main", "2")
	first.did("folder package program", "", "")

	b := chain(t, nil)
	b.did("folder package program", "", "")
	b.write("src/main", "2")
	b.cache, b.wanted = c, []string{}
	b.did("", "folder package program", "folder package program")
	b.want("out/program", "[2]")
	b.write("out/program", "edited")
	b.did("", "", "program")
	b.want("out/program", "[2]")
}

func TestWithoutTheCacheWhatIsNeededRuns(t *testing.T) {
	t.Parallel()
	c := newMemory()
	chain(t, c).did("folder package program", "", "")
	b := chain(t, c, "out/package")
	b.did("", "folder package program", "package")
	b.cache = nil
	b.did("", "", "")
	b.absent("out/program", "out/folder")
	b.write("src/text", "u")
	b.did("folder package program", "", "")
	b.want("out/package", "[[1]][[1]][u]")
	b.wanted = nil
	b.did("", "", "")
}

func TestLostContentsAreMadeAgain(t *testing.T) {
	t.Parallel()
	c := newMemory()
	chain(t, c).did("folder package program", "", "")
	b := chain(t, c, "out/package")
	delete(c.files, sumOf("[[1]][[1]][t]"))
	b.did("package", "folder package program", "folder program")
	b.want("out/package", "[[1]][[1]][t]")

	b = chain(t, c, "out/package")
	b.write("src/text", "u")
	delete(c.files, sumOf("[1]")) // both the program and what the folder holds
	b.did("folder package program", "folder program", "")
	b.want("out/package", "[[1]][[1]][u]")
	if n := len(b.ids(Failed)); n > 0 {
		t.Errorf("%d failures are reported", n)
	}
	if _, ok := c.files[sumOf("[1]")]; !ok {
		t.Error("what was made again is not stored again")
	}
}

// An output that cannot get its name fails the run, and does not count as fetched.
func TestFetchedOutputWithoutItsNameIsAnError(t *testing.T) {
	t.Parallel()
	c := newMemory()
	chain(t, c).did("folder package program", "", "")
	b := chain(t, c, "out/package")
	b.write("out", "a file where the folder should be")
	if err := b.try(); err == nil || !strings.Contains(err.Error(), ": fetch from the cache: ") || len(b.ids(Fetched)) > 0 {
		t.Errorf("%v; %q were fetched", err, b.ids(Fetched))
	}
}

func TestUploadsOfWhatIsHereAlready(t *testing.T) {
	t.Parallel()
	b := chain(t, nil)
	b.did("folder package program", "", "")
	c := newMemory()
	b.cache = c
	b.did("", "", "")
	if len(c.results) != 3 {
		t.Errorf("%d results are stored", len(c.results))
	}
}

func TestEditedInputsAndLocalResultsAreNotStored(t *testing.T) {
	t.Parallel()
	c := newMemory()
	b := chain(t, c)
	b.Actions[0].Local = true
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	b.Actions[1].Inputs = append(b.Actions[1].Inputs, outside)
	run := b.Actions[2].Run
	b.Actions[2].Run = func(ctx context.Context, t *Task) error {
		b.write("src/text", "edited meanwhile")
		return run(ctx, t)
	}
	b.did("folder package program", "", "")
	if len(c.results) != 0 {
		t.Errorf("%d results are stored, want none", len(c.results))
	}
}

func TestLinksAreFetchedBeforeTheyAreRead(t *testing.T) {
	t.Parallel()
	c := newMemory()
	linked := func() *cachedBench {
		link := &Action{ID: "link", Inputs: []string{"src/a"}, Outputs: []string{"out/links/"}, Run: func(_ context.Context, t *Task) error {
			dir := t.Path("out/links/")
			return errors.Join(os.WriteFile(filepath.Join(dir, "a"), []byte("a"), 0o644), os.Symlink("a", filepath.Join(dir, "b")))
		}}
		b := newBench(t, link, join("reader", "out/reader", "out/links/b"))
		b.write("src/a", "a")
		return &cachedBench{b, c, []string{"out/reader"}}
	}
	linked().did("link reader", "", "")
	b := linked()
	b.did("", "link reader", "link reader")
	b.want("out/links/b", "a")
}

func TestPlanKnowsWhatIsNotHere(t *testing.T) {
	t.Parallel()
	c := newMemory()
	chain(t, c).did("folder package program", "", "")
	b := chain(t, c, "out/package")
	b.did("", "folder package program", "package")
	for _, step := range []struct {
		wanted []string
		want   string
	}{
		{b.wanted, ""},
		{[]string{"out/program"}, "program true: output out/program is missing, folder false: input out/program may be made again, package " +
			"false: input out/program may be made again"},
	} {
		decisions, err := b.Plan(t.Context(), Options{Wanted: step.wanted})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, d := range decisions {
			got = append(got, fmt.Sprintf("%s %t: %s", d.Action.ID, d.Certain, strings.ReplaceAll(d.Reason.String(), "will", "may")))
		}
		if len(got) != strings.Count(step.want, ":") {
			t.Errorf("with %q wanted, the plan is %q", step.wanted, got)
		}
	}
}

// A result that is not of the action is a miss, whatever is wrong with it.
func TestResultsOfOtherOutputs(t *testing.T) {
	t.Parallel()
	sum := sumOf("x")
	good := []Entry{{Path: "out/d/", Kind: Folder}, {Path: "out/d/s/", Kind: Folder}, {Path: "out/d/s/f", Kind: RegularFile, SHA256: sum},
		{Path: "out/f", Kind: ExecutableFile, SHA256: sum}}
	outputs := []string{"out/d/", "out/f"}
	if _, _, err := (&Result{Entries: good}).contents(outputs); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(r []Entry) []Entry{
		"an output is missing":     func(r []Entry) []Entry { return r[:3] },
		"a folder is missing":      func(r []Entry) []Entry { return slices.Delete(r, 1, 2) },
		"another file":             func(r []Entry) []Entry { return append(r, Entry{Path: "src/f", Kind: RegularFile, SHA256: sum}) },
		"a file twice":             func(r []Entry) []Entry { return append(r, r[3]) },
		"a file in a folder twice": func(r []Entry) []Entry { return append(r, r[2]) },
		"a file with a folder's name": func(r []Entry) []Entry {
			return append(r, Entry{Path: "out/d/s", Kind: RegularFile, SHA256: sum})
		},
		"a folder twice":             func(r []Entry) []Entry { return append(r, r[1]) },
		"a file as a folder":         func(r []Entry) []Entry { r[3] = Entry{Path: "out/f/", Kind: Folder}; return r },
		"a folder as a link":         func(r []Entry) []Entry { r[0] = Entry{Path: "out/d", Kind: SymbolicLink, Target: "/"}; return r },
		"a file below a link":        func(r []Entry) []Entry { r[1] = Entry{Path: "out/d/s", Kind: SymbolicLink, Target: "/"}; return r },
		"a path that leads out":      func(r []Entry) []Entry { r[2].Path = "out/d/s/../../../f"; return r },
		"no digest":                  func(r []Entry) []Entry { r[2].SHA256 = ""; return r },
		"a short digest":             func(r []Entry) []Entry { r[2].SHA256 = "00"; return r },
		"a long digest":              func(r []Entry) []Entry { r[2].SHA256 += "00"; return r },
		"an unknown kind":            func(r []Entry) []Entry { r[2].Kind = "socket"; return r },
		"a negative size":            func(r []Entry) []Entry { r[2].Size = -1; return r },
		"a folder that is no folder": func(r []Entry) []Entry { r[1].Kind = RegularFile; return r },
	} {
		if _, _, err := (&Result{Entries: change(slices.Clone(good))}).contents(outputs); !errors.Is(err, errResult) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Whatever a cache has, loses or fails to send, and whatever is edited or removed in between, the outputs are those of a run without it.
func TestRandomRunsWithAFlakyCache(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			useAtRandom(t, rand.New(rand.NewPCG(seed, 1)))
		})
	}
}

func useAtRandom(t *testing.T, random *rand.Rand) {
	c := newMemory()
	c.flaky = func() bool { return random.IntN(8) == 0 }
	trees := []*cachedBench{chain(t, c), chain(t, c), chain(t, nil)}
	plain := trees[2]
	outputs := []string{"out/program", "out/folder/bin/tool", "out/folder/bin.txt", "out/package"}
	for range 8 {
		file, text := []string{"src/main", "src/text"}[random.IntN(2)], fmt.Sprint(random.IntN(3))
		for _, b := range trees {
			b.write(file, text)
		}
		if err := plain.try(); err != nil {
			t.Fatal(err)
		}
		for _, b := range trees[:2] {
			b.cache = c
			if random.IntN(4) == 0 {
				b.cache = nil
			}
			if random.IntN(3) == 0 {
				if err := os.RemoveAll(filepath.Join(b.Root, outputs[random.IntN(len(outputs))])); err != nil {
					t.Fatal(err)
				}
			}
			if random.IntN(4) == 0 && len(c.files) > 0 {
				for sum := range c.files {
					delete(c.files, sum)
					break
				}
			}
			b.wanted = []string{outputs[random.IntN(len(outputs))]}
			if err := b.try(); err != nil {
				t.Fatal(err)
			}
			b.want(b.wanted[0], readAll(t, plain.Root, b.wanted[0]))
			for _, p := range outputs { // what is here is right
				if data, err := os.ReadFile(filepath.Join(b.Root, p)); err == nil && string(data) != readAll(t, plain.Root, p) {
					t.Fatalf("%s is %q", p, data)
				}
			}
		}
	}
}

func TestBlobKeyTellsPartsApart(t *testing.T) {
	t.Parallel()
	if BlobKey("a", "b") == BlobKey("ab") || BlobKey("a", "b") == BlobKey("a", "b", "") {
		t.Error("different parts have the same key")
	}
}

func TestLargestResultsAreFetchedFirst(t *testing.T) {
	t.Parallel()
	makers := map[*member][]*remoteOutput{}
	add := func(id string, sizes ...int64) {
		m := &member{Action: &Action{ID: id}}
		for _, size := range sizes {
			makers[m] = append(makers[m], &remoteOutput{content: content{size: size}})
		}
	}
	add("small", 1, 1)
	add("large", 3)
	add("another small", 2)
	add("largest", 2, 2)
	var got []string
	for _, m := range largestFirst(makers) {
		got = append(got, m.ID)
	}
	if want := []string{"largest", "large", "another small", "small"}; !slices.Equal(got, want) {
		t.Errorf("the order is %q, want %q", got, want)
	}
}
