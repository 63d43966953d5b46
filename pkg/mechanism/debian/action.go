package debian

import (
	"bufio"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/archive"
	"slipway.build/pkg/mechanism/atomicfile"
	"slipway.build/pkg/mechanism/recipe"
)

//go:embed *.go
var sources embed.FS

// The code decides which files of a package are unpacked.
var code = recipe.Of("mechanism/debian", sources)

// Files beside a base's rootfs: what it needs of Debian, and the exact packages whose files it has.
const (
	RequestFile = "packages.txt"
	LockFile    = "debian.lock"
)

// ErrLock is in the errors about a lock that no longer fits: it must be made again, or used with a mirror that keeps
// old packages.
var ErrLock = errors.New("debian.lock is out of date")

// A Spec describes a tar of the files of a base's packages for a platform. In a tar they are the same on every file system:
// there are names that differ only in case, and links. Paths are slash-separated and relative to the tree's root.
type Spec struct {
	Name, OS, Arch string
	Dir            string // of the base: it holds the lock
	Output         string
}

// Action returns the action that fetches and unpacks the packages, and writes the tar.
func Action(root string, from Sources, s Spec) *action.Action {
	return &action.Action{
		ID:      fmt.Sprintf("debian %s/%s %s", s.OS, s.Arch, s.Name),
		Phase:   "image",
		Recipe:  code.Recipe(s),
		Inputs:  []string{s.Dir + "/" + LockFile},
		Outputs: []string{s.Output},
		Run: func(ctx context.Context, t *action.Task) error {
			lock, err := s.lock(root)
			if err != nil {
				return err
			}
			t.Report.SetWorker(fmt.Sprintf("%d packages of Debian's %s", len(lock.Packages), lock.Suite))
			files, err := Fetch(ctx, from, lock, t.Report.Progress)
			if err != nil {
				return err
			}
			entries, err := Unpack(files)
			if err != nil {
				return err
			}
			return writeTar(t.Path(s.Output), entries)
		},
	}
}

// lock reads the packages for the spec's platform.
func (s Spec) lock(root string) (*Lock, error) {
	file := filepath.Join(root, filepath.FromSlash(s.Dir), LockFile)
	lock, err := ReadLock(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %w", ErrLock, err)
	}
	if err != nil {
		return nil, err
	}
	packages := lock.For(s.Arch)
	if len(packages) == 0 {
		return nil, fmt.Errorf("%w: %s has no packages for %s", ErrLock, file, Arch(s.Arch))
	}
	return &Lock{Suite: lock.Suite, Time: lock.Time, Packages: packages}, nil
}

func writeTar(name string, entries []archive.Entry) error {
	return atomicfile.Write(name, 0o644, func(f io.Writer) error {
		w := bufio.NewWriterSize(f, 1<<20)
		return errors.Join(archive.Tar(w, entries, time.Time{}), w.Flush())
	})
}

// A CopyrightSpec describes a folder with the copyright files of packages.
type CopyrightSpec struct {
	Name, OS, Arch string
	Bases          []Spec // that have the packages; their outputs are made
	Output         string // a folder
}

// CopyrightAction returns the action that makes the folder.
func CopyrightAction(root string, s CopyrightSpec) *action.Action {
	var inputs []string
	for _, base := range s.Bases {
		inputs = append(inputs, base.Output, base.Dir+"/"+LockFile)
	}
	return &action.Action{
		ID:      fmt.Sprintf("licenses %s/%s %s", s.OS, s.Arch, s.Name),
		Phase:   "licenses",
		Recipe:  code.Recipe(s),
		Inputs:  inputs,
		Outputs: []string{s.Output + "/"},
		Run: func(_ context.Context, t *action.Task) error {
			for _, base := range s.Bases {
				if err := base.writeCopyrights(root, t.Path(s.Output+"/")); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func (s Spec) writeCopyrights(root, dir string) error {
	lock, err := s.lock(root)
	if err != nil {
		return err
	}
	entries, err := archive.ReadTar(filepath.Join(root, filepath.FromSlash(s.Output)))
	if err != nil {
		return err
	}
	owed, err := Copyrights(entries, lock.Packages)
	if err != nil {
		return err
	}
	for _, e := range owed {
		file := filepath.Join(dir, filepath.FromSlash(e.Name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, e.Data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
