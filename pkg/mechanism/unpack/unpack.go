// Package unpack reads tarballs of others, within bounds: member by member, or into a folder.
//
// What must never be in here: which members these are.
package unpack

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/gzip"
)

// Limits of an archive. A server tarball holds 1.5 GB in 2,000 files.
const (
	mostBytes   = 16 << 30 // unpacked, including files that are not wanted
	mostEntries = 200_000
)

// What is wrong with a tarball.
var (
	ErrTooLarge = fmt.Errorf("is larger than any release: more than %d GiB unpacked, or %d files", mostBytes>>30, mostEntries)
	ErrUnsafe   = errors.New("does not stay in its folder")
)

// A Member is an entry of a tar, with its content.
type Member struct {
	*tar.Header // its name is clean
	io.Reader
}

// Members reads a tar. An error comes last.
func Members(ctx context.Context, stream io.Reader) iter.Seq2[Member, error] {
	return members(&limited{ctx, stream, mostBytes}, mostEntries)
}

// MembersOf reads a file, a .tar.gz or a .tar, as Members does.
func MembersOf(ctx context.Context, archive string) iter.Seq2[Member, error] {
	return func(yield func(Member, error) bool) {
		f, err := Open(archive)
		if err != nil {
			yield(Member{}, err)
			return
		}
		defer f.Close()
		for m, err := range Members(ctx, f) {
			if err != nil {
				err = fmt.Errorf("%s: %w", archive, err)
			}
			if !yield(m, err) {
				return
			}
		}
	}
}

func members(stream io.Reader, entries int64) iter.Seq2[Member, error] {
	return func(yield func(Member, error) bool) {
		for t := tar.NewReader(stream); ; entries-- {
			h, err := t.Next()
			switch {
			case err == io.EOF:
				return
			case err == nil && entries == 0:
				err = ErrTooLarge
			}
			if err != nil {
				yield(Member{}, err)
				return
			}
			h.Name = path.Clean(h.Name)
			if !yield(Member{h, t}, nil) {
				return
			}
		}
	}
}

// Open opens a file, a .tar.gz or a .tar, and decompresses it.
func Open(archive string) (io.ReadCloser, error) {
	f, err := os.Open(archive)
	if err != nil {
		return nil, err
	}
	r, err := Decompress(f)
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("%s: %w", archive, err)
	}
	return struct {
		io.Reader
		io.Closer
	}{r, f}, nil
}

// Decompress returns a reader of what a stream holds, which may be compressed by gzip.
func Decompress(r io.Reader) (io.Reader, error) {
	b := bufio.NewReader(r)
	if magic, _ := b.Peek(2); string(magic) == "\x1f\x8b" {
		return gzip.NewReader(b)
	}
	return b, nil
}

// Unpack writes the wanted members of a tarball, a .tar.gz or a .tar, into an empty folder, and nothing outside of it: it is an os.Root. It
// refuses an archive with a name, a link or a kind of file that no release has. After an error, the folder must not be used.
func Unpack(ctx context.Context, archive, dir string, want func(name string) bool) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	return Stream(ctx, f, archive, dir, want)
}

// Stream is like Unpack, of a stream. Errors name the archive so.
func Stream(ctx context.Context, stream io.Reader, archive, dir string, want func(name string) bool) error {
	return atMost(ctx, stream, archive, dir, want, mostBytes, mostEntries)
}

func atMost(ctx context.Context, stream io.Reader, archive, dir string, want func(name string) bool, bytes, entries int64) error {
	f, err := Decompress(stream)
	if err != nil {
		return fmt.Errorf("%s: %w", archive, err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	// Unzip ahead while files are written.
	ahead, end := io.Pipe()
	defer ahead.Close()
	go func() {
		_, err := io.CopyBuffer(end, struct{ io.Reader }{f}, make([]byte, 1<<20))
		end.CloseWithError(err)
	}()
	u := &unpacker{root: root}
	if err = u.read(&limited{ctx, ahead, bytes}, want, entries); err == nil {
		err = u.checkLinks()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", archive, err)
	}
	return nil
}

// RootFilesystem writes a root file system, which is a tar stream, into an empty folder, and nothing outside of it. Unlike those that
// Unpack writes, its links may lead anywhere: they are those of programs whose root the folder will be. Nothing is written through a
// link that leaves the folder. After an error, the folder must not be used.
func RootFilesystem(ctx context.Context, stream io.Reader, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	u := &unpacker{root: root}
	return u.read(&limited{ctx, stream, mostBytes}, func(name string) bool { return name != "." }, mostEntries)
}

// read writes the wanted members of a tar stream.
func (u *unpacker) read(stream io.Reader, want func(name string) bool, entries int64) error {
	for m, err := range members(stream, entries) {
		switch {
		case err != nil:
			return err
		case !filepath.IsLocal(filepath.FromSlash(m.Name)):
			err = ErrUnsafe
		case want(m.Name):
			err = u.add(m)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
	}
	return nil
}

type unpacker struct {
	root  *os.Root
	links []string
}

func (u *unpacker) add(m Member) error {
	file := filepath.FromSlash(m.Name)
	if err := u.root.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	switch m.Typeflag {
	case tar.TypeDir:
		return u.root.MkdirAll(file, 0o755)
	case tar.TypeReg:
		return u.write(file, os.FileMode(0o644|m.Mode&0o111), m)
	case tar.TypeSymlink:
		u.links = append(u.links, file)
		return u.root.Symlink(m.Linkname, file)
	}
	return fmt.Errorf("%w: its type is %q, and not a file, a folder or a symbolic link", ErrUnsafe, m.Typeflag)
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

// checkLinks checks the targets of links, which may come later in the archive than the links.
func (u *unpacker) checkLinks() error {
	for _, link := range u.links {
		if _, err := u.root.Stat(link); err != nil {
			return fmt.Errorf("%s: %w, or leads nowhere: %w", strings.ReplaceAll(link, `\`, "/"), ErrUnsafe, err)
		}
	}
	return nil
}

// limited is a reader with a limit, which fails once its context has ended.
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
		return 0, ErrTooLarge
	}
	return n, err
}
