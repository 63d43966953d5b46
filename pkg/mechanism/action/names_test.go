package action

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFoldersWithOneNameInCachesShareResults(t *testing.T) {
	t.Parallel()
	c := newMemory()
	chain(t, c).did("folder package program", "", "")
	other := chainIn(t, "z/other/", c)
	other.did("", "folder package program", "folder package program")
	other.want("z/other/package", "[[1]][[1]][t]")
	other.want("z/other/folder/bin/tool", "[1]")
	for _, result := range c.results {
		if !strings.Contains(result, `"path":"made/`) || strings.Contains(result, `"path":"out/`) {
			t.Errorf("the cache has %s", result)
		}
	}

	other.write("src/text", "u")
	other.did("package", "", "")
	other.want("z/other/package", "[[1]][[1]][u]")
}

// Two folders may have the same name in caches, in one graph and in different ones.
func TestTreeWithTwoFoldersOfOneNameTakesBoth(t *testing.T) {
	t.Parallel()
	folders := map[string]string{"local/": "made/", "container/": "made/"}
	graph := func(c Cache, programDir, toolDir string) *cachedBench {
		b := newBench(t)
		b.write("src/main", "1")
		b.write("src/tool", "2")
		texts := &Action{ID: "texts", Outputs: []string{"texts/"}}
		texts.Run = func(_ context.Context, t *Task) error {
			dir := filepath.Join(t.Path("texts/"), "local") // not one of the folders
			return errors.Join(os.Mkdir(dir, 0o777), os.WriteFile(filepath.Join(dir, "text"), []byte("text"), 0o644))
		}
		b.Actions = []*Action{join("program", programDir+"program", "src/main"), join("tool", toolDir+"tool", "src/tool"), texts,
			join("package", "package", programDir+"program", toolDir+"tool", "texts/local/text")}
		b.Folders = folders
		return &cachedBench{b, c, nil}
	}
	c := newMemory()
	graph(c, "local/", "local/").did("package program texts tool", "", "")
	for _, dirs := range [][2]string{{"container/", "local/"}, {"local/", "container/"}, {"container/", "container/"}} {
		b := graph(c, dirs[0], dirs[1])
		b.did("", "package program texts tool", "package program texts tool")
		b.want(dirs[0]+"program", "[1]")
		b.want(dirs[1]+"tool", "[2]")
		b.want("texts/local/text", "text")
	}
}

func TestKeyWithAnotherRecipeIsThatOfSuchAnAction(t *testing.T) {
	t.Parallel()
	key := func(output, text string, recipe, asked []string) (key string) {
		b := newBench(t)
		b.write("src/main", text)
		program := join("program", output, "src/main")
		run := program.Run
		program.Recipe = recipe
		program.Run = func(ctx context.Context, t *Task) error {
			key = t.CacheKeyFor(output, asked)
			return run(ctx, t)
		}
		b.Actions = []*Action{program}
		b.Folders = map[string]string{"local/": "made/", "container/": "made/"}
		b.run()
		return key
	}
	version1, version2, any := []string{"version 1"}, []string{"version 2"}, []string{"any version"}
	one := key("local/program", "1", version1, any)
	for what, tt := range map[string]struct {
		key  string
		same bool
	}{
		"another version":           {key("local/program", "1", version2, any), true},
		"a folder of the same name": {key("container/program", "1", version2, any), true},
		"its own recipe":            {key("local/program", "1", any, any), true},
		"another input":             {key("local/program", "2", version1, any), false},
		"another output":            {key("local/other", "1", version1, any), false},
		"another recipe":            {key("local/program", "1", version1, version1), false},
	} {
		if (tt.key == one) != tt.same {
			t.Errorf("%s: keys %s and %s, want the same: %v", what, one, tt.key, tt.same)
		}
	}
}
