package objects

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"slipway.build/pkg/mechanism/atomicfile"
)

func actionFile(dir string, action digest) string { return file(dir, action, "-a") }
func outputFile(dir string, output digest) string { return file(dir, output, "-d") }

func file(dir string, d digest, suffix string) string {
	name := hex.EncodeToString(d[:])
	return filepath.Join(dir, name[:2], name+suffix)
}

// printed returns the action under which the go command keeps what the compiler printed for a package.
func printed(action digest) digest {
	return sha256.Sum256(append(append([]byte("subkey:"), action[:]...), "stdout"...))
}

// nothing is the output of a compiler that printed nothing.
var nothing = sha256.Sum256(nil)

// A placer writes objects into a cache of Go. It may be used by several goroutines.
type placer struct {
	dir     string // of the cache
	scratch string // a folder for temporary files
	decoder *zstd.Decoder
}

// newPlacer makes the folders of a cache of Go, and returns its placer.
func newPlacer(dir, scratch string) (*placer, error) {
	for i := range 256 {
		if err := os.MkdirAll(filepath.Join(dir, fmt.Sprintf("%02x", i)), 0o777); err != nil {
			return nil, err
		}
	}
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		return nil, err
	}
	return &placer{dir, scratch, z}, write(outputFile(dir, nothing), nil)
}

// place unpacks an object and writes it. The client of the cache has checked the digest of the compressed bytes, and the signer of the list
// that of the object ([Share.Store]). It writes the entry last, so that no entry leads to bytes that are not there.
func (p *placer) place(o object, packed []byte) error {
	data, err := p.decoder.DecodeAll(packed, make([]byte, 0, o.size)) // a damaged one is not unpacked further than its size
	if err == nil && int64(len(data)) != o.size {
		err = errors.New("it has another size")
	}
	if err != nil {
		return fmt.Errorf("object %x: %w", o.output, err)
	}
	if err := p.output(outputFile(p.dir, o.output), data); err != nil {
		return err
	}
	if err := write(actionFile(p.dir, printed(o.action)), line(printed(o.action), nothing, 0)); err != nil {
		return err
	}
	return write(actionFile(p.dir, o.action), line(o.action, o.output, o.size))
}

// output writes the file of an object, which gets its name when it is whole. The temporary one is not in the cache of Go, where nobody
// would remove it.
func (p *placer) output(name string, data []byte) error {
	f, err := os.CreateTemp(p.scratch, "output")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err := errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	if os.Rename(f.Name(), name) == nil {
		return nil
	}
	// It may be on another file system.
	return errors.Join(atomicfile.Copy(f.Name(), name), os.Remove(f.Name()))
}

// line returns what an entry says.
func line(action, output digest, size int64) []byte {
	return fmt.Appendf(nil, "v1 %x %x %20d %20d\n", action, output, size, time.Now().UnixNano())
}

// write writes an entry, or an empty output, in place, as the go command does: it ignores an entry that was cut short.
func write(name string, data []byte) error { return os.WriteFile(name, data, 0o666) }

// find returns the entry of a package, of which go list has said the build ID, and whether there is one that can be shared: the compiler
// has printed nothing, and the bytes are there.
//
// A build ID begins with 120 bits of the action, in base64 (cmd/go/internal/work/buildid.go), so the entry is found by its name.
func (f *finder) find(buildID string) (object, bool) {
	id, _, _ := strings.Cut(buildID, "/")
	prefix, err := decodeID(id)
	if err != nil {
		return object{}, false
	}
	for _, name := range f.names(prefix[:2]) {
		if !strings.HasPrefix(name, prefix) || !strings.HasSuffix(name, "-a") {
			continue
		}
		o, err := readEntry(filepath.Join(f.dir, prefix[:2], name))
		if err != nil {
			continue
		}
		quiet, err := readEntry(actionFile(f.dir, printed(o.action)))
		if err == nil && quiet.output == nothing && has(f.dir, o) {
			return o, true
		}
	}
	return object{}, false
}

// readEntry reads what an entry says.
func readEntry(name string) (object, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return object{}, err
	}
	var o object
	words := strings.Fields(string(data))
	if len(words) != 5 || words[0] != "v1" || !parse(words[1], &o.action) || !parse(words[2], &o.output) {
		return object{}, fmt.Errorf("%s is no entry of Go's cache", name)
	}
	o.size, err = strconv.ParseInt(words[3], 10, 64)
	return o, err
}

// A finder finds entries in a cache of Go.
type finder struct {
	dir   string
	known map[string][]string // names of files, by folder
}

func (f *finder) names(folder string) []string {
	if names, ok := f.known[folder]; ok {
		return names
	}
	var names []string
	entries, _ := os.ReadDir(filepath.Join(f.dir, folder)) // what cannot be read is not found
	for _, e := range entries {
		names = append(names, e.Name())
	}
	f.known[folder] = names
	return names
}
