package statcache

import (
	"bytes"
	"embed"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"maps"
	"os"
	"sync"
	"time"

	"slipway.build/pkg/mechanism/atomicfile"
	"slipway.build/pkg/mechanism/recipe"
)

//go:embed *.go
var sources embed.FS

// The code is in keys: it decides whether an edit is noticed.
var _ = recipe.Of("mechanism/statcache", sources)

// A Kind is the type of a file system entry.
type Kind byte

const (
	File       Kind = 'f'
	Executable Kind = 'x' // a file its owner may execute
	Symlink    Kind = 'l'
	Directory  Kind = 'd'
	Other      Kind = 'o' // a socket, a device, …
)

// A Status is what the file system knows about a file without reading it.
type Status struct {
	Kind  Kind
	Size  int64
	Mtime int64 // nanoseconds since 1970, as Ctime
	Ctime int64
	Inode uint64
	Mode  uint32
}

// Regular reports whether it is that of a file with content.
func (s Status) Regular() bool { return s.Kind == File || s.Kind == Executable }

const (
	// Tick is longer than a tick of the clock that file systems take their times from: 10 ms on Linux built for 100 Hz,
	// 15.6 ms on Windows.
	Tick = 20 * time.Millisecond

	// coarseTick is the same for file systems whose times are whole or even seconds.
	coarseTick = 2 * time.Second

	// unusedFor is how long an entry is kept that no run looks up.
	unusedFor = 30 * 24 * time.Hour
)

// granularity guesses the precision of a file system's times, in nanoseconds, from a change time.
func granularity(ctime int64) int64 {
	if ctime%int64(time.Second) == 0 {
		return int64(coarseTick)
	}
	return int64(Tick)
}

// evident reports whether every edit of a file with this status after the given time changes the status. It is git's rule
// against races.
func evident(st Status, read int64) bool {
	before := read - granularity(st.Ctime)
	return st.Mtime < before && st.Ctime < before
}

// A Cache remembers what its user has computed from files' contents: a sum each.
type Cache struct {
	mu      sync.Mutex
	entries map[string]*entry
	dirty   bool
}

type entry struct {
	Status
	Sum  string // bytes
	Read int64  // nanoseconds since 1970
	used bool   // looked up in this run; not saved
}

// Lookup returns the sum of a file that has this status now. Ok is false if its content may have changed since it was remembered.
func (c *Cache) Lookup(name string, st Status) (sum string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[name]
	if e == nil {
		return "", false
	}
	e.used = true
	return e.Sum, e.Status == st && evident(st, e.Read)
}

// Remember keeps the sum of a file that had a status before the read began and after it ended. Read is when it began, in nanoseconds since
// 1970.
func (c *Cache) Remember(name string, st Status, sum string, read int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries[name] = &entry{Status: st, Sum: sum, Read: read, used: true}
	c.dirty = true
}

// RememberWritten keeps the sum of a file whose content its user has written, and which has just got its name: it does not have to be
// read a tick later. Only an edit within the tick of the rename that leaves the size would go unnoticed.
func (c *Cache) RememberWritten(name string, st Status, sum string) {
	c.Remember(name, st, sum, max(st.Mtime, st.Ctime)+int64(Tick)+1)
}

// header is the first line of the file. What follows are the entries as encoding/gob writes them, and a checksum of everything before it.
const header = "slipway stat 3\n"

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	errDamaged = errors.New("not a stat cache")
)

// Load returns an empty cache if the file is missing or damaged: the cache only saves time.
func Load(file string) (*Cache, error) {
	data, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	entries, err := decode(data)
	if err != nil {
		entries = make(map[string]*entry)
	}
	return &Cache{entries: entries}, nil
}

func decode(data []byte) (map[string]*entry, error) {
	end := len(data) - crc32.Size
	if end < len(header) || crc32.Checksum(data[:end], castagnoli) != binary.LittleEndian.Uint32(data[end:]) {
		return nil, errDamaged
	}
	body, ok := bytes.CutPrefix(data[:end], []byte(header))
	if !ok {
		return nil, errDamaged
	}
	entries := make(map[string]*entry)
	return entries, gob.NewDecoder(bytes.NewReader(body)).Decode(&entries)
}

// encode returns the file's content. It leaves out entries that no run has looked up in a long time.
func (c *Cache) encode(now time.Time) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dirty = false
	oldest := now.Add(-unusedFor).UnixNano()
	maps.DeleteFunc(c.entries, func(_ string, e *entry) bool { return !e.used && e.Read < oldest })
	b := bytes.NewBufferString(header)
	err := gob.NewEncoder(b).Encode(c.entries)
	return binary.LittleEndian.AppendUint32(b.Bytes(), crc32.Checksum(b.Bytes(), castagnoli)), err
}

// Save writes the cache to a file if it has new entries, by way of a temporary file in the folder tmp. Both folders must be there.
func (c *Cache) Save(file, tmp string) error {
	c.mu.Lock()
	dirty := c.dirty
	c.mu.Unlock()
	if !dirty {
		return nil
	}
	data, err := c.encode(time.Now())
	if err == nil {
		err = atomicfile.WriteVia(tmp, file, 0o644, func(w io.Writer) error {
			_, err := w.Write(data)
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("remember contents: %w", err)
	}
	return nil
}
