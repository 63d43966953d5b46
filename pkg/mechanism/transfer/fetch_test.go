package transfer

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestFetchGetsFilesAndFolders(t *testing.T) {
	t.Parallel()
	d, to := newDaemon(t), filepath.Join(t.TempDir(), "new/folder")
	tree{"linux/amd64/kubectl": "0755|1", "linux/amd64/kubelet": "0755|2", "linux/amd64/sub/x": "0444|3",
		"linux/arm64/kubectl": "no"}.write(t, d.out)
	must(t, 2)(d.remote().Fetch(t.Context(), "out", "linux/amd64", []string{"kubectl", "sub"}, to, ""))
	same(t, tree{"kubectl": "0755|1", "sub/x": "0444|3"}, to)
	must(t, 0)(d.remote().Fetch(t.Context(), "out", "linux/amd64", []string{"kubectl", "sub"}, to, ""))
	must(t, 0)(d.remote().Fetch(t.Context(), "out", "linux/amd64", nil, to, ""))
	must(t, 1)(d.remote().Fetch(t.Context(), "out", "", []string{"linux/amd64/kubelet"}, to, ""))
	same(t, tree{"kubectl": "0755|1", "sub/x": "0444|3", "linux/amd64/kubelet": "0755|2"}, to)
	must(t, 4)(d.remote().Fetch(t.Context(), "out", "", []string{"."}, filepath.Join(to, "all"), ""))
	same(t, holds(t, d.out), filepath.Join(to, "all"))
}

func TestFetchGetsOddNames(t *testing.T) {
	t.Parallel()
	d, to := newDaemon(t), filepath.Join(t.TempDir(), "a:b *")
	const from = "from [x]* -/ü"
	odd.write(t, filepath.Join(d.out, from))
	must(t, len(odd)-2)(d.remote().Fetch(t.Context(), "out", from, []string{"."}, to, ""))
	same(t, odd, to)
	for name, content := range odd {
		to := t.TempDir()
		if !strings.ContainsAny(name, "*?[\\#- ") {
			continue // ordinary enough
		}
		if name == `\*` || name == `*\` {
			began := time.Now()
			_, err := d.remote().Fetch(t.Context(), "out", from, []string{name}, to, "")
			failing(t, err, began, 0, "rsync from out: ", "fetch the folder that it is in")
			continue
		}
		if _, err := d.remote().Fetch(t.Context(), "out", from, []string{name}, to, ""); err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		same(t, tree{name: content}, to)
	}
}

func TestFetchCopiesFromTheBasisAndDoesNotLinkToIt(t *testing.T) {
	t.Parallel()
	d, to, basis := newDaemon(t), t.TempDir(), filepath.Join(t.TempDir(), "basis of x")
	content := string(make([]byte, 1<<20))
	tree{"bin/same": content, "bin/other": content + "new", "bin/more": "3"}.write(t, d.out)
	tree{"same": content, "other": content}.write(t, basis)
	written := time.Now().Add(-time.Hour)
	for _, path := range []string{filepath.Join(d.out, "bin/same"), filepath.Join(basis, "same")} {
		if err := os.Chtimes(path, written, written); err != nil {
			t.Fatal(err)
		}
	}
	stats, err := d.remote().Fetch(t.Context(), "out", "bin", []string{"more", "other", "same"}, to, basis)
	if err != nil {
		t.Fatal(err)
	}
	if stats.Received > 100<<10 {
		t.Errorf("%d bytes came", stats.Received)
	}
	same(t, tree{"same": content, "other": content + "new", "more": "3"}, to)
	same(t, tree{"same": content, "other": content}, basis)
	for _, name := range []string{"same", "other"} {
		here, err := os.Stat(filepath.Join(to, name))
		if err != nil {
			t.Fatal(err)
		}
		there, err := os.Stat(filepath.Join(basis, name))
		if err != nil {
			t.Fatal(err)
		}
		if os.SameFile(here, there) {
			t.Errorf("%s is a hard link", name)
		}
	}
}

func TestFetchWithARelativeBasis(t *testing.T) {
	d, to := newDaemon(t), t.TempDir()
	t.Chdir(t.TempDir())
	content := string(make([]byte, 1<<20))
	tree{"a": content + "new"}.write(t, d.out)
	tree{"a": content}.write(t, "basis")
	stats, err := d.remote().Fetch(t.Context(), "out", "", []string{"a"}, to, "basis")
	if err != nil || stats.Received > 100<<10 {
		t.Errorf("%+v, %v", stats, err)
	}
	same(t, tree{"a": content + "new"}, to)
}

func TestFetchLeavesOutLinksThatLeadOut(t *testing.T) {
	t.Parallel()
	d, to := newDaemon(t), t.TempDir()
	tree{"bin/a": "1", "bin/in": "-> a", "bin/out": "-> ../../x", "bin/abs": "-> /etc/passwd"}.write(t, d.out)
	must(t, 1)(d.remote().Fetch(t.Context(), "out", "", []string{"bin"}, to, ""))
	same(t, tree{"bin/a": "1", "bin/in": "-> a"}, to)
	began := time.Now()
	_, err := d.remote().Fetch(t.Context(), "out", "bin", []string{"abs"}, to, "")
	failing(t, err, began, 0, "rsync from out: abs: did not come")
}

func TestFetchNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	d, to := newDaemon(t), t.TempDir()
	tree{"bin/a": "1"}.write(t, d.out)
	began := time.Now()
	_, err := d.remote().Fetch(t.Context(), "out", "bin", []string{"a", "not there"}, to, "")
	failing(t, err, began, 0, "rsync from out: not all files could be transferred", "not there", "No such file")
	_, err = d.remote().Fetch(t.Context(), "out", "nowhere", []string{"a"}, to, "")
	failing(t, err, began, 0, "rsync from out: ", "nowhere", "No such file")
	_, err = d.remote().Fetch(t.Context(), "nothing", "", []string{"a"}, to, "")
	failing(t, err, began, 0, "rsync from nothing: the remote end refused: Unknown module 'nothing'")
	for _, from := range []string{"../x", "/x", "a//b"} {
		_, err = d.remote().Fetch(t.Context(), "out", from, []string{"a"}, to, "")
		failing(t, err, began, 0, "rsync from out: ", from)
	}
	_, err = d.remote().Fetch(t.Context(), "out", "", []string{"../tree"}, to, "")
	failing(t, err, began, 0, "not a clean path")
}

func TestFetchThatBreaksOffLeavesNothingUnderAFinalName(t *testing.T) {
	t.Parallel()
	d, to := newDaemon(t), t.TempDir()
	tree{"big": string(make([]byte, 32<<20))}.write(t, d.out)
	r := d.remote()
	r.Dial = dying(d.dial, 8<<20, false)
	began := time.Now()
	_, err := r.Fetch(t.Context(), "out", "", []string{"big"}, to, "")
	failing(t, err, began, 0, "rsync from out: the connection broke")
	if _, err := os.Lstat(filepath.Join(to, "big")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("err = %v", err)
	}
}
