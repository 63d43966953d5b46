package action

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"

	"slipway.build/pkg/mechanism/statcache"
)

// stores is how many results are stored at the same time.
const stores = 4

// An uploader stores results while other actions run.
type uploader struct {
	wg    sync.WaitGroup
	slots chan struct{}
	once  sync.Once
	left  atomic.Int64 // results that are not stored yet
}

// offer has the cache keep what an action made. It does not wait for that. Outputs stay as they are until the run ends.
func (r *run) offer(ctx context.Context, v *verdict, rec *record, outputs []content) {
	j, m := r.judge, v.member
	if j.cache == nil || !j.cache.Stores() || !m.shared() {
		return
	}
	r.later(ctx, m.ID, func() error {
		result, err := j.result(m, outputs)
		if err != nil {
			return err
		}
		result.Took = rec.took()
		common, here := m.toCommon(result)
		return j.cache.Store(ctx, v.commonKey(), common, func(p string) (io.ReadCloser, error) { return os.Open(j.absolute(here[p])) })
	})
}

// later has f store something in the cache, and does not wait for that.
func (r *run) later(ctx context.Context, id string, f func() error) {
	r.uploads.left.Add(1)
	r.uploads.wg.Go(func() {
		defer r.uploads.left.Add(-1)
		r.uploads.slots <- struct{}{}
		defer func() { <-r.uploads.slots }()
		if ctx.Err() != nil {
			return
		}
		if err := f(); err != nil && ctx.Err() == nil {
			r.uploads.once.Do(func() {
				r.emit(Event{Kind: Output, Text: fmt.Sprintf("not stored in the cache: %s: %v", id, err)})
			})
		}
	})
}

// finishUploads waits until all results are stored.
func (r *run) finishUploads() {
	if n := r.uploads.left.Load(); n > 0 {
		r.emit(Event{Kind: Output, Text: fmt.Sprintf("still storing results in the cache: %d are left", n)})
	}
	r.uploads.wg.Wait()
}

var errOther = errors.New("is neither a file nor a folder nor a link")

// result describes outputs for a cache.
func (j *judge) result(m *member, outputs []content) (*Result, error) {
	result := new(Result)
	for i, out := range m.outputs {
		for _, e := range append([]entry{{out, outputs[i].digest}}, outputs[i].entries...) {
			known, err := j.describe(e)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", e.path, cause(err))
			}
			result.Entries = append(result.Entries, known)
		}
	}
	return result, nil
}

func (j *judge) describe(e entry) (Entry, error) {
	known := Entry{Path: e.path}
	switch e.kind {
	case directory:
		known.Kind = Folder
	case symlink:
		known.Kind = SymbolicLink
		target, err := os.Readlink(j.absolute(e.path))
		known.Target = target
		return known, err
	case file, executable:
		known.Kind, known.SHA256 = RegularFile, e.hex()
		if e.kind == executable {
			known.Kind = ExecutableFile
		}
		st, err := statcache.Lstat(j.absolute(e.path))
		known.Size = st.Size
		return known, err
	default:
		return known, errOther
	}
	return known, nil
}
