package workdir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// A killed process leaves what it wrote, which the next one removes; one that is still writing is waited for.
func TestOneProcessIsInAFolderAndWhatKilledOnesLeftGoesAway(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	left := filepath.Join(dir, ".work", "a", "part")
	if err := errors.Join(os.MkdirAll(filepath.Dir(left), 0o755), os.WriteFile(left, nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	waits, ended := make(chan struct{}), make(chan error, 1)
	err := In(t.Context(), dir, ".work", func() {}, func(work string) error {
		if _, err := os.Stat(filepath.Dir(left)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("what was left is there: %v", err)
		}
		mine := filepath.Join(work, "part")
		if err := os.WriteFile(mine, nil, 0o644); err != nil {
			return err
		}
		go func() {
			ended <- In(t.Context(), dir, ".work", func() { close(waits) }, func(string) error { return errors.New("failed") })
		}()
		<-waits
		_, err := os.Stat(mine)
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if err := <-ended; err == nil || err.Error() != "failed" {
		t.Errorf("the second: %v", err)
	}
	if names, err := os.ReadDir(dir); len(names) > 0 {
		t.Errorf("it left %v, %v", names, err)
	}
}
