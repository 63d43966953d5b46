package disk

import (
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// busy are the files that a call works on. Another call about one of them is refused, and will be repeated: see the section about
// concurrency in the specification of CSI.
type busy struct {
	mu    sync.Mutex
	files map[string]bool
}

// take reserves a file for a call, until done.
func (b *busy) take(file string) (done func(), err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.files[file] {
		return nil, status.Errorf(codes.Aborted, "another call works on %s", file)
	}
	if b.files == nil {
		b.files = map[string]bool{}
	}
	b.files[file] = true
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.files, file)
	}, nil
}
