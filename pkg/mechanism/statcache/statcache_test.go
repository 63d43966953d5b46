package statcache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTimesMustBeOlderThanTick(t *testing.T) {
	t.Parallel()
	const now = int64(1_700_000_000_123_456_789)
	at := func(ago time.Duration) int64 { return now - int64(ago) }
	wholeSecond := now - now%int64(time.Second)
	for name, c := range map[string]struct {
		mtime, ctime int64
		want         bool
	}{
		"both old":                      {at(time.Hour), at(time.Minute), true},
		"just written":                  {at(0), at(0), false},
		"changed within a tick":         {at(time.Hour), at(Tick - 1), false},
		"changed a tick ago":            {at(time.Hour), at(Tick + 1), true},
		"modified in the future":        {at(-time.Hour), at(time.Hour), false},
		"whole seconds, just now":       {wholeSecond, wholeSecond, false},
		"whole seconds, long ago":       {at(time.Minute), wholeSecond - int64(time.Hour), true},
		"whole seconds of mtime do not": {wholeSecond - int64(time.Second), at(time.Second / 2), true},
	} {
		if got := evident(Status{Mtime: c.mtime, Ctime: c.ctime}, now); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestWhatWasWrittenIsKnownAtOnceUntilItChanges(t *testing.T) {
	t.Parallel()
	now := time.Now().UnixNano() | 1 // no whole second
	c := &Cache{entries: make(map[string]*entry)}
	st := Status{Kind: File, Size: 3, Mtime: now, Ctime: now}
	c.RememberWritten("fine", st, "sum")
	if sum, ok := c.Lookup("fine", st); sum != "sum" || !ok {
		t.Errorf("got %q, %t", sum, ok)
	}
	edited := st
	edited.Ctime++
	if _, ok := c.Lookup("fine", edited); ok {
		t.Error("an edited file is known")
	}
	coarse := Status{Kind: File, Size: 3, Mtime: now - now%int64(time.Second), Ctime: now - now%int64(time.Second)}
	c.RememberWritten("coarse", coarse, "sum")
	if _, ok := c.Lookup("coarse", coarse); ok {
		t.Error("an edit within the same second would go unnoticed")
	}
}

func TestReadAsSaved(t *testing.T) {
	t.Parallel()
	now := time.Now()
	c := &Cache{entries: make(map[string]*entry)}
	for i := range 100 {
		st := Status{Kind: Executable, Size: int64(i), Mtime: -1, Ctime: int64(i) << 40, Inode: 1 << 63, Mode: 0o100755}
		c.Remember(fmt.Sprintf("%s/%d", strings.Repeat("x", i*3), i), st, strings.Repeat("s", i%70), now.UnixNano())
	}
	c.entries["forgotten"] = &entry{Read: now.Add(-2 * unusedFor).UnixNano()}
	c.entries["kept"] = &entry{Read: now.Add(-2 * unusedFor).UnixNano(), used: true}
	data, err := c.encode(now)
	if err != nil {
		t.Fatal(err)
	}
	got, err := decode(data)
	if err != nil {
		t.Fatal(err)
	}
	delete(c.entries, "forgotten")
	for _, e := range c.entries {
		e.used = false
	}
	if diff := cmp.Diff(c.entries, got, cmp.AllowUnexported(entry{})); diff != "" {
		t.Error(diff)
	}
	for cut := range len(data) {
		if _, err := decode(data[:cut]); err == nil {
			t.Fatalf("cut at %d bytes, it is still accepted", cut)
		}
	}
}

func TestFolderAnswersAsPathsDo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "file"), []byte("text"), 0o755), os.Mkdir(filepath.Join(dir, "folder"), 0o755),
		os.Symlink("file", filepath.Join(dir, "link"))); err != nil {
		t.Fatal(err)
	}
	f, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, name := range []string{"file", "folder", "link"} {
		want, err := Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := f.Stat(name); err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, want)
		}
	}
	if _, err := f.Stat("none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}
