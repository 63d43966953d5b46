package action

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// A Cache keeps the results of actions for other trees and other machines. Its methods may be called from several goroutines.
type Cache interface {
	// Lookup returns the result of the action with this key, or nil for a miss. A result that is not trusted, and a cache that does not
	// answer, are misses.
	Lookup(ctx context.Context, key string) *Result

	// LookupBlob is Lookup for other things than results of actions. Their keys are those of BlobKey.
	LookupBlob(ctx context.Context, key string) *Result

	// Fetch writes contents to new files, or hands them over. After an error at least one of them is not whole, or was not taken.
	Fetch(ctx context.Context, contents []Content) error

	// Stores reports whether results are to be stored.
	Stores() bool

	// Store keeps a result. Open opens one of its files, by its path in the result.
	Store(ctx context.Context, key string, r *Result, open func(path string) (io.ReadCloser, error)) error
}

// A Result is what an action made: every file, link and folder of its outputs, with the names that [Graph.Folders] gives them in caches.
type Result struct {
	Entries []Entry       `json:"entries"`        // a folder before what it holds
	Took    time.Duration `json:"took,omitempty"` // nanoseconds that the action ran where it was made
}

// An Entry is a part of a Result.
type Entry struct {
	Path   string    `json:"path"` // relative to the graph's root, slash-separated; that of a folder ends in "/"
	Kind   EntryKind `json:"kind"`
	SHA256 string    `json:"sha256,omitempty"` // of a file, in hexadecimal
	Size   int64     `json:"size,omitempty"`   // of a file, bytes
	Target string    `json:"target,omitempty"` // of a link
}

// An EntryKind is what an Entry is.
type EntryKind string

const (
	RegularFile    EntryKind = "file"
	ExecutableFile EntryKind = "executable" // its owner may execute it
	SymbolicLink   EntryKind = "link"
	Folder         EntryKind = "folder"
)

var kinds = map[EntryKind]kind{RegularFile: file, ExecutableFile: executable, SymbolicLink: symlink, Folder: directory}

// A Content is a file of a result that is wanted here.
type Content struct {
	SHA256 string // in hexadecimal
	Size   int64  // bytes
	File   string // absolute; does not exist yet, its folder does

	// Take, if not nil, gets the bytes, instead of a file. They have the digest, and must not be kept or changed. Calls for several contents
	// may overlap. There are none after Fetch has returned.
	Take func(data []byte) error
}

// Put hands the bytes of a content over, or writes its file.
func (c Content) Put(data []byte) error {
	if c.Take != nil {
		return c.Take(data)
	}
	return os.WriteFile(c.File, data, 0o666)
}

// errResult says that a result is not one of the action.
var errResult = errors.New("the result is not of these outputs")

// contents returns what a result says of each output. Nothing in it lies outside of the outputs, or below a link.
func (r *Result) contents(outputs []string) ([]content, [][]Entry, error) {
	contents, parts := make([]content, len(outputs)), make([][]Entry, len(outputs))
	folders, seen := map[string]bool{}, map[string]bool{}
	for _, e := range r.Entries {
		d, err := e.digest()
		if err != nil {
			return nil, nil, err
		}
		i, whole := e.output(outputs)
		switch {
		case i < 0 || seen[strings.TrimSuffix(e.Path, "/")]:
			return nil, nil, fmt.Errorf("%w: %s", errResult, e.Path)
		case whole && len(parts[i]) == 0 && strings.HasSuffix(outputs[i], "/") == (d.kind == directory):
			contents[i].digest = d
			if d.kind != symlink {
				contents[i].file = d.sum
			}
		case !whole && folders[parent(e.Path)]:
			contents[i].entries = append(contents[i].entries, entry{e.Path, d})
		default:
			return nil, nil, fmt.Errorf("%w: %s", errResult, e.Path)
		}
		seen[strings.TrimSuffix(e.Path, "/")] = true
		folders[e.Path] = d.kind == directory
		contents[i].size += e.Size
		parts[i] = append(parts[i], e)
	}
	for i, out := range outputs {
		if len(parts[i]) == 0 {
			return nil, nil, fmt.Errorf("%w: it has no %s", errResult, out)
		}
		if contents[i].kind == directory {
			contents[i].digest = listed(out, contents[i].entries)
			contents[i].file = [sha256.Size]byte{}
		}
	}
	return contents, parts, nil
}

// digest returns what counts of an entry, as leaf does of what is on the disk.
func (e Entry) digest() (digest, error) {
	d := digest{kind: kinds[e.Kind]}
	isFolder := strings.HasSuffix(e.Path, "/")
	plain := strings.TrimSuffix(e.Path, "/")
	if d.kind == 0 || isFolder != (d.kind == directory) || path.Clean(plain) != plain ||
		!filepath.IsLocal(filepath.FromSlash(plain)) || e.Size < 0 {
		return d, fmt.Errorf("%w: %q", errResult, e.Path)
	}
	switch d.kind {
	case symlink:
		d.sum = sha256.Sum256([]byte(e.Target))
	case file, executable:
		sum, err := hex.DecodeString(e.SHA256)
		if copy(d.sum[:], sum); err != nil || len(sum) != len(d.sum) {
			return d, fmt.Errorf("%w: %s has no digest", errResult, e.Path)
		}
	}
	return d, nil
}

// output returns which output an entry is (whole) or lies in, or -1.
func (e Entry) output(outputs []string) (i int, whole bool) {
	for i, out := range outputs {
		if e.Path == out {
			return i, true
		}
		if strings.HasSuffix(out, "/") && strings.HasPrefix(e.Path, out) {
			return i, false
		}
	}
	return -1, false
}

// parent returns the folder that an entry lies in, with a slash at its end.
func parent(p string) string {
	p = strings.TrimSuffix(p, "/")
	return p[:strings.LastIndexByte(p, '/')+1]
}

// A resultRecord is a result from a cache, kept beside the record. An output may be known by it without being here.
type resultRecord struct {
	Key string `json:"key"`
	Result
}
