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

// Variables by which the test program runs a command of a desk.
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
	w.Desk = &Desk{Root: os.Getenv(toRunIn), Components: "cmd", Project: os.Getenv(toRunFor), Go: w.find}
	var err error
	if command == "edit" {
		_, err = w.Edit(context.Background(), true)
	} else {
		_, err = w.Save(context.Background(), false)
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
	if !w.killed("edit", time.Minute) {
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

	rounds := 8
	if testing.Short() {
		rounds = 2
	}
	for round := range rounds {
		w.killed("edit", rand.N(whole+whole/4))
		if _, rec, err := w.open(); err != nil || rec == nil || rec.next() >= 0 {
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

func TestKillBetweenPatchesIsRecovered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.patch("0001-conflict.patch", conflicting)
	w.patch("0002-script.patch", bare)
	if _, err := w.Edit(t.Context(), false); err == nil {
		t.Fatal("no conflict")
	}
	w.git("checkout", "-q", "--theirs", "pkg/kubelet.go")
	w.change("pkg/kubelet.go", "Two = 2", "Two = 22")
	w.git("add", "--all")
	w.git("am", "--continue")

	// As if a run had been killed while it applied the second patch.
	repo, rec, err := w.open()
	if err != nil {
		t.Fatal(err)
	}
	if err := rec.resolve(t.Context(), repo); err != nil {
		t.Fatal(err)
	}
	rec.Moving = true
	if err := rec.write(repo.Dir); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(repo.Dir, "hack", "new.sh"), "#!/bin")
	write(t, filepath.Join(repo.Dir, "hack", "run.sh"), "")
	write(t, filepath.Join(repo.Dir, ".git", "index.lock"), "")
	if e := w.edit(); e.State != Continued || e.Patches != 2 || w.git("status", "--porcelain") != "" || w.read("hack/run.sh") == "" {
		t.Errorf("edited: %+v", e)
	}
	// A person may have written it.
	if kept := w.git("show", setAsideRef+":hack/new.sh"); kept != "#!/bin" {
		t.Errorf("what was not committed is kept as %q", kept)
	}
}

func toBytes(files map[string]string) map[string][]byte {
	all := map[string][]byte{}
	for name, text := range files {
		all[name] = []byte(text)
	}
	return all
}

func TestLockOfAKilledGitIsRemoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.edit()
	w.commit("Two", "pkg/kubelet.go", "Two = 2", "Two = 22")
	write(t, filepath.Join(w.Folder(), ".git", "refs", "slipway", "tip.lock"), "")
	w.save()
	if len(w.patches()) != 1 {
		t.Errorf("patches %v", w.patches())
	}
}

// resolved makes a copy in which a person resolved the first patch, and the second one is yet to come.
func (w *world) resolved(second string) {
	w.t.Helper()
	w.patch("0001-conflict.patch", conflicting)
	w.patch("0002-second.patch", second)
	if _, err := w.Edit(w.t.Context(), false); err == nil {
		w.t.Fatal("no conflict")
	}
	w.git("checkout", "-q", "--theirs", "pkg/kubelet.go")
	w.change("pkg/kubelet.go", "Two = 2", "Two = 22")
	w.git("add", "--all")
	w.git("am", "--continue")
}

// other conflicts, too.
var other = strings.NewReplacer("Two = 0", "Two = 7", "Two = 22", "Two = 8").Replace(conflicting)

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

func TestCanceledEditLeavesThePatchesThatWereCommitted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.resolved(other)
	amStopped := func() bool {
		_, err := os.Lstat(filepath.Join(w.Folder(), ".git", "rebase-apply"))
		return err == nil
	}
	if _, err := w.Edit(endsWhen{t.Context(), amStopped}, false); err == nil || errors.As(err, new(*StoppedError)) {
		t.Fatalf("edit: %v", err)
	}
	repo, rec, err := w.open()
	if err != nil || rec.Moving || rec.next() != 1 || inProgress(repo) != "" || w.git("status", "--porcelain") != "" {
		t.Errorf("after a canceled edit: %+v, %v, %s in progress", rec, err, inProgress(repo))
	}
	stopped := new(StoppedError)
	if _, err := w.Edit(t.Context(), false); !errors.As(err, &stopped) || stopped.Conflict == nil ||
		stopped.Patch != "patches/0002-second.patch" {
		t.Errorf("edit again: %v", err)
	}
}

func TestResolutionAfterAKillIsKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.resolved(other)
	if _, err := w.Edit(t.Context(), false); err == nil {
		t.Fatal("no conflict")
	}
	// As if the run had been killed before it wrote that it stopped.
	repo, rec, err := w.open()
	if err != nil {
		t.Fatal(err)
	}
	rec.Stopped, rec.Moving = false, true
	if err := rec.write(repo.Dir); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Save(t.Context(), false); !errors.As(err, new(*NotYetError)) {
		t.Errorf("save: %v", err)
	}
	if _, err := w.Edit(t.Context(), false); !errors.As(err, new(*StoppedError)) {
		t.Fatalf("edit: %v", err)
	}
	w.git("checkout", "-q", "--theirs", "pkg/kubelet.go")
	w.change("pkg/kubelet.go", "Two = 22", "Two = 222")
	w.git("add", "--all")
	w.git("am", "--continue")
	if e := w.edit(); e.State != Continued || !strings.Contains(w.read("pkg/kubelet.go"), "Two = 222") {
		t.Errorf("edited: %+v", e)
	}
}

func TestCommitsOnTopOfAKilledRunAreKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.resolved(bare)
	repo, rec, err := w.open()
	if err != nil {
		t.Fatal(err)
	}
	if err := rec.resolve(t.Context(), repo); err != nil {
		t.Fatal(err)
	}
	rec.Moving = true
	if err := rec.write(repo.Dir); err != nil {
		t.Fatal(err)
	}
	w.commit("Three", "pkg/kubelet.go", "Three = 3", "Three = 33")
	interrupted := new(InterruptedError)
	for range 2 {
		if _, err := w.Edit(t.Context(), false); !errors.As(err, &interrupted) || interrupted.What != "1 commit" {
			t.Fatalf("edit: %v", err)
		}
	}
	w.git("branch", "mine")
	w.git("reset", "-q", "--hard", interrupted.Tip)
	w.edit()
	w.git("cherry-pick", "mine")
	if s := w.save(); len(s.Kept) != 1 || len(s.Written) != 2 {
		t.Errorf("saved: %+v", s)
	}
}

// TestKillAfterTheLastPatchLeavesCommitsAlone has a run that was killed when nothing but the record was left to do.
func TestKillAfterTheLastPatchLeavesCommitsAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.patch("0001-script.patch", bare)
	w.edit()
	for _, step := range []func(){func() { w.edit() }, func() { w.save() }} {
		repo, rec, err := w.open()
		if err != nil {
			t.Fatal(err)
		}
		rec.Moving = true
		if err := rec.write(repo.Dir); err != nil {
			t.Fatal(err)
		}
		w.commit("More", "pkg/kubelet.go", "package pkg\n", "package pkg\n\n// More.\n")
		head := w.git("rev-parse", "HEAD")
		step()
		w.commit("Again", "pkg/kubelet.go", "package pkg\n", "package pkg\n\n// Again.\n")
		w.edit()
		if got := w.git("rev-parse", "HEAD~1"); got != head {
			t.Errorf("the commit before is %s, want %s", got, head)
		}
	}
}

func TestKillWhileOtherPatchesReplaceSavedOnesIsRecovered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.edit()
	w.commit("One", "pkg/kubelet.go", "One = 1", "One = 11")
	w.save()
	if err := w.write("patches", nil); err != nil {
		t.Fatal(err)
	}
	// As if a run had been killed before it reset the copy.
	repo, rec, err := w.open()
	if err != nil {
		t.Fatal(err)
	}
	if err := rec.begin(t.Context(), repo, nil); err != nil {
		t.Fatal(err)
	}
	if e := w.edit(); e.Patches != 0 || e.Unsaved != "" || !strings.Contains(w.read("pkg/kubelet.go"), "One = 1\n") {
		t.Errorf("edited: %+v", e)
	}
}
