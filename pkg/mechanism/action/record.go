package action

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"slipway.build/pkg/mechanism/atomicfile"
)

// recordFormat is part of every key and record. Raising it makes everything run once.
const recordFormat = 2

// A record of every finished action is kept, to find out whether it must run again.
type record struct {
	Format    int           `json:"format"`
	ID        string        `json:"id"`
	Key       string        `json:"key"`
	Outputs   []output      `json:"outputs,omitempty"`
	Edited    string        `json:"edited,omitempty"` // an input that was edited while the action ran
	Origin    Origin        `json:"origin,omitempty"`
	Duration  time.Duration `json:"duration"`             // nanoseconds, of all actions of a batch that ran together
	BatchSize int           `json:"batch_size,omitempty"` // how many these were
	Memory    int64         `json:"memory,omitempty"`     // peak, bytes
}

// An output is a File and its kind.
type output struct {
	File
	Kind string `json:"kind"`
}

func newOutput(p string, c content) output {
	return output{File{Path: p, Size: c.size, SHA256: c.hex()}, string(rune(c.kind))}
}

func (o output) is(c content) bool { return o.Kind == string(rune(c.kind)) && o.SHA256 == c.hex() }

// took returns how long the action ran: its share of the time of its batch. It returns 0 if the action takes longer where it has only its
// inputs.
func (r *record) took() time.Duration {
	if r.Origin != Built {
		return 0
	}
	return r.Duration / time.Duration(max(r.BatchSize, 1))
}

func (r *record) files() []File {
	files := make([]File, len(r.Outputs))
	for i, o := range r.Outputs {
		files[i] = o.File
	}
	return files
}

// A keyParts is what a record's key was computed from. It has a file of its own because it may list thousands of inputs, and
// a no-op does not need it.
type keyParts struct {
	Key    string   `json:"key"`
	Recipe []string `json:"recipe"`
	Inputs []string `json:"inputs"` // digest, space, path; inside of directories, only the beginning of the digest
}

// A batchRecord is the memory that a batch needed the last time.
type batchRecord struct {
	ID      string `json:"id"`
	Members int    `json:"members"` // how many of them ran
	Memory  int64  `json:"memory"`  // peak, bytes
}

// A ledger keeps records in the state folder.
type ledger struct {
	folder string // absolute
}

func (l ledger) name(id, suffix string) string {
	sum := sha256.Sum256([]byte(id))
	return filepath.Join(l.folder, hex.EncodeToString(sum[:])+suffix)
}

func (l ledger) read(id, suffix string, v any) error {
	data, err := os.ReadFile(l.name(id, suffix))
	if err != nil {
		return err
	}
	return json.Unmarshal(data, v)
}

func (l ledger) write(id, suffix, tmp string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("record %s: %w", id, err)
	}
	if err := replaceFile(l.name(id, suffix), tmp, append(data, '\n')); err != nil {
		return fmt.Errorf("record %s: %w", id, err)
	}
	return nil
}

// replaceFile replaces a file as a whole, by way of the folder tmp on the same file system.
func replaceFile(name, tmp string, data []byte) error {
	for _, dir := range []string{filepath.Dir(name), tmp} {
		if err := os.MkdirAll(dir, 0o777); err != nil {
			return err
		}
	}
	return atomicfile.WriteVia(tmp, name, 0o644, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// keyOf returns the digest of everything that decides an action's outputs.
func keyOf(id string, recipe, outputs, inputs []string, contents []content) string {
	var b []byte
	text := func(s string) {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	texts := func(list []string) {
		b = binary.AppendUvarint(b, uint64(len(list)))
		for _, s := range list {
			text(s)
		}
	}
	b = append(b, recordFormat)
	text(id)
	texts(recipe)
	texts(outputs)
	texts(inputs)
	for _, c := range contents {
		b = append(b, byte(c.kind))
		b = append(b, c.sum[:]...)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
