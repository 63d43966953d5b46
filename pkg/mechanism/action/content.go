package action

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"slipway.build/pkg/mechanism/statcache"
)

type kind = statcache.Kind

const (
	file       = statcache.File
	executable = statcache.Executable
	symlink    = statcache.Symlink
	directory  = statcache.Directory
	other      = statcache.Other // only its name counts
)

// A digest identifies content: what it is, and a hash.
type digest struct {
	kind kind
	sum  [sha256.Size]byte
}

func (d digest) String() string { return string(rune(d.kind)) + hex.EncodeToString(d.sum[:]) }

// hex returns the hash alone.
func (d digest) hex() string { return hex.EncodeToString(d.sum[:]) }

// A content is what a path holds.
type content struct {
	digest
	file    [sha256.Size]byte // SHA-256 of the bytes of the file, or of the file that the link leads to
	size    int64             // bytes; for a directory, of all files in it
	entries []entry           // for a directory: everything below it, in a fixed order
}

// links reports whether the content is or has a symbolic link.
func (c content) links() bool {
	return c.kind == symlink || slices.ContainsFunc(c.entries, func(e entry) bool { return e.kind == symlink })
}

// An entry is a file, link or folder below a directory.
type entry struct {
	path string // begins with the directory's path
	digest
}

// A reader finds out the contents of paths, and reads a file only if its content is not remembered.
type reader struct {
	root  string
	stats *statcache.Cache
	slots chan struct{} // as many as files may be read at the same time

	memo   sync.Mutex
	inputs map[string]func() (content, error) // each reads once per run, however many actions share it
}

func (r *reader) absolute(p string) string {
	p = strings.TrimSuffix(p, "/")
	if strings.HasPrefix(p, "/") || (len(p) > 1 && p[1] == ':') {
		return p
	}
	return r.root + "/" + p
}

// input returns the content of a path that an action reads. That of a symbolic link includes the file it leads to.
func (r *reader) input(p string) (content, error) { return r.look(p, true) }

// output returns the content of a path that an action wrote. That of a symbolic link is its target alone, because the file
// it leads to is another action's.
func (r *reader) output(p string) (content, error) { return r.look(p, false) }

// know keeps the content of an output for the actions that read it, unless they see more of it: where its links lead to.
func (r *reader) know(out string, c content) {
	if c.links() {
		return
	}
	r.memo.Lock()
	defer r.memo.Unlock()
	if r.inputs[out] == nil {
		r.inputs[out] = func() (content, error) { return c, nil }
	}
}

// look returns the content of a path. Its errors name the path as it is given, relative to the root.
func (r *reader) look(p string, follow bool) (content, error) {
	abs := r.absolute(p)
	wantDir := strings.HasSuffix(p, "/")
	st, err := statcache.Lstat(abs)
	if err != nil {
		return content{}, fmt.Errorf("%s: %w", p, err)
	}
	if st.Kind == symlink && follow && wantDir {
		if st, err = statcache.Stat(abs); err != nil {
			return content{}, fmt.Errorf("%s: %w", p, err)
		}
	}
	switch {
	case wantDir && st.Kind != directory:
		return content{}, fmt.Errorf("%s: is not a directory", p)
	case wantDir:
		return r.directory(p, abs, follow)
	case st.Kind == directory:
		return content{}, fmt.Errorf("%s: is a directory: declare it as %s/", p, p)
	case st.Kind == symlink && follow:
		return r.follow(p, abs)
	case st.Kind == other:
		return content{}, fmt.Errorf("%s: is neither a file nor a directory nor a symbolic link", p)
	}
	d, err := r.leaf(p, abs, st)
	return content{digest: d, file: d.sum, size: st.Size}, err
}

// follow returns the content of a symbolic link, including the file it leads to, if any.
func (r *reader) follow(p, abs string) (content, error) {
	d, err := r.leaf(p, abs, statcache.Status{Kind: symlink})
	if err != nil {
		return content{}, err
	}
	st, err := statcache.Stat(abs)
	if err != nil || !st.Regular() {
		return content{digest: d}, nil
	}
	to, err := r.leaf(p, abs, st)
	if err != nil {
		return content{}, err
	}
	d.sum = sha256.Sum256([]byte(d.String() + to.String()))
	return content{digest: d, file: to.sum, size: st.Size}, nil
}

func (r *reader) directory(p, abs string, follow bool) (content, error) {
	var c content
	if err := r.walk(p, abs, follow, &c); err != nil {
		return content{}, err
	}
	c.digest = listed(p, c.entries)
	return c, nil
}

// listed returns the digest of a directory by what it holds.
func listed(p string, entries []entry) digest {
	var list []byte
	for _, e := range entries {
		name := e.path[len(p):]
		list = binary.AppendUvarint(list, uint64(len(name)))
		list = append(list, name...)
		list = append(list, byte(e.kind))
		list = append(list, e.sum[:]...)
	}
	return digest{directory, sha256.Sum256(list)}
}

// walk adds everything below a directory to c. If follow is set, the content of a link includes the file it leads to: the
// Go command, for one, compiles a .go file that is a link. Neither it nor walk follows links to directories.
func (r *reader) walk(p, abs string, follow bool, c *content) error {
	names, err := os.ReadDir(abs)
	if err != nil {
		return fmt.Errorf("%s: %w", p, cause(err))
	}
	for _, n := range names {
		below, absBelow := p+n.Name(), abs+"/"+n.Name()
		if n.IsDir() {
			c.entries = append(c.entries, entry{below + "/", digest{kind: directory}})
			if err := r.walk(below+"/", absBelow, follow, c); err != nil {
				return err
			}
			continue
		}
		st, err := statcache.Lstat(absBelow)
		if err != nil {
			return fmt.Errorf("%s: %w", below, err)
		}
		d, err := r.entry(below, absBelow, st, follow)
		if err != nil {
			return err
		}
		c.entries = append(c.entries, entry{below, d})
		c.size += st.Size
	}
	return nil
}

func (r *reader) entry(p, abs string, st statcache.Status, follow bool) (digest, error) {
	if st.Kind == symlink && follow {
		c, err := r.follow(p, abs)
		return c.digest, err
	}
	return r.leaf(p, abs, st)
}

// leaf returns the digest of anything but a directory. It reads a file unless a valid digest is remembered.
func (r *reader) leaf(p, abs string, st statcache.Status) (digest, error) {
	switch st.Kind {
	case other:
		return digest{kind: other}, nil
	case symlink:
		target, err := os.Readlink(abs)
		if err != nil {
			return digest{}, fmt.Errorf("%s: %w", p, cause(err))
		}
		return digest{symlink, sha256.Sum256([]byte(target))}, nil
	}
	const attempts = 3
	for range attempts {
		if sum, ok := r.remembered(p, st); ok {
			return digest{st.Kind, sum}, nil
		}
		// The entry gets the time before the read, so that an edit during the read makes it invalid.
		now := time.Now().UnixNano()
		sum, err := r.hash(abs)
		if err != nil {
			return digest{}, fmt.Errorf("%s: %w", p, cause(err))
		}
		after, err := statcache.Stat(abs)
		if err != nil {
			return digest{}, fmt.Errorf("%s: %w", p, err)
		}
		if after == st {
			r.remember(p, st, sum, now)
			return digest{st.Kind, sum}, nil
		}
		st = after
		if !st.Regular() {
			break
		}
	}
	return digest{}, fmt.Errorf("%s: changes while it is read", p)
}

// remembered returns the SHA-256 of a file that has not changed since it was remembered.
func (r *reader) remembered(p string, st statcache.Status) (sum [sha256.Size]byte, ok bool) {
	text, ok := r.stats.Lookup(p, st)
	return sum, copy(sum[:], text) == len(sum) && ok
}

func (r *reader) remember(p string, st statcache.Status, sum [sha256.Size]byte, read int64) {
	r.stats.Remember(p, st, string(sum[:]), read)
}

// rememberWritten keeps the SHA-256 of a file that this run has written.
func (r *reader) rememberWritten(p string, st statcache.Status, sum [sha256.Size]byte) {
	r.stats.RememberWritten(p, st, string(sum[:]))
}

func (r *reader) hash(abs string) (sum [sha256.Size]byte, err error) {
	r.slots <- struct{}{}
	defer func() { <-r.slots }()
	f, err := os.Open(abs)
	if err != nil {
		return sum, err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return sum, err
	}
	h.Sum(sum[:0])
	return sum, nil
}

// cause strips the operation and the absolute path from an error; the caller names the path as the user knows it.
func cause(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}
