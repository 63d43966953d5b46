package action

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"sync"
	"time"
)

// A memory is a cache in memory.
type memory struct {
	mu       sync.Mutex
	readOnly bool
	results  map[string]string // in JSON, by key
	files    map[string]string // by digest
	lookups  int
	fetched  int
	flaky    func() bool    // whether a fetch fails; may be nil
	took     *time.Duration // instead of what results say, if not nil
	delay    time.Duration  // between the halves of what is fetched
}

func newMemory() *memory { return &memory{results: map[string]string{}, files: map[string]string{}} }

func (c *memory) LookupBlob(ctx context.Context, key string) *Result { return c.Lookup(ctx, key) }

func (c *memory) Lookup(_ context.Context, key string) *Result {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lookups++
	text, ok := c.results[key]
	if !ok {
		return nil
	}
	r := new(Result)
	if err := json.Unmarshal([]byte(text), r); err != nil {
		panic(err)
	}
	if c.took != nil {
		r.Took = *c.took
	}
	return r
}

func (c *memory) Fetch(ctx context.Context, contents []Content) error {
	if c.delay > 0 {
		for _, f := range contents {
			if err := os.WriteFile(f.File, make([]byte, f.Size/2), 0o666); err != nil {
				return err
			}
		}
		select {
		case <-time.After(c.delay):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range contents {
		data, ok := c.files[f.SHA256]
		if !ok || int64(len(data)) != f.Size || c.flaky != nil && c.flaky() {
			return errors.New("it is gone")
		}
		if err := os.WriteFile(f.File, []byte(data), 0o666); err != nil {
			return err
		}
		c.fetched++
	}
	return nil
}

func (c *memory) Stores() bool { return !c.readOnly }

func (c *memory) Store(_ context.Context, key string, r *Result, open func(string) (io.ReadCloser, error)) error {
	for _, e := range r.Entries {
		if e.SHA256 == "" {
			continue
		}
		f, err := open(e.Path)
		if err != nil {
			return err
		}
		data, err := io.ReadAll(f)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
		if sumOf(string(data)) != e.SHA256 || int64(len(data)) != e.Size {
			return errors.New("other bytes")
		}
		c.mu.Lock()
		c.files[e.SHA256] = string(data)
		c.mu.Unlock()
	}
	text, err := json.Marshal(r)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.results[key] = string(text)
	return err
}
