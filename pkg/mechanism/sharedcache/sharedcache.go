// Package sharedcache keeps results of actions in a server of the Remote Execution API, for many trees and machines.
//
// # Trusted results
//
// A server checks digests, but not who says that an action made these bytes. So a result is an in-toto statement in a sigstore bundle, in
// the standard output of the action's result. It is a hit only if a key that the caller trusts signed it for this action. Other results
// are misses, with a count of their own.
//
// # When the server fails
//
// A cache only saves time, so an error is a miss. If the first request fails, or several in a row, the cache reports it once and sends no
// more requests.
//
// # What must never be in here
//
// What the actions make. Where keys and servers are configured.
package sharedcache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/atomicfile"
	"slipway.build/pkg/mechanism/reapi"
	"slipway.build/pkg/mechanism/signature"
)

// Options configure a cache.
type Options struct {
	Client *reapi.Client
	Name   string                // of the server, for messages
	Keys   []signature.PublicKey // that are trusted
	Sign   *signature.PrivateKey // signs uploads, and is trusted; nil uploads nothing
	Notify func(text string)     // tells the user; each message comes once
}

// A Cache is an [action.Cache].
type Cache struct {
	Options
	counts counts
	slots  chan struct{} // for concurrent requests

	failures atomic.Int32 // in a row
	answered atomic.Bool  // the server has, once
	gone     atomic.Bool  // no more requests are sent
	readOnly atomic.Bool  // the server takes no uploads
	capable  sync.Once
	notified sync.Map
}

type counts struct {
	hits, misses, untrusted, stored, fetched, uploaded atomic.Int64
}

// Counts are the statistics of a cache.
type Counts struct {
	Hits      int64
	Misses    int64 // without Untrusted
	Untrusted int64 // results without the signature of a trusted key
	Fetched   int64 // bytes
	Stored    int64 // results
	Uploaded  int64 // bytes
}

// maxRequests is how many requests are sent at the same time.
const maxRequests = 32

// New returns a cache.
func New(o Options) *Cache {
	if o.Sign != nil {
		o.Keys = append(o.Keys[:len(o.Keys):len(o.Keys)], o.Sign.Public())
	}
	return &Cache{Options: o, slots: make(chan struct{}, maxRequests)}
}

// Counts returns the statistics until now.
func (c *Cache) Counts() Counts {
	return Counts{
		Hits: c.counts.hits.Load(), Misses: c.counts.misses.Load(), Untrusted: c.counts.untrusted.Load(),
		Fetched: c.counts.fetched.Load(), Stored: c.counts.stored.Load(), Uploaded: c.counts.uploaded.Load(),
	}
}

// maxFailures is how many requests in a row may fail before no more are sent, if the server has answered before.
const maxFailures = 3

// errGone is the error of requests that are not sent.
var errGone = errors.New("the server does not answer")

// request calls f, which sends requests, unless the server is gone.
func (c *Cache) request(ctx context.Context, f func() error) error {
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if c.gone.Load() {
		return errGone
	}
	err := f()
	switch {
	case err == nil:
		c.failures.Store(0)
		c.answered.Store(true)
	case ctx.Err() != nil:
	case denies(err), c.failures.Add(1) >= maxFailures, !c.answered.Load():
		c.gone.Store(true)
		c.notify(fmt.Sprintf("the cache %s is not used any more: %v", c.Name, err))
	}
	return err
}

// denies reports whether a server answers that this client may not do what it asks for, or must first say who it is.
func denies(err error) bool {
	return reapi.IsCode(err, reapi.PermissionDenied) || reapi.IsCode(err, reapi.Unauthenticated)
}

// upload calls f, which sends an upload. If the server denies it, no more are sent.
func (c *Cache) upload(ctx context.Context, f func() error) error {
	var denied error
	err := c.request(ctx, func() error {
		err := f()
		if denies(err) {
			denied, err = err, nil
		}
		return err
	})
	if denied != nil {
		c.setReadOnly(denied)
		return denied
	}
	return err
}

func (c *Cache) setReadOnly(err error) {
	c.readOnly.Store(true)
	c.notify(fmt.Sprintf("the cache %s takes no results from here: %v", c.Name, err))
}

// errReadOnly is the capability of a server that takes no uploads.
var errReadOnly = errors.New("it lets this client only read")

// canUpload asks the server, once, whether it takes uploads.
func (c *Cache) canUpload(ctx context.Context) bool {
	c.capable.Do(func() {
		err := c.request(ctx, func() error {
			caps, err := c.Client.Capabilities(ctx)
			if err == nil && !caps.Update {
				c.setReadOnly(errReadOnly)
			}
			return err
		})
		if err != nil && !c.gone.Load() {
			c.setReadOnly(err)
		}
	})
	return c.Stores()
}

func (c *Cache) notify(text string) {
	if _, before := c.notified.LoadOrStore(text, true); !before && c.Notify != nil {
		c.Notify(text)
	}
}

// Lookup returns the result of an action by its key, if a trusted key signed it.
func (c *Cache) Lookup(ctx context.Context, key string) *action.Result {
	r, found := c.lookup(ctx, key)
	switch {
	case r != nil:
		c.counts.hits.Add(1)
	case found:
		c.counts.untrusted.Add(1)
	default:
		c.counts.misses.Add(1)
	}
	return r
}

// LookupBlob returns something else that is kept under a key, if a trusted key signed it. It does not count as a hit or a miss.
func (c *Cache) LookupBlob(ctx context.Context, key string) *action.Result {
	r, _ := c.lookup(ctx, key)
	return r
}

func (c *Cache) lookup(ctx context.Context, key string) (r *action.Result, found bool) {
	digest, _ := reapi.Action(command(key)...)
	var result *reapi.Result
	err := c.request(ctx, func() (err error) {
		result, err = c.Client.Result(ctx, digest)
		return err
	})
	if err != nil || result == nil {
		return nil, false
	}
	r, err = c.verified(key, result.Stdout)
	if err != nil {
		c.notify(fmt.Sprintf("the cache %s has results that do not count: %v", c.Name, err))
	}
	return r, true
}

// command is the command line of an action, for people who look at the server.
func command(key string) []string { return []string{"slipway", "action", key} }

// Stores reports whether results are stored.
func (c *Cache) Stores() bool { return c.Sign != nil && !c.gone.Load() && !c.readOnly.Load() }

// Store uploads a result, unless the server has a trusted one.
func (c *Cache) Store(ctx context.Context, key string, r *action.Result, open func(path string) (io.ReadCloser, error)) error {
	if !c.canUpload(ctx) {
		return nil
	}
	if r, _ := c.lookup(ctx, key); r != nil {
		return nil
	}
	contents := map[reapi.Digest]source{}
	result := &reapi.Result{}
	for _, e := range r.Entries {
		if e.SHA256 == "" {
			continue
		}
		d := reapi.Digest{SHA256: e.SHA256, Size: e.Size}
		result.Files = append(result.Files, reapi.OutputFile{Path: e.Path, Digest: d, Executable: e.Kind == action.ExecutableFile})
		contents[d] = source{e.Path, open}
	}
	id, descriptions := reapi.Action(command(key)...)
	for _, data := range descriptions {
		contents[reapi.DigestOf(data)] = source{"description of the action", func(string) (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(data)), nil
		}}
	}
	var missing []reapi.Digest
	err := c.request(ctx, func() (err error) {
		missing, err = c.Client.Missing(ctx, slices.Collect(maps.Keys(contents)))
		return err
	})
	if err != nil {
		return err
	}
	if err := c.uploadContents(ctx, missing, contents); err != nil {
		return err
	}
	if result.Stdout, err = c.signed(ctx, key, r); err != nil {
		return err
	}
	if err := c.upload(ctx, func() error { return c.Client.StoreResult(ctx, id, result) }); err != nil {
		return err
	}
	c.counts.stored.Add(1)
	return nil
}

// A source is where a content that is uploaded comes from.
type source struct {
	name string
	from func(name string) (io.ReadCloser, error)
}

func (s source) open() (io.ReadCloser, error) { return s.from(s.name) }

// read returns a content with a digest.
func (s source) read(d reapi.Digest) ([]byte, error) {
	f, err := s.open()
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, d.Size+1))
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	if reapi.DigestOf(data) != d {
		return nil, fmt.Errorf("%s has changed", s.name)
	}
	return data, nil
}

// uploadContents uploads the contents that the server does not have.
func (c *Cache) uploadContents(ctx context.Context, missing []reapi.Digest, from map[reapi.Digest]source) error {
	missing = slices.DeleteFunc(missing, func(d reapi.Digest) bool { return from[d].from == nil }) // nobody asked about it
	small, large := reapi.Batches(missing, func(d reapi.Digest) int64 { return d.Size })
	for _, batch := range small {
		var contents [][]byte
		for _, d := range batch {
			data, err := from[d].read(d)
			if err != nil {
				return err
			}
			contents = append(contents, data)
			c.counts.uploaded.Add(d.Size)
		}
		if err := c.upload(ctx, func() error { return c.Client.WriteBatch(ctx, contents) }); err != nil {
			return err
		}
	}
	for _, d := range large {
		if err := c.upload(ctx, func() error { return c.Client.Write(ctx, d, from[d].open) }); err != nil {
			return fmt.Errorf("%s: %w", from[d].name, err)
		}
		c.counts.uploaded.Add(d.Size)
	}
	return nil
}

// Fetch writes contents to new files, or hands them over.
func (c *Cache) Fetch(ctx context.Context, contents []action.Content) error {
	wanted := map[reapi.Digest][]action.Content{}
	var digests []reapi.Digest
	for _, content := range contents {
		d := reapi.Digest{SHA256: content.SHA256, Size: content.Size}
		if len(wanted[d]) == 0 {
			digests = append(digests, d)
		}
		wanted[d] = append(wanted[d], content)
	}
	small, large := reapi.Batches(digests, func(d reapi.Digest) int64 { return d.Size })
	g, ctx := errgroup.WithContext(ctx)
	for _, batch := range small {
		g.Go(func() error { return c.fetchBatch(ctx, batch, wanted) })
	}
	for _, d := range large {
		g.Go(func() error { return c.fetchLarge(ctx, d, wanted[d]) })
	}
	return g.Wait()
}

// put writes a content to all its destinations.
func put(data []byte, to []action.Content) error {
	for _, content := range to {
		if err := content.Put(data); err != nil {
			return err
		}
	}
	return nil
}

// errMissing says that the server no longer has a content.
var errMissing = errors.New("the cache no longer has a content")

func (c *Cache) fetchBatch(ctx context.Context, digests []reapi.Digest, wanted map[reapi.Digest][]action.Content) error {
	var contents map[reapi.Digest][]byte
	err := c.request(ctx, func() (err error) {
		contents, err = c.Client.ReadBatch(ctx, digests)
		return err
	})
	if err != nil {
		return err
	}
	for _, d := range digests {
		data, ok := contents[d]
		if !ok {
			return fmt.Errorf("%w: %v", errMissing, d)
		}
		c.counts.fetched.Add(d.Size)
		if err := put(data, wanted[d]); err != nil {
			return err
		}
	}
	return nil
}

// attempts is how often a large content is requested: the connection may break.
const attempts = 2

func (c *Cache) fetchLarge(ctx context.Context, d reapi.Digest, wanted []action.Content) error {
	inMemory := slices.ContainsFunc(wanted, func(content action.Content) bool { return content.Take != nil })
	var data bytes.Buffer
	read := func() error {
		return writeFile(wanted[0].File, func(w io.Writer) error { return c.Client.Read(ctx, d, w) })
	}
	if inMemory {
		read = func() error {
			data.Reset()
			data.Grow(int(d.Size))
			return c.Client.Read(ctx, d, &data)
		}
	}
	var err error
	for range attempts {
		err = c.request(ctx, read)
		if err == nil || ctx.Err() != nil || reapi.IsCode(err, reapi.NotFound) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("%v: %w", d, err)
	}
	c.counts.fetched.Add(d.Size)
	if inMemory {
		return put(data.Bytes(), wanted)
	}
	for _, content := range wanted[1:] {
		if err := atomicfile.Copy(wanted[0].File, content.File); err != nil {
			return err
		}
	}
	return nil
}

func writeFile(name string, write func(io.Writer) error) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}
