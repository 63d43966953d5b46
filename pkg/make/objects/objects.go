// Package objects shares what Go has compiled: the archives of a binary's packages, through a cache of results.
//
// A result of an action covers one binary of one commit. After an edit, or for a new commit, the binary has to be made, but nearly all
// of its packages are as before. With their archives at hand, the go command compiles the rest and links.
//
// # Lists
//
// The cache has a list for each binary, under a key of its own: entries of Go's build cache, one for each package, each with the digest
// of its compressed bytes. It is signed and stored like a result of an action. The key covers everything that the go command reads except
// the tree's sources. So a list is a hit after any edit of them, and lacks only the packages that have changed.
//
// # Go's build cache
//
// In DIR/ab/, the file abcd…-a says which output an action has, "v1 ACTION OUTPUT SIZE TIME\n", and the file of the OUTPUT, ….-d, holds
// its bytes. An OUTPUT is the SHA-256 of the bytes. What a compiler printed is an output, too, whose action is derived from that of the
// package. This is the layout since Go 1.10 (cmd/go/internal/cache). The go command does not compare bytes with their digest, so
// [Share.Store] does so before it signs them. What is fetched is compared with the digest of its compressed bytes, which the list has.
//
// # What must never be in here
//
// How packages are compiled. How results travel, and which are trusted: see package sharedcache.
package objects

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"slipway.build/pkg/mechanism/action"
)

// format is part of every key.
const format = "objects of go 2"

// Key returns the key of a binary's list: the digest of what decides which objects a compile can use.
func Key(parts ...string) string {
	return action.BlobKey(append([]string{format}, parts...)...)
}

// A Share copies objects between caches of Go and a cache of results.
type Share struct {
	Cache    action.Cache
	Folder   string // a cache of Go for objects that were compiled elsewhere; it may not exist yet
	Scratch  string // an empty folder for temporary files
	Progress func(done, total int64)

	// Compile returns how long the go command probably takes for a number of packages.
	Compile func(packages int) time.Duration
}

// A SlowError reports that fetching objects was given up, since compiling them is faster.
type SlowError struct{ Fetch, Compile time.Duration }

func (e *SlowError) Error() string {
	return fmt.Sprintf("fetching them would take %v, and compiling them about %v", e.Fetch.Round(time.Second), e.Compile.Round(time.Second))
}

// A List has packages that can be fetched.
type List []object

// A Holder reports which objects a cache of Go has.
type Holder func(o object) bool

// InFolder returns a Holder that looks into a folder.
func InFolder(dir string) Holder { return func(o object) bool { return has(dir, o) } }

// Listed returns a Holder of a cache of Go elsewhere, of which the names of files are known, AB/ABCD…-a and AB/ABCD…-d.
func Listed(files map[string]bool) Holder {
	return func(o object) bool {
		for _, name := range []string{actionFile("", o.action), actionFile("", printed(o.action)), outputFile("", o.output)} {
			if !files[filepath.ToSlash(name)] {
				return false
			}
		}
		return true
	}
}

// Missing returns the objects that a cache of Go does not have.
func (all List) Missing(has Holder) List {
	var lacks List
	for _, o := range all {
		if !has(o) {
			lacks = append(lacks, o)
		}
	}
	return lacks
}

// enough is the share of objects that makes a cache of Go good enough.
const enough = 0.9

// MostlyIn reports whether a cache of Go has so many of the objects that the others are not worth fetching.
func (all List) MostlyIn(has Holder) bool {
	return float64(len(all.Missing(has))) <= (1-enough)*float64(len(all))
}

// Files returns the files that objects have in a cache of Go, relative to it and slash-separated. It leaves out objects that the cache
// does not have.
func (all List) Files(dir string) []string {
	var files []string
	for _, o := range all {
		if has(dir, o) {
			files = append(files, outputFile("", o.output), actionFile("", printed(o.action)), actionFile("", o.action))
		}
	}
	if len(files) > 0 {
		files = append(files, outputFile("", nothing))
	}
	for i := range files {
		files[i] = filepath.ToSlash(files[i])
	}
	return files
}

// Fetched says what was fetched.
type Fetched struct {
	Ready   bool // the folder can be used
	Objects int
	Bytes   int64 // compressed
}

// Fetch fetches objects that Folder lacks into it. The go command compiles those that are missing afterwards; the error says why.
func (s *Share) Fetch(ctx context.Context, list List) (Fetched, error) {
	to, err := newPlacer(s.Folder, s.Scratch)
	if err != nil {
		return Fetched{}, err
	}
	wanted := list.Missing(InFolder(s.Folder))
	var total int64
	for _, o := range wanted {
		total += o.packed
	}
	var done, count atomic.Int64
	limited, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	defer time.AfterFunc(patience, func() { s.watch(limited, giveUp, &done, total, len(wanted)) }).Stop()
	var g errgroup.Group // one part that cannot be had does not end the others
	g.SetLimit(fetchers)
	for _, part := range parts(wanted) {
		g.Go(func() error {
			placed, err := s.fetch(limited, part, to)
			for _, o := range placed {
				done.Add(o.packed)
				count.Add(1)
			}
			s.Progress(done.Load(), total)
			if _, local := errors.AsType[*fs.PathError](err); local { // the disk is full, for example
				giveUp(err)
			}
			return err
		})
	}
	err = g.Wait()
	if slow := new(SlowError); errors.As(context.Cause(limited), &slow) {
		err = slow
	}
	return Fetched{Ready: true, Objects: int(count.Load()), Bytes: done.Load()}, err
}

// patience is the time until the speed of fetching is first judged, and between two judgments.
const patience = 3 * time.Second

// watch gives up fetching when compiling is faster. It returns when the context ends.
func (s *Share) watch(ctx context.Context, giveUp context.CancelCauseFunc, done *atomic.Int64, total int64, count int) {
	for elapsed := patience; ctx.Err() == nil; elapsed += patience {
		share := float64(done.Load()) / float64(max(total, 1))
		left := time.Duration(float64(elapsed)/max(share, 0.001)) - elapsed
		if compile := s.Compile(int(float64(count) * (1 - share))); left > compile {
			giveUp(&SlowError{left, compile})
			return
		}
		select {
		case <-time.After(patience):
		case <-ctx.Done():
		}
	}
}

// Find returns the objects of binaries, each once. Each binary has several keys: the first one with a list counts.
func (s *Share) Find(ctx context.Context, binaries [][]string) (List, error) {
	lists := make([][]object, len(binaries))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(fetchers)
	for i, keys := range binaries {
		g.Go(func() error {
			for _, key := range keys {
				if r := s.Cache.LookupBlob(ctx, key); r != nil {
					var err error
					lists[i], err = read(r)
					return err
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	seen := map[digest]bool{}
	var all List
	for _, o := range slices.Concat(lists...) {
		if !seen[o.action] {
			seen[o.action] = true
			all = append(all, o)
		}
	}
	return all, nil
}

const (
	fetchers  = 8       // parts that are fetched at the same time
	partCount = 64      // objects in a part
	partSize  = 4 << 20 // bytes, unless one object has more
)

// parts cuts objects into parts that are fetched together.
func parts(all []object) [][]object {
	var cut [][]object
	var part []object
	var size int64
	for _, o := range all {
		if len(part) > 0 && (len(part) == partCount || size+o.packed > partSize) {
			cut, part, size = append(cut, part), nil, 0
		}
		part, size = append(part, o), size+o.packed
	}
	if len(part) > 0 {
		cut = append(cut, part)
	}
	return cut
}

// fetch fetches objects into the folder. It returns those that are there now.
func (s *Share) fetch(ctx context.Context, part []object, to *placer) (placed []object, err error) {
	var mu sync.Mutex
	contents := make([]action.Content, len(part))
	for i, o := range part {
		contents[i] = action.Content{SHA256: o.blob, Size: o.packed, Take: func(packed []byte) error {
			if err := to.place(o, packed); err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			placed = append(placed, o)
			return nil
		}}
	}
	err = s.Cache.Fetch(ctx, contents)
	return placed, err
}

// A digest is a SHA-256.
type digest = [sha256.Size]byte

// An object is an entry of Go's build cache, with its bytes compressed.
type object struct {
	action, output digest
	size           int64  // bytes
	blob           string // SHA-256 of the compressed bytes, in hexadecimal
	packed         int64  // how many there are
}

// entry returns an object as part of a result.
func (o object) entry() action.Entry {
	return action.Entry{Path: fmt.Sprintf("%x/%x/%d", o.action, o.output, o.size), Kind: action.RegularFile, SHA256: o.blob, Size: o.packed}
}

// maxPacked is how many compressed bytes an object may have to be shared, since they are in memory as a whole. The largest object of a
// release, aws-sdk-go-v2/service/ec2 in Traefik, has 124 MiB that are not compressed.
const maxPacked = 64 << 20

// maxUnpacked is how many bytes an object may have that is fetched.
const maxUnpacked = 1 << 30

// errList reports a list that is signed but does not have the format.
var errList = errors.New("a list of objects cannot be read")

// read returns the objects in a list, without those that are too large.
func read(r *action.Result) ([]object, error) {
	var all []object
	for _, e := range r.Entries {
		part := strings.Split(e.Path, "/")
		if len(part) != 3 || e.Kind != action.RegularFile || e.Size < 0 {
			return nil, fmt.Errorf("%w: %q", errList, e.Path)
		}
		o := object{blob: e.SHA256, packed: e.Size}
		var err error
		o.size, err = strconv.ParseInt(part[2], 10, 64)
		if err != nil || o.size < 0 || !parse(part[0], &o.action) || !parse(part[1], &o.output) {
			return nil, fmt.Errorf("%w: %q", errList, e.Path)
		}
		if o.packed <= maxPacked && o.size <= maxUnpacked {
			all = append(all, o)
		}
	}
	return all, nil
}

func parse(text string, d *digest) bool {
	sum, err := hex.DecodeString(text)
	return err == nil && len(sum) == copy(d[:], sum) && len(sum) == len(d)
}

// has reports whether a cache of Go has an object, with what the compiler printed.
func has(dir string, o object) bool {
	entry, err := os.ReadFile(actionFile(dir, o.action))
	if err != nil || !bytes.HasPrefix(entry, fmt.Appendf(nil, "v1 %x %x ", o.action, o.output)) {
		return false
	}
	if _, err := os.Stat(actionFile(dir, printed(o.action))); err != nil {
		return false
	}
	info, err := os.Stat(outputFile(dir, o.output))
	return err == nil && info.Size() == o.size
}
