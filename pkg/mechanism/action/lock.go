package action

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// errLocked is tryLock's error while another process holds the lock.
var errLocked = errors.New("locked")

// retryLock is the time between two attempts at a lock: a wait in the kernel would not end with a context.
const retryLock = 50 * time.Millisecond

// Locked calls f while no Run and no other Locked works in the same tree. If it has to wait for one, it emits a Waiting
// event (events may be nil). f may delete the state folder.
func Locked(ctx context.Context, root, state string, events func(Event), f func() error) error {
	e := &emitter{to: events}
	defer e.close()
	return locked(ctx, filepath.Join(root, filepath.FromSlash(state)), e, f)
}

func locked(ctx context.Context, state string, e *emitter, f func() error) error {
	lock, err := acquire(ctx, filepath.Join(state, "lock"), e)
	if err != nil {
		return err
	}
	// The lock ends with the process, in any case. Closing the file would end it, too, but not at once if a child process is
	// being started: until its program runs, the child has all files of this process open.
	defer unlock(lock)
	return f()
}

func acquire(ctx context.Context, name string, e *emitter) (*os.File, error) {
	for reported := false; ; {
		lock, err := attempt(name)
		if err == nil {
			return lock, nil
		}
		if errors.Is(err, syscall.ENOTDIR) {
			return nil, fmt.Errorf("lock %s: a file is in the place of one of its folders: move it away: %w", name, cause(err))
		}
		if !errors.Is(err, errLocked) {
			return nil, fmt.Errorf("lock %s: %w", name, cause(err))
		}
		if !reported {
			reported = true
			e.emit(Event{Kind: Waiting, Text: holder(name)})
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for %s: %w", holder(name), ctx.Err())
		case <-time.After(retryLock):
		}
	}
}

func attempt(name string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	if err := claim(f, name); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func claim(f *os.File, name string) error {
	if err := tryLock(f); err != nil {
		return err
	}
	// The last holder may have deleted the state folder. A lock on a deleted file excludes no one.
	mine, err := f.Stat()
	if err != nil {
		return err
	}
	named, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) || (err == nil && !os.SameFile(mine, named)) {
		return errLocked
	}
	if err != nil {
		return err
	}
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

// holder describes the run that holds the lock, by its file.
func holder(name string) string {
	data, _ := os.ReadFile(name)
	if pid := strings.TrimSpace(string(data)); pid != "" {
		return "another run in this tree (process " + pid + ")"
	}
	return "another run in this tree"
}
