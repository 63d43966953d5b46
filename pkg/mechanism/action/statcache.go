package action

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"sync"
	"time"
)

// A status is what the file system knows about a file without reading it.
type status struct {
	kind  kind
	size  int64
	mtime int64 // nanoseconds since 1970, as ctime
	ctime int64
	inode uint64
	mode  uint32
}

const (
	// tick is longer than a tick of the clock that file systems take their times from: 10 ms on Linux built for 100 Hz,
	// 15.6 ms on Windows.
	tick = 20 * time.Millisecond

	// coarseTick is the same for file systems whose times are whole or even seconds.
	coarseTick = 2 * time.Second

	// unusedFor is how long an entry is kept that no run looks up.
	unusedFor = 30 * 24 * time.Hour
)

// waitATick waits until an edit of a file that was just renamed into place would be evident: only then can its content be remembered.
func waitATick() { time.Sleep(tick + tick/4) }

// granularity guesses the precision of a file system's times, in nanoseconds, from a change time.
func granularity(ctime int64) int64 {
	if ctime%int64(time.Second) == 0 {
		return int64(coarseTick)
	}
	return int64(tick)
}

// evident reports whether every edit of a file with this status after the given time changes the status. It is git's rule
// against races.
func evident(st status, read int64) bool {
	before := read - granularity(st.ctime)
	return st.mtime < before && st.ctime < before
}

// A statCache remembers the SHA-256 of files.
type statCache struct {
	mu      sync.Mutex
	entries map[string]*statEntry
	dirty   bool
}

type statEntry struct {
	status
	sum  [sha256.Size]byte
	read int64 // nanoseconds since 1970
	used bool  // looked up in this run; not saved
}

func (c *statCache) lookup(p string, st status) ([sha256.Size]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[p]
	if e == nil {
		return [sha256.Size]byte{}, false
	}
	e.used = true
	return e.sum, e.status == st && evident(st, e.read)
}

func (c *statCache) remember(p string, st status, sum [sha256.Size]byte, read int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries[p] = &statEntry{status: st, sum: sum, read: read, used: true}
	c.dirty = true
}

// statHeader is the first line of the file, which ends with a checksum of everything before it.
const statHeader = "slipway stat 1\n"

// statSize is the size of an entry after its path: kind, mode, size, mtime, ctime, inode, read, sum.
const statSize = 1 + 4 + 5*8 + sha256.Size

var (
	statOrder  = binary.LittleEndian
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	errStat    = errors.New("not a stat cache")
)

// loadStats returns an empty cache if the file is missing or damaged: the cache only saves time.
func loadStats(abs string) (*statCache, error) {
	data, err := os.ReadFile(abs)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	entries, err := decodeStats(data)
	if err != nil {
		entries = make(map[string]*statEntry)
	}
	return &statCache{entries: entries}, nil
}

func decodeStats(data []byte) (map[string]*statEntry, error) {
	body, ok := bytes.CutPrefix(data, []byte(statHeader))
	if !ok || len(body) < 4+crc32.Size {
		return nil, errStat
	}
	end := len(data) - crc32.Size
	if crc32.Checksum(data[:end], castagnoli) != statOrder.Uint32(data[end:]) {
		return nil, errStat
	}
	body = body[:len(body)-crc32.Size]
	n := int(statOrder.Uint32(body))
	body = body[4:]
	if n > len(body)/statSize {
		return nil, errStat
	}
	// One string and one slice hold all entries: every no-op loads a cache of many thousand.
	text := string(body)
	all := make([]statEntry, n)
	entries := make(map[string]*statEntry, n)
	at := 0
	for i := range all {
		length, width := binary.Uvarint(body[at:])
		if width <= 0 || length > uint64(len(body)-at-width) || len(body)-at-width-int(length) < statSize {
			return nil, errStat
		}
		at += width
		p := text[at : at+int(length)]
		at += int(length)
		e, b := &all[i], body[at:at+statSize]
		at += statSize
		e.kind = kind(b[0])
		e.mode = statOrder.Uint32(b[1:])
		e.size = int64(statOrder.Uint64(b[5:]))
		e.mtime = int64(statOrder.Uint64(b[13:]))
		e.ctime = int64(statOrder.Uint64(b[21:]))
		e.inode = statOrder.Uint64(b[29:])
		e.read = int64(statOrder.Uint64(b[37:]))
		copy(e.sum[:], b[45:])
		entries[p] = e
	}
	return entries, nil
}

// encode returns the file's content. It leaves out entries that no run has looked up in a long time.
func (c *statCache) encode(now time.Time) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dirty = false
	oldest := now.Add(-unusedFor).UnixNano()
	b := append([]byte(statHeader), 0, 0, 0, 0)
	n := uint32(0)
	for p, e := range c.entries {
		if !e.used && e.read < oldest {
			continue
		}
		n++
		b = binary.AppendUvarint(b, uint64(len(p)))
		b = append(b, p...)
		b = append(b, byte(e.kind))
		b = statOrder.AppendUint32(b, e.mode)
		b = statOrder.AppendUint64(b, uint64(e.size))
		b = statOrder.AppendUint64(b, uint64(e.mtime))
		b = statOrder.AppendUint64(b, uint64(e.ctime))
		b = statOrder.AppendUint64(b, e.inode)
		b = statOrder.AppendUint64(b, uint64(e.read))
		b = append(b, e.sum[:]...)
	}
	statOrder.PutUint32(b[len(statHeader):], n)
	return statOrder.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// save writes the cache to a file if it has new entries, by way of a temporary file in the folder tmp.
func (c *statCache) save(abs, tmp string) error {
	c.mu.Lock()
	dirty := c.dirty
	c.mu.Unlock()
	if !dirty {
		return nil
	}
	if err := replaceFile(abs, tmp, c.encode(time.Now())); err != nil {
		return fmt.Errorf("remember contents: %w", err)
	}
	return nil
}
