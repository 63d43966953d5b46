package cluster

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/gzip"
)

// What an archive may be at most. A server tarball holds 1.5 GB in 2,000 files.
const (
	mostBytes   = 16 << 30 // unpacked, the files that are not wanted included
	mostEntries = 200_000
)

var (
	errTooLarge = fmt.Errorf("is larger than any release: more than %d GiB unpacked, or %d files", mostBytes>>30, mostEntries)
	errUnsafe   = errors.New("does not stay in its folder")
)

// unpack writes the wanted members of a .tar.gz into a folder, which has to be empty. Nothing is ever written out of it:
// it is an os.Root. An archive with a name, a link or a kind of file that no release has is refused, and what it left in
// the folder must not be used.
func unpack(ctx context.Context, archive, dir string, want func(name string) bool) error {
	return unpackAtMost(ctx, archive, dir, want, mostBytes, mostEntries)
}

func unpackAtMost(ctx context.Context, archive, dir string, want func(name string) bool, bytes, entries int64) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		return fmt.Errorf("%s: %w", archive, err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	u := &unpacker{root: root}
	// It is unzipped ahead, while files are written.
	ahead, end := io.Pipe()
	defer ahead.Close()
	go func() {
		_, err := io.CopyBuffer(end, struct{ io.Reader }{unzipped}, make([]byte, 1<<20))
		end.CloseWithError(err)
	}()
	members := tar.NewReader(&limited{ctx, ahead, bytes})
	for ; ; entries-- {
		h, err := members.Next()
		if err == io.EOF {
			break
		}
		if err == nil && entries == 0 {
			err = errTooLarge
		}
		if err != nil {
			return fmt.Errorf("%s: %w", archive, err)
		}
		name := path.Clean(h.Name)
		switch {
		case !filepath.IsLocal(filepath.FromSlash(name)):
			err = errUnsafe
		case want(name):
			err = u.add(name, h, members)
		}
		if err != nil {
			return fmt.Errorf("%s: %s: %w", archive, h.Name, err)
		}
	}
	if err := u.checkLinks(); err != nil {
		return fmt.Errorf("%s: %w", archive, err)
	}
	return nil
}

type unpacker struct {
	root  *os.Root
	links []string
}

func (u *unpacker) add(name string, h *tar.Header, content io.Reader) error {
	file := filepath.FromSlash(name)
	if err := u.root.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeDir:
		return u.root.MkdirAll(file, 0o755)
	case tar.TypeReg:
		return u.write(file, os.FileMode(0o644|h.Mode&0o111), content)
	case tar.TypeSymlink:
		u.links = append(u.links, file)
		return u.root.Symlink(h.Linkname, file)
	}
	return fmt.Errorf("%w: it is of kind %q, not a file, a folder or a symbolic link", errUnsafe, h.Typeflag)
}

func (u *unpacker) write(file string, mode os.FileMode, content io.Reader) error {
	f, err := u.root.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := io.Copy(f, content); err != nil {
		return err
	}
	return f.Close()
}

// checkLinks looks where links lead once everything is there: what one leads to may come later in the archive.
func (u *unpacker) checkLinks() error {
	for _, link := range u.links {
		if _, err := u.root.Stat(link); err != nil {
			return fmt.Errorf("%s: %w, or leads nowhere: %w", strings.ReplaceAll(link, `\`, "/"), errUnsafe, err)
		}
	}
	return nil
}

// limited reads so many bytes and no more, and only until its context ends.
type limited struct {
	ctx  context.Context
	r    io.Reader
	left int64
}

func (l *limited) Read(p []byte) (int, error) {
	if err := l.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := l.r.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return 0, errTooLarge
	}
	return n, err
}
