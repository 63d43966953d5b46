package patching

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Variables by which the test program runs a command of a workspace.
const (
	toRun    = "PATCHING_COMMAND"
	toRunIn  = "PATCHING_ROOT"
	toRunFor = "PATCHING_PROJECT"
)

// TestMain is Edit or Save in a process of their own, if the environment says so.
func TestMain(m *testing.M) {
	command := os.Getenv(toRun)
	if command == "" {
		os.Exit(m.Run())
	}
	w := &world{env: os.Environ()}
	w.Workspace = &Workspace{Root: os.Getenv(toRunIn), Components: "cmd", Project: os.Getenv(toRunFor), Go: w.find}
	var err error
	if command == "save" {
		_, err = w.Save(context.Background(), false)
	} else {
		_, err = w.Edit(context.Background(), command == "edit --force")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// killed runs a command in a process and kills it some time after its start. It reports whether the command ended before that.
func (w *world) killed(command string, after time.Duration) bool {
	w.t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(w.env, "TMPDIR="+w.t.TempDir(), toRun+"="+command, toRunIn+"="+w.Root, toRunFor+"="+w.Project)
	var problem strings.Builder
	c.Stderr = &problem
	if err := c.Start(); err != nil {
		w.t.Fatal(err)
	}
	timer := time.AfterFunc(after, func() { _ = c.Process.Kill() })
	defer timer.Stop()
	err := c.Wait()
	if err != nil && c.ProcessState.ExitCode() == 1 {
		w.t.Errorf("%s fails: %s", command, &problem)
	}
	return err == nil
}

func TestKilledCommandsLeaveTheOldOrTheNew(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.patch("0001-script.patch", bare)
	w.edit()
	start := time.Now()
	if !w.killed("edit --force", time.Minute) {
		t.Fatal("edit was killed")
	}
	whole := time.Since(start)
	w.commit("One", "pkg/kubelet.go", "One = 1", "One = 11")
	w.save()
	a := w.patches()
	id := w.git("rev-parse", "HEAD")
	w.commit("Two", "pkg/kubelet.go", "Two = 2", "Two = 22")
	w.git("rebase", "-q", "--onto", id+"~1", id) // One goes, Two comes
	w.save()
	b := w.patches()
	head := w.git("rev-parse", "HEAD^{tree}")

	rounds := 3
	if testing.Short() {
		rounds = 2
	}
	for round := range rounds {
		w.killed("edit --force", rand.N(whole+whole/4))
		if _, rec, err := w.open(); err != nil || rec == nil || rec.Tip == "" {
			t.Fatalf("round %d: a killed edit leaves %+v, %v", round, rec, err)
		}
		if got := w.git("rev-parse", "HEAD^{tree}") + w.git("status", "--porcelain"); got != head {
			t.Fatalf("round %d: a killed edit leaves %s, want %s", round, got, head)
		}
	}
	// From here on, the copy has other commits than the patches.
	for round := range rounds {
		if err := w.write("patches", toBytes(a)); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Edit(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		w.commit("Two", "pkg/kubelet.go", "Two = 2", "Two = 22")
		w.git("rebase", "-q", "--onto", "HEAD~2", "HEAD~1")
		w.killed("save", rand.N(whole/2))
		if got := w.patches(); !maps.Equal(got, a) && !maps.Equal(got, b) {
			t.Fatalf("round %d: a killed save leaves %v", round, got)
		}
		if w.save(); !maps.Equal(w.patches(), b) {
			t.Fatalf("round %d: saved again: %v", round, w.patches())
		}
	}
}

func toBytes(files map[string]string) map[string][]byte {
	all := map[string][]byte{}
	for name, text := range files {
		all[name] = []byte(text)
	}
	return all
}

// A context that ends as soon as something has happened in a copy.
type endsWhen struct {
	context.Context
	happened func() bool
}

func (c endsWhen) Err() error {
	if c.happened() {
		return context.Canceled
	}
	return c.Context.Err()
}

// Edit uses the code of an earlier copy again. That has nothing unsaved, so it may be gone if the run ends early.
func TestEditThatEndsEarlyIsRepeated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.patch("0001-script.patch", bare)
	w.edit()
	for name, text := range map[string]string{"ignored": "mine", ".git/info/exclude": "ignored\n"} {
		if err := os.WriteFile(filepath.Join(w.Folder(), name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	w.patch("0002-conflict.patch", conflicting)
	amStopped := func() bool {
		_, err := os.Lstat(filepath.Join(filepath.Dir(w.Folder()), ".kubernetes.new", ".git", "rebase-apply"))
		return err == nil
	}
	if _, err := w.Edit(endsWhen{t.Context(), amStopped}, false); err == nil || errors.As(err, new(*StoppedError)) {
		t.Fatalf("edit: %v", err)
	}
	if data, err := os.ReadFile(filepath.Join(w.Folder(), "ignored")); err != nil || string(data) != "mine" {
		t.Errorf("a file that git ignores: %q, %v", data, err)
	}
	if got := w.git("log", "--format=%s", "-1") + w.git("status", "--porcelain"); got != "script" {
		t.Errorf("the copy after an edit that failed: %q", got)
	}
	stopped := new(StoppedError)
	if _, err := w.Edit(t.Context(), false); !errors.As(err, &stopped) || stopped.Patch != "patches/0002-conflict.patch" {
		t.Errorf("edit again: %v", err)
	}
	w.git("am", "--abort")
	for round, name := range []string{"one.sh", "two.sh", "three.sh", "four.sh"} {
		w.patch("0002-conflict.patch", strings.ReplaceAll(bare, "new.sh", name))
		w.killed("edit", rand.N(time.Second/2))
		if e := w.edit(); e.Patches != 2 || e.Unsaved != "" || w.git("log", "--format=%s", "-2") != "conflict\nscript" {
			t.Errorf("round %d: edited %+v", round, e)
		}
	}
}
