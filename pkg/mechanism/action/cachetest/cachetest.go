// Package cachetest provides an [action.Cache] in memory. Only tests may import it.
//
// # What must never be in here
//
// What is shared through the cache.
package cachetest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"sync"

	"slipway.build/pkg/mechanism/action"
)

// A Memory is a cache in memory. Tests may look at its fields and change them while nothing uses it.
type Memory struct {
	Results  map[string]*action.Result // by key
	Contents map[string][]byte         // by their digests
	Lookups  int                       // how many keys were looked up
	Fetches  int                       // how many contents were asked for

	Change  func([]byte) []byte // if not nil, changes what Fetch writes
	Err     error               // if not nil, Fetch fails with it
	Stalled bool                // whether Fetch waits until its context ends

	mu sync.Mutex
}

// New returns an empty cache.
func New() *Memory {
	return &Memory{Results: map[string]*action.Result{}, Contents: map[string][]byte{}}
}

// Lookup panics, since it is for results of actions.
func (m *Memory) Lookup(context.Context, string) *action.Result {
	panic("Lookup of something that is no result of an action")
}

// LookupBlob returns what was stored.
func (m *Memory) LookupBlob(_ context.Context, key string) *action.Result {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.Lookups++
	return m.Results[key]
}

// Fetch writes contents to files, or hands them over.
func (m *Memory) Fetch(ctx context.Context, contents []action.Content) error {
	if m.Stalled {
		<-ctx.Done()
		return ctx.Err()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range contents {
		if m.Err != nil {
			return m.Err
		}
		m.Fetches++
		data, ok := m.Contents[c.SHA256]
		if !ok || int64(len(data)) != c.Size {
			return fmt.Errorf("there is no content %s of %d bytes", c.SHA256, c.Size)
		}
		if m.Change != nil {
			data = m.Change(bytes.Clone(data))
		}
		if err := c.Put(data); err != nil {
			return err
		}
	}
	return nil
}

// Stores returns true.
func (m *Memory) Stores() bool { return true }

// Store keeps a result, if its contents have the digests and sizes that it says.
func (m *Memory) Store(_ context.Context, key string, r *action.Result, open func(string) (io.ReadCloser, error)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range r.Entries {
		f, err := open(e.Path)
		if err != nil {
			return err
		}
		data, err := io.ReadAll(f)
		_ = f.Close() // it was only read
		if err != nil {
			return err
		}
		if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != e.SHA256 || int64(len(data)) != e.Size {
			return fmt.Errorf("%s is not what the result says", e.Path)
		}
		m.Contents[e.SHA256] = data
	}
	m.Results[key] = r
	return nil
}
