// Package workdir gives a process a folder to itself, beside what it makes, for what is not whole yet.
//
// The folder is on the file system of what is made, so that can be renamed into its place. A lock in it keeps others away, so what a killed
// process has left can be told from what somebody is writing, whatever its age is. When all is done, the folder is gone.
//
// What must never be in here: what is made.
package workdir

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"slipway.build/pkg/mechanism/action"
)

// lock is the name of the lock, as action.Locked names it.
const lock = "lock"

// In calls f with the folder of that name in dir, which must exist, while no other process is in it. What others have left there was
// removed before. If it has to wait, In calls waiting once.
func In(ctx context.Context, dir, name string, waiting func(), f func(work string) error) error {
	work := filepath.Join(dir, name)
	for {
		entered := false
		err := action.Locked(ctx, dir, name, func(e action.Event) {
			if e.Kind == action.Waiting {
				waiting()
			}
		}, func() error {
			entered = true
			err := clear(work)
			if err == nil {
				err = errors.Join(f(work), clear(work))
			}
			// Who waits for the lock notices that it is gone, and makes another one.
			_ = os.Remove(filepath.Join(work, lock)) // which Windows does not do
			_ = os.Remove(work)                      // nor anybody, if somebody else is in it by now
			return err
		})
		if !entered && errors.Is(err, fs.ErrNotExist) && ctx.Err() == nil {
			if _, gone := os.Stat(dir); gone == nil {
				continue // somebody has removed the folder while the lock was being made
			}
		}
		return err
	}
}

// clear removes all but the lock.
func clear(work string) error {
	entries, err := os.ReadDir(work)
	for _, e := range entries {
		if e.Name() != lock {
			err = errors.Join(err, os.RemoveAll(filepath.Join(work, e.Name())))
		}
	}
	return err
}
