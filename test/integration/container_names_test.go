//go:build integration

package integration

import (
	"archive/tar"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A found is a file or a link in the engine's copy of the tree.
type found struct {
	Mode    fs.FileMode // with type
	Content string      // of a link, its target
}

// inContainer returns the files and links of a volume in the engine. The test reads them with a container of its own, so nothing is
// sent for that.
func (tr tree) inContainer(t *testing.T, volume string) map[string]found {
	t.Helper()
	image, err := buildImage()
	if err != nil {
		t.Fatal(err)
	}
	got := tr.docker(t, "run", "--rm", "--network=none", "--volume", "slipway-"+tr.id(t)+"-"+volume+":/look:ro", image,
		"tar", "-C", "/look", "-c", "--exclude=./_output", ".").ok(t)
	all := map[string]found{}
	for r := tar.NewReader(strings.NewReader(got.stdout)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		mode := h.FileInfo().Mode()
		if mode.IsDir() {
			continue
		}
		f := found{mode, h.Linkname}
		if mode.IsRegular() {
			data, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			f.Content = string(data)
		}
		all[strings.TrimPrefix(h.Name, "./")] = f
	}
}

func TestContainerGetsFilesWithOddNames(t *testing.T) {
	needEngine(t)
	tr := smallTree(t)
	names := []string{
		"plain", "a space", " leading and trailing ", "a\nnewline", "\n", "tab\tand\rreturn", "Übergrößenträger", "日本語",
		"e\u0301 and \u00e9", "🚢",
		`"double"`, `'single'`, "back\\slash", "-leading-dash", "--delete", "#hash", ";semicolon", "+plus", "~tilde", "!bang", "$HOME", "`id`",
		"a*", "a?", "a[b]", "a**", "*", "?", "[", "{a,b}", "%s", "a:b", "host:file", "..twodots", "...", "ends in a dot.",
		".hidden", "C:", "& ampersand",
		"- rule", "+ rule", "P rule", "H *", "invalid\xffutf8", strings.Repeat("long", 60), "d*/b?/c[d]/-e/f g\nh/file", "x/_output/file",
		"_outputs", "core", ".rsync-filter", "x/.cvsignore",
	}
	want := map[string]found{}
	for _, name := range names {
		file := "odd/" + name
		if err := os.MkdirAll(filepath.Dir(tr.path(file)), 0o755); err != nil {
			t.Fatal(err)
		}
		tr.write(t, file, "content of "+name)
		want[file] = found{0o644, "content of " + name}
	}
	tr.write(t, "odd/empty", "")
	want["odd/empty"] = found{0o644, ""}
	tr.write(t, "odd/run me", "#!/bin/sh\necho run\n")
	tr.chmod(t, "odd/run me", 0o755)
	want["odd/run me"] = found{0o755, "#!/bin/sh\necho run\n"}
	for link, to := range map[string]string{"odd/a link": "../odd/a space", "odd/nowhere": "nothing is\nhere", "odd/to a folder": "../cmd",
		"odd/-link": "plain"} {
		if err := os.Symlink(to, tr.path(link)); err != nil {
			t.Fatal(err)
		}
		want[link] = found{fs.ModeSymlink | 0o777, to}
	}
	// Files that git ignores are no sources, and neither is _output.
	tr.write(t, ".gitignore", "/_output/\n*.ignored\n")
	tr.write(t, "odd/secret.ignored", "private")
	ours := append(slices.Collect(maps.Keys(want)), "cmd/kubectl/main.go", "images/kube-cross/add-user", ".gitignore")

	tr.slipway(t, "run", "--", "true").ok(t)
	got := tr.inContainer(t, "work")
	for name, w := range want {
		if g, ok := got[name]; !ok {
			t.Errorf("%q did not arrive", name)
		} else if g != w {
			t.Errorf("%q arrived as %v, want %v", name, g, w)
		}
	}
	for name := range got {
		if strings.HasPrefix(name, "odd/") && want[name] == (found{}) {
			t.Errorf("%q arrived as well", name)
		}
		if strings.HasPrefix(name, ".git/") {
			t.Errorf("git's own %s arrived", name)
		}
	}
	for _, name := range ours {
		if _, ok := got[name]; !ok {
			t.Errorf("%q did not arrive", name)
		}
	}
	if got := tr.slipway(t, "run", "--", "odd/run me").ok(t); got.stdout != "run\n" || strings.Contains(got.stderr, "sent sources") {
		t.Errorf("a script with an odd name is not run, or sent again: %v", got)
	}

	// Files that are removed here are removed there, and files that change their kind do so there.
	gone := []string{"odd/a\nnewline", "odd/a*", "odd/-leading-dash", "odd/d*/b?/c[d]/-e/f g\nh/file"}
	tr.remove(t, append(gone, "odd/a link")...)
	if err := os.MkdirAll(tr.path("odd/a link"), 0o755); err != nil {
		t.Fatal(err)
	}
	tr.write(t, "odd/a link/was a link", "now a folder")
	tr.chmod(t, "odd/plain", 0o755)
	tr.slipway(t, "run", "--", "true").ok(t)
	got = tr.inContainer(t, "work")
	for _, name := range append(gone, "odd/a link") {
		if f, ok := got[name]; ok {
			t.Errorf("%q is still there: %v", name, f)
		}
	}
	for name, w := range map[string]found{
		"odd/plain": {0o755, "content of plain"}, "odd/a link/was a link": {0o644, "now a folder"}, "odd/*": want["odd/*"],
		"odd/a[b]": want["odd/a[b]"],
	} {
		if got[name] != w {
			t.Errorf("%q is %v, want %v", name, got[name], w)
		}
	}
}

// A clean commit is sent just like a changed tree.
func TestContainerGetsWhatIsCommitted(t *testing.T) {
	needEngine(t)
	tr := smallTree(t)
	tr.slipway(t, "run", "--", "true").ok(t)
	got := tr.inContainer(t, "work")
	names := run(t, tr.dir, nil, "git", "ls-files", "-z").ok(t).stdout
	n := 0
	for name := range strings.SplitSeq(strings.TrimSuffix(names, "\x00"), "\x00") {
		n++
		if f, ok := got[name]; !ok || f.Content != tr.read(t, name) {
			t.Errorf("%s did not arrive as it is", name)
		}
	}
	if len(got) != n {
		t.Errorf("%d files arrived, and the commit has %d: %q", len(got), n, slices.Sorted(maps.Keys(got)))
	}
}

func TestLinksOutOfTheTreeAreNotSentToAContainer(t *testing.T) {
	needEngine(t)
	tr := smallTree(t)
	tr.slipway(t, "build", "kubectl", "--road=container").ok(t)
	before := tr.inContainer(t, "tree")
	outside := filepath.Join(filepath.Dir(tr.dir), "outside")
	if err := os.WriteFile(outside, []byte("not of the tree\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	tr.write(t, "docs/sent.md", "It must not be sent.\n")
	for link, to := range map[string]string{
		"docs/passwd": "/etc/passwd", "cmd/kubectl/up": "../../../outside", "top": "..", "docs/long way": "../cmd/../../outside",
		"absolute": tr.dir + "/LICENSE",
	} {
		t.Run(to, func(t *testing.T) {
			if err := os.Symlink(to, tr.path(link)); err != nil {
				t.Fatal(err)
			}
			defer tr.remove(t, link)
			got := tr.slipway(t, "build", "kubectl", "--road=container").fails(t, 1, link)
			if !strings.Contains(got.stderr, "outside") {
				t.Errorf("the error is not clear: %v", got)
			}
			if after := tr.inContainer(t, "tree"); !maps.Equal(before, after) {
				t.Error("something was sent")
			}
			tr.onlyData(t)
		})
	}
	t.Run("replaced module", func(t *testing.T) {
		elsewhere := filepath.Join(filepath.Dir(tr.dir), "elsewhere")
		if err := os.CopyFS(elsewhere, os.DirFS(tr.path("fake/kubernetes"))); err != nil {
			t.Fatal(err)
		}
		tr.edit(t, "cmd/go.mod", "=> ../fake/kubernetes", "=> ../../elsewhere")
		defer tr.edit(t, "cmd/go.mod", "=> ../../elsewhere", "=> ../fake/kubernetes")
		tr.slipway(t, "build", "kubectl", "--road=container").fails(t, 1, "cmd/go.mod:7",
			"k8s.io/kubernetes is replaced by ../../elsewhere", "ROAD=local")
		if after := tr.inContainer(t, "tree"); !maps.Equal(before, after) {
			t.Error("something was sent")
		}
	})
	tr.slipway(t, "run", "--", "cat", "docs/sent.md").ok(t)
}
