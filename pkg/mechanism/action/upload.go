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

// maxUploads is how many results are uploaded at the same time.
const maxUploads = 4

// An uploader uploads results while other actions run.
type uploader struct {
	*judge
	emit    func(Event)
	wg      sync.WaitGroup
	slots   chan struct{}
	once    sync.Once
	pending atomic.Int64 // uploads
}

// offer uploads a result, unless no cache takes it. It does not wait for that. Outputs stay as they are until the run ends.
func (u *uploader) offer(ctx context.Context, v *verdict, rec *record, outputs []content) {
	if u.cache == nil || !u.cache.Stores() || !v.shared() {
		return
	}
	u.start(ctx, v.ID, func() error {
		result, err := u.result(v.member, outputs)
		if err != nil {
			return err
		}
		result.Took = rec.took()
		common, here := v.names.toCommon(result)
		return u.cache.Store(ctx, v.commonKey(), common, func(p string) (io.ReadCloser, error) { return os.Open(u.absolute(here[p])) })
	})
}

// start calls f, which uploads something for an action, in the background.
func (u *uploader) start(ctx context.Context, id string, f func() error) {
	u.pending.Add(1)
	u.wg.Go(func() {
		defer u.pending.Add(-1)
		u.slots <- struct{}{}
		defer func() { <-u.slots }()
		if ctx.Err() != nil {
			return
		}
		if err := f(); err != nil && ctx.Err() == nil {
			u.once.Do(func() {
				u.emit(Event{Kind: Output, Text: fmt.Sprintf("not stored in the cache: %s: %v", id, err)})
			})
		}
	})
}

// finish waits until all results are uploaded.
func (u *uploader) finish() {
	if n := u.pending.Load(); n > 0 {
		u.emit(Event{Kind: Output, Text: fmt.Sprintf("still storing results in the cache: %d are left", n)})
	}
	u.wg.Wait()
}

var errOther = errors.New("is neither a file nor a folder nor a link")

// result describes outputs for a cache.
func (u *uploader) result(m *member, outputs []content) (*Result, error) {
	result := new(Result)
	for i, out := range m.outputs {
		for _, e := range append([]entry{{out, outputs[i].digest}}, outputs[i].entries...) {
			described, err := u.describe(e)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", e.path, cause(err))
			}
			result.Entries = append(result.Entries, described)
		}
	}
	return result, nil
}

func (u *uploader) describe(e entry) (Entry, error) {
	known := Entry{Path: e.path}
	switch e.kind {
	case directory:
		known.Kind = Folder
	case symlink:
		known.Kind = SymbolicLink
		target, err := os.Readlink(u.absolute(e.path))
		known.Target = target
		return known, err
	case file, executable:
		known.Kind, known.SHA256 = RegularFile, e.hex()
		if e.kind == executable {
			known.Kind = ExecutableFile
		}
		st, err := statcache.Lstat(u.absolute(e.path))
		known.Size = st.Size
		return known, err
	default:
		return known, errOther
	}
	return known, nil
}
