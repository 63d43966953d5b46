package transfer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway.build/pkg/mechanism/needs"
)

func TestMirrorSendsOddNamesModesAndLinks(t *testing.T) {
	t.Parallel()
	d, dir := newDaemon(t), filepath.Join(t.TempDir(), "a:b [c]* -")
	names := odd.write(t, dir)
	must(t, len(odd)-2)(d.remote().Mirror(t.Context(), "tree", dir, names))
	same(t, odd, d.tree)
	for _, name := range names {
		here, err := os.Lstat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		there, err := os.Lstat(filepath.Join(d.tree, name))
		if err != nil {
			t.Fatal(err)
		}
		if !here.ModTime().Equal(there.ModTime()) {
			t.Errorf("%q was written at %v, there %v", name, here.ModTime(), there.ModTime())
		}
	}
	must(t, 0)(d.remote().Mirror(t.Context(), "tree", dir, names))
}

// For any two odd names there is a round in which one is listed and the other is not: neither may be taken for the other.
func TestMirrorConfusesNoNames(t *testing.T) {
	t.Parallel()
	d, dir := newDaemon(t), t.TempDir()
	odd.write(t, dir)
	all := slices.Sorted(maps.Keys(odd))
	for bit := 1; bit < len(all); bit <<= 1 {
		for _, set := range []int{0, bit} {
			var names []string
			want := tree{}
			for i, name := range all {
				if i&bit == set {
					names = append(names, name)
					want[name] = odd[name]
				}
			}
			if _, err := d.remote().Mirror(t.Context(), "tree", dir, names); err != nil {
				t.Fatalf("%q: %v", names, err)
			}
			same(t, want, d.tree)
		}
	}
}

func TestMirrorSendsOnlyWhatIsListed(t *testing.T) {
	t.Parallel()
	d, dir := newDaemon(t), t.TempDir()
	tree{
		"a":                  "1",
		"cmd/a":              "2",
		"cmd/b/c":            "3",
		"cmd/b/_output/kept": "4",
		"_output/bin/x":      "not a source",
		".git/config":        "not a source",
		"cmd/x.tmp":          "not a source",
		"cmd/b/c.orig":       "not a source",
		"empty/.keep":        "not a source",
	}.write(t, dir)
	names := []string{"a", "cmd/a", "cmd/b/_output/kept", "cmd/b/c"}
	must(t, 4)(d.remote().Mirror(t.Context(), "tree", dir, names))
	same(t, tree{"a": "1", "cmd/a": "2", "cmd/b/_output/kept": "4", "cmd/b/c": "3"}, d.tree)
}

func TestMirrorDeletesWhatIsNotListedExceptBelowProtected(t *testing.T) {
	t.Parallel()
	d, dir := newDaemon(t), t.TempDir()
	tree{"a": "1", "_output/x": "local", "sub/x": "2"}.write(t, dir)
	tree{
		"old":                  "",
		"old folder/with/file": "",
		"sub/old":              "",
		"_output/bin/kubectl":  "made there",
		"sub/_output/x":        "not protected",
		"w*ld/[x]/kept":        "kept",
		"w*ld/gone":            "",
		"wild/[x]/gone":        "",
		"cache":                "-> a link that is kept",
	}.write(t, d.tree)
	if err := os.MkdirAll(filepath.Join(d.tree, "empty/empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	stats, err := d.remote().Mirror(t.Context(), "tree", dir, []string{"a", "sub/x"}, "_output", "w*ld/[x]", "cache", "not/there")
	if err != nil {
		t.Fatal(err)
	}
	same(t, tree{
		"a": "1", "sub/x": "2",
		"_output/bin/kubectl": "made there", "w*ld/[x]/kept": "kept", "cache": "-> a link that is kept",
	}, d.tree)
	if stats.Deleted != 0 && stats.Deleted != 13 { // older daemons don't report it
		t.Errorf("%d were deleted", stats.Deleted)
	}
}

func TestMirrorOfNothingEmptiesTheModule(t *testing.T) {
	t.Parallel()
	d, dir := newDaemon(t), t.TempDir()
	tree{"x": "not listed"}.write(t, dir)
	tree{"a": "", "b/c": "", "_output/x": ""}.write(t, d.tree)
	must(t, 0)(d.remote().Mirror(t.Context(), "tree", dir, nil, "_output"))
	same(t, tree{"_output/x": ""}, d.tree)
}

func TestMirrorReplacesFilesFoldersAndLinksByEachOther(t *testing.T) {
	t.Parallel()
	kinds := []tree{{"x": "file"}, {"x/y/z": "in a folder"}, {"x": "-> other", "other": ""}}
	for i, before := range kinds {
		for j, after := range kinds {
			t.Run(fmt.Sprintf("%d to %d", i, j), func(t *testing.T) {
				t.Parallel()
				d := newDaemon(t)
				for _, state := range []tree{before, after} {
					dir := t.TempDir()
					if _, err := d.remote().Mirror(t.Context(), "tree", dir, state.write(t, dir)); err != nil {
						t.Fatal(err)
					}
					same(t, state, d.tree)
				}
			})
		}
	}
}

func TestMirrorSeesTwoEditsWithinASecond(t *testing.T) {
	t.Parallel()
	d, dir := newDaemon(t), t.TempDir()
	when := time.Unix(1_700_000_000, 1000)
	for _, content := range []string{"one", "two"} {
		tree{"a": content}.write(t, dir)
		if err := os.Chtimes(filepath.Join(dir, "a"), when, when); err != nil {
			t.Fatal(err)
		}
		must(t, 1)(d.remote().Mirror(t.Context(), "tree", dir, []string{"a"}))
		same(t, tree{"a": content}, d.tree)
		when = when.Add(time.Microsecond)
	}
}

func TestMirrorSendsDifferencesOrWholeFiles(t *testing.T) {
	t.Parallel()
	for _, whole := range []bool{false, true} {
		d, dir := newDaemon(t), t.TempDir()
		r := d.remote()
		r.Whole = whole
		content := make([]byte, 4<<20)
		tree{"big": string(content)}.write(t, dir)
		must(t, 1)(r.Mirror(t.Context(), "tree", dir, []string{"big"}))
		tree{"big": string(content) + "x"}.write(t, dir)
		stats, err := r.Mirror(t.Context(), "tree", dir, []string{"big"})
		if err != nil {
			t.Fatal(err)
		}
		if all := stats.Sent > 4<<20; all != whole {
			t.Errorf("Whole = %v: %d bytes were sent", whole, stats.Sent)
		}
	}
}

const nobody = 65534

// unprivileged is a daemon as it is in a container: an ordinary user. It is the user nobody here if the test is root.
func unprivileged(t *testing.T) *daemon {
	t.Helper()
	shared, err := os.MkdirTemp("", "transfer") // t.TempDir is for its user alone
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(shared) })
	d := daemonIn(t, shared, fmt.Sprint(nobody))
	if os.Getuid() == 0 {
		for _, path := range []string{shared, d.tree, d.out} {
			if err := os.Chown(path, nobody, nobody); err != nil {
				t.Fatal(err)
			}
		}
	}
	return d
}

// Such an error is what the daemon writes to its stderr, if it is left to itself.
func TestFileThatCannotBeWrittenThereIsNamed(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can make folders of another user")
	}
	d, dir := unprivileged(t), t.TempDir()
	tree{"ours/x": ""}.write(t, d.tree)
	began := time.Now()
	names := tree{"a": "1", "ours/b": "2"}.write(t, dir)
	_, err := d.remote().Mirror(t.Context(), "tree", dir, names)
	failing(t, err, began, 0, "rsync to tree: not all files could be transferred", "ours", "Permission denied")
	_, err = d.remote().Add(t.Context(), "tree", dir, names)
	failing(t, err, began, 0, "rsync to tree: not all files could be transferred", "ours", "Permission denied")
}

func TestDaemonThatIsNotRootUpdatesAndDeletesWhatIsReadOnly(t *testing.T) {
	t.Parallel()
	d, dir := unprivileged(t), t.TempDir()
	before := tree{"ro/a": "0444|1", "ro/b": "0400|2", "ro/ro/c": "0555|3", "gone/ro/d": "0400|4", "plain": "5"}
	if os.Getuid() == 0 {
		before["none"] = "0000|6" // which only root can read
	}
	names := before.write(t, dir)
	for _, folder := range []string{"ro/ro", "ro", "gone/ro", "gone", "."} {
		path := filepath.Join(dir, folder)
		if err := os.Chmod(path, 0o555); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(path, 0o755) })
	}
	must(t, len(before))(d.remote().Mirror(t.Context(), "tree", dir, names))
	same(t, before, d.tree)

	after := tree{"ro/a": "0444|one", "ro/b": "0400|two", "ro/ro/c": "0555|three", "ro/ro/e": "0444|new"}
	if os.Getuid() == 0 {
		after["none"] = "0000|six"
	}
	for _, folder := range []string{".", "gone", "gone/ro", "ro", "ro/ro"} {
		if err := os.Chmod(filepath.Join(dir, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name := range after {
		_ = os.Remove(filepath.Join(dir, name))
	}
	names = after.write(t, dir)
	if err := os.Chmod(filepath.Join(dir, "ro/ro"), 0o555); err != nil {
		t.Fatal(err)
	}
	must(t, len(after))(d.remote().Mirror(t.Context(), "tree", dir, names))
	same(t, after, d.tree)
	again := 0
	if os.Getuid() == 0 {
		again = 1 // what the daemon cannot read it cannot compare
	}
	must(t, again)(d.remote().Mirror(t.Context(), "tree", dir, names))
}

func TestMirrorSendsAChangeThatKeepsSizeAndTime(t *testing.T) {
	t.Parallel()
	d, dir := newDaemon(t), t.TempDir()
	names := tree{"a": "one"}.write(t, dir)
	info, err := os.Stat(filepath.Join(dir, "a"))
	if err != nil {
		t.Fatal(err)
	}
	must(t, 1)(d.remote().Mirror(t.Context(), "tree", dir, names))
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte("two"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(filepath.Join(dir, "a"), info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	must(t, 1)(d.remote().Mirror(t.Context(), "tree", dir, names))
	same(t, tree{"a": "two"}, d.tree)
}

func TestBadNamesAreRefusedBeforeAnythingIsSent(t *testing.T) {
	t.Parallel()
	needs.Program(t, "rsync")
	dir := t.TempDir()
	tree{
		"a":               "",
		"sub/b":           "",
		"abs":             "-> /etc/passwd",
		"up":              "-> ../x",
		"sub/up":          "-> ../../x",
		"sub/down-up":     "-> b/../../../x",
		"top":             "-> .",
		"sub/top":         "-> ..",
		"sub/through":     "-> ../hop/..",
		"hop":             "-> sub/..",
		"further":         "-> top/hop/sub/top/..",
		"circle":          "-> circle/x",
		"folder link":     "-> sub",
		"deep/er/link":    "-> ../../sub/b",
		"deep/er/outside": "-> ../../sub/../../x",
	}.write(t, dir)
	tests := []struct {
		names []string
		want  string // "" if it is fine
	}{
		{[]string{"../a"}, `"../a": is not a clean path`},
		{[]string{"/a"}, `"/a": is not a clean path`},
		{[]string{"sub//b"}, "is not a clean path"},
		{[]string{"./a"}, "is not a clean path"},
		{[]string{"a/"}, "is not a clean path"},
		{[]string{""}, "is not a clean path"},
		{[]string{"."}, "is a folder's"},
		{[]string{"a\x00b"}, "is not a clean path"},
		{[]string{"sub"}, "sub: is a folder"},
		{[]string{"a", "not there"}, "not there: no such file"},
		{[]string{"a/b"}, "a/b: lies below a, which is a file"},
		{[]string{"a", "a/b"}, "a/b: lies below a, which is a file"},
		{[]string{"folder link/b"}, "folder link/b: lies below the symbolic link folder link"},
		{[]string{"folder link", "folder link/b"}, "folder link/b: lies below the symbolic link folder link"},
		{[]string{"abs"}, "abs: the symbolic link points outside the tree, to /etc/passwd"},
		{[]string{"up"}, "up: the symbolic link points outside the tree, to ../x"},
		{[]string{"sub/up"}, "sub/up: the symbolic link points outside the tree, to ../../x"},
		{[]string{"sub/down-up"}, "points outside the tree"},
		{[]string{"deep/er/outside"}, "points outside the tree"},
		{[]string{"top", "sub/top", "deep/er/link", "circle", "hop", "folder link"}, ""},
		{[]string{"sub/through", "hop"}, "sub/through: the symbolic link points outside the tree, to ../hop/.."},
		{[]string{"further", "top", "hop", "sub/top"}, "further: the symbolic link points outside"},
	}
	for _, test := range tests {
		dialed := errors.New("it dialed")
		r := (&daemon{}).remote()
		r.Dial = failingDial(dialed)
		for _, err := range []error{second(r.Mirror(t.Context(), "tree", dir, test.names)), second(r.Add(t.Context(), "tree", dir, test.names))} {
			switch {
			case test.want == "" && !errors.Is(err, dialed), test.want != "" && errors.Is(err, dialed):
				t.Errorf("%q: %v, want %q", test.names, err, test.want)
			case !strings.Contains(err.Error(), test.want) || !strings.HasPrefix(err.Error(), "rsync to tree: "):
				t.Errorf("%q: %v\nwant %s", test.names, err, test.want)
			}
		}
	}
	for _, protected := range []string{"a", "sub", "sub/b/x", "..", ".", "a/b"} {
		_, err := (&Remote{}).Mirror(t.Context(), "tree", dir, []string{"a", "sub/b"}, protected)
		if err == nil || !strings.Contains(err.Error(), "protected") {
			t.Errorf("protected %q: %v", protected, err)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	if _, err := (&Remote{}).Mirror(ctx, "tree", dir, []string{"a"}); err == nil || err.Error() != "rsync to tree: enough" {
		t.Errorf("canceled: %v", err)
	}
}

func TestFolderThatChangesWhileItIsSentIsAnError(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(dir string) error{
		"gone": func(dir string) error { return os.Remove(filepath.Join(dir, "sub/b")) },
		"more": func(dir string) error { return os.WriteFile(filepath.Join(dir, "sub/c"), nil, 0o644) },
		"replaced": func(dir string) error {
			return os.Rename(filepath.Join(dir, "sub/b"), filepath.Join(dir, "sub/b.orig"))
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			d, dir := newDaemon(t), t.TempDir()
			names := tree{"a": "", "sub/b": ""}.write(t, dir)
			r := d.remote()
			dial := r.Dial
			r.Dial = func(ctx context.Context) (conn connection, err error) { return meanwhile(change(dir), dial, ctx) }
			began := time.Now()
			_, err := r.Mirror(t.Context(), "tree", dir, names)
			if what == "replaced" && err == nil {
				return // as many as before: nothing shows the change, and the next call puts it right
			}
			failing(t, err, began, 0, "rsync to tree: ", dir+" changed while it was sent", "run it again")
		})
	}
}

func BenchmarkMirrorUnchanged(b *testing.B) {
	for _, count := range []int{10, 10_000} {
		b.Run(fmt.Sprint(count), func(b *testing.B) {
			d, dir := newDaemon(b), b.TempDir()
			w := tree{}
			for i := range count {
				w[fmt.Sprintf("pkg/%d/sub/file%d.go", i/9, i)] = fmt.Sprintf("package a\n\nconst a = %d\n", i)
			}
			names := w.write(b, dir)
			if _, err := d.remote().Mirror(b.Context(), "tree", dir, names); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if stats, err := d.remote().Mirror(b.Context(), "tree", dir, names); err != nil || stats.Files > 0 {
					b.Fatal(stats, err)
				}
			}
		})
	}
}
