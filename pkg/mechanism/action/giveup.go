package action

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// A cache can be so slow that running the actions is faster than fetching what they made. Then the rest of the run does without it.

// patience is how long outputs are fetched before the speed is first judged, and the time between two judgments.
const patience = 10 * time.Second

// margin is how many times longer fetching must take than making to be given up, since both times are estimates.
const margin = 2

// A slowError reports that fetching was given up because it is slower than running the actions.
type slowError struct{ fetch, make time.Duration }

func (e *slowError) Error() string {
	return fmt.Sprintf("fetching the rest would take %v, and making it about %v", e.fetch.Round(time.Second), e.make.Round(time.Second))
}

// A fetching counts the bytes that one call fetches.
type fetching struct {
	mu    sync.Mutex
	total int64           // bytes
	done  int64           // bytes of files that are complete
	files map[string]bool // that are being fetched
}

// expect adds to the bytes that will be fetched, or takes away what is here by now.
func (f *fetching) expect(size int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.total += size
}

func (f *fetching) begin(contents []Content) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range contents {
		f.files[c.File] = true
	}
}

// end says that contents are complete, or else that they will not come.
func (f *fetching) end(contents []Content, complete bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range contents {
		delete(f.files, c.File)
		if complete {
			f.done += c.Size
		} else {
			f.total -= c.Size
		}
	}
}

// progress returns how many bytes are here, and how many are not. It reports whether any are being fetched.
func (f *fetching) progress() (have, rest int64, active bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	have = f.done
	for name := range f.files {
		if st, err := os.Stat(name); err == nil {
			have += st.Size()
		}
	}
	return have, f.total - have, len(f.files) > 0
}

// watch gives fetching up if the rest takes much longer than making everything. It ends with ctx. Time does not count in which another
// call fetches what this one waits for.
func (f *fetching) watch(ctx context.Context, every, making time.Duration, giveUp context.CancelCauseFunc) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	spent := time.Duration(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		have, rest, active := f.progress()
		if !active {
			continue
		}
		spent += every
		left := spent.Seconds() * float64(rest) / float64(max(have, 1))
		if left > (margin * making).Seconds() {
			giveUp(&slowError{time.Duration(min(left, maxLeft) * float64(time.Second)), making})
		}
	}
}

// maxLeft, in seconds, is the longest estimate.
const maxLeft = 1e9

// slowness returns the slowError because of which a context ended, or nil.
func slowness(ctx context.Context) *slowError {
	slow, _ := errors.AsType[*slowError](context.Cause(ctx))
	return slow
}
