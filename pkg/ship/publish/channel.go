package publish

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"

	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/mechanism/checksum"
	"slipway.build/pkg/mechanism/workdir"
)

// A Channel has files by slash-separated names. Readers see each file whole or not at all.
type Channel interface {
	fmt.Stringer

	// Head compares a file with a size in bytes and a SHA-256 in hex. The error is fs.ErrNotExist if there is no file.
	Head(ctx context.Context, name string, size int64, sha256 string) (same bool, err error)

	// Open returns the content of a file. The error is fs.ErrNotExist if there is none.
	Open(ctx context.Context, name string) (io.ReadCloser, error)

	// Read returns the content of a small file. The error is fs.ErrNotExist if there is none.
	Read(ctx context.Context, name string) ([]byte, error)

	// List returns the names in a folder, which need not exist.
	List(ctx context.Context, dir string) ([]string, error)

	// Put makes a file of what fill writes, unless fill returns an error. The error is fs.ErrExist if the file exists.
	Put(ctx context.Context, name string, fill func(io.Writer) error) error

	// Replace changes small files in their order, without a pause between. The error is ErrChanged if the content of one is not the old one.
	Replace(ctx context.Context, changes ...Change) error

	// Locked calls f while nobody else is in Locked. Before it has to wait, it calls waiting once. Only f may call Put and Replace.
	Locked(ctx context.Context, waiting func(), f func() error) error
}

// A Change is another content for a file. Nil means no file.
type Change struct {
	Name         string
	Old, Content []byte
}

// ErrChanged says that a file is not what it was a moment ago.
var ErrChanged = errors.New("somebody has changed it meanwhile")

// Open returns the channel of a target, the file URL of a folder that exists.
func Open(target string) (Channel, error) {
	u, err := url.Parse(target)
	if err != nil || u.Scheme != "file" || u.Host != "" && u.Host != "localhost" || !path.IsAbs(u.Path) || u.RawQuery+u.Fragment != "" {
		return nil, badrequest.Mark(fmt.Errorf("%q is not the URL of a folder, such as file:///srv/k8s", target))
	}
	dir := filepath.FromSlash(path.Clean(u.Path))
	switch info, err := os.Stat(dir); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("there is no folder %s: make it first", dir)
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, fmt.Errorf("%s is not a folder", dir)
	}
	return folder(dir), nil
}

// A folder is a channel that a web server serves.
type folder string

// work is the folder for what is not whole, and for the lock, while a folder is written to: in no folder of a release.
const work = ".slipway"

func (f folder) String() string          { return string(f) }
func (f folder) path(name string) string { return filepath.Join(string(f), filepath.FromSlash(name)) }

func (f folder) Head(_ context.Context, name string, size int64, sha256 string) (bool, error) {
	info, err := os.Lstat(f.path(name))
	if err != nil {
		return false, err
	}
	if !info.Mode().IsRegular() || info.Size() != size {
		return false, nil
	}
	sum, err := checksum.File(f.path(name))
	return sum == sha256, err
}

// maxSmall is the size, in bytes, of the largest file that is read into memory: a release.json of all platforms takes a tenth.
const maxSmall = 32 << 20

func (f folder) Open(_ context.Context, name string) (io.ReadCloser, error) {
	return os.Open(f.path(name))
}

func (f folder) Read(_ context.Context, name string) ([]byte, error) {
	file, err := os.Open(f.path(name))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxSmall+1))
	if err == nil && len(data) > maxSmall {
		err = fmt.Errorf("%s has more than %d bytes", file.Name(), maxSmall)
	}
	return data, err
}

func (f folder) List(_ context.Context, dir string) ([]string, error) {
	entries, err := os.ReadDir(f.path(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

func (f folder) Put(_ context.Context, name string, fill func(io.Writer) error) error {
	tmp, err := f.write(fill)
	if err != nil {
		return err
	}
	defer os.Remove(tmp) // if that fails, the next run removes it
	dir := filepath.Dir(f.path(name))
	if err := mkdirAll(dir); err != nil {
		return err
	}
	if err := os.Link(tmp, f.path(name)); err != nil {
		return err
	}
	return syncFolder(dir)
}

func (f folder) Replace(ctx context.Context, changes ...Change) error {
	files := make([]string, len(changes)) // that have the new contents
	for i, c := range changes {
		now, err := f.Read(ctx, c.Name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if string(now) != string(c.Old) || (err != nil) != (c.Old == nil) {
			return fmt.Errorf("%s: %w", f.path(c.Name), ErrChanged)
		}
		if c.Content == nil {
			continue
		}
		if files[i], err = f.write(func(w io.Writer) error { _, err := w.Write(c.Content); return err }); err != nil {
			return err
		}
		defer os.Remove(files[i]) // unless it was renamed
		if err := mkdirAll(filepath.Dir(f.path(c.Name))); err != nil {
			return err
		}
	}
	for i, c := range changes { // at once: until the last one is done, readers find files that do not go together
		var err error
		if c.Content == nil {
			err = os.Remove(f.path(c.Name))
		} else {
			err = os.Rename(files[i], f.path(c.Name))
		}
		if err != nil {
			return err
		}
	}
	for _, c := range changes {
		if err := syncFolder(filepath.Dir(f.path(c.Name))); err != nil {
			return err
		}
	}
	return nil
}

// write writes a file to the disk that has no name for readers yet.
func (f folder) write(fill func(io.Writer) error) (name string, err error) {
	tmp, err := os.CreateTemp(f.path(work), "*")
	if err != nil {
		return "", err
	}
	if err = fill(tmp); err == nil {
		err = errors.Join(tmp.Chmod(0o644), tmp.Sync()) // for all to read, whatever the umask is
	}
	if err = errors.Join(err, tmp.Close()); err != nil {
		os.Remove(tmp.Name())
		return "", err
	}
	return tmp.Name(), nil
}

// mkdirAll makes a folder for all to read, whatever the umask is.
func mkdirAll(dir string) error {
	err := os.Mkdir(dir, 0o755)
	if errors.Is(err, fs.ErrNotExist) {
		if err := mkdirAll(filepath.Dir(dir)); err != nil {
			return err
		}
		err = os.Mkdir(dir, 0o755)
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil
	case err != nil:
		return err
	}
	return errors.Join(os.Chmod(dir, 0o755), syncFolder(filepath.Dir(dir)))
}

func (f folder) Locked(ctx context.Context, waiting func(), locked func() error) error {
	return workdir.In(ctx, string(f), work, waiting, func(string) error { return locked() })
}
