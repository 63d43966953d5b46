package transfer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// grace is how long one direction may go on when the other has failed or rsync has ended: so that last messages arrive.
const grace = time.Second

// A tunnel carries one connection from a port of this machine to the remote end.
type tunnel struct {
	remote   *daemonConn
	listener net.Listener
	moved    atomic.Int64  // when a byte last moved, as time since start
	start    time.Time     // monotonic, so it stops while the machine sleeps
	pumping  chan struct{} // closed when both directions are at their end
	running  sync.WaitGroup

	mu      sync.Mutex
	local   net.Conn // nil until rsync connects
	closed  bool
	readErr error // of the remote end
}

// open listens, and carries the first connection. It calls cancel if no byte moves within patience. The tunnel closes when ctx
// is done.
func open(ctx context.Context, cancel context.CancelCauseFunc, f *daemonConn, patience time.Duration) (*tunnel, error) {
	patience = cmp.Or(patience, idlePatience)
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	t := &tunnel{remote: f, listener: l, start: time.Now(), pumping: make(chan struct{})}
	stop := context.AfterFunc(ctx, t.close)
	t.running.Go(func() {
		defer stop()
		defer close(t.pumping)
		t.carry()
	})
	t.running.Go(func() { t.watch(cancel, patience) })
	return t, nil
}

func (t *tunnel) port() int { return t.listener.Addr().(*net.TCPAddr).Port }

func (t *tunnel) carry() {
	local, err := t.listener.Accept()
	_ = t.listener.Close()
	if err != nil {
		return // closed before rsync connected
	}
	t.mu.Lock()
	t.local = local
	closed := t.closed
	t.mu.Unlock()
	if closed {
		_ = local.Close()
		return
	}
	var both sync.WaitGroup
	both.Go(func() {
		if _, err := copyAll(moving{t, t.remote.stream}, local); err != nil {
			time.AfterFunc(grace, t.close)
		}
		t.remote.closeWrite()
	})
	both.Go(func() {
		if _, err := local.Write(t.remote.greets); err == nil {
			_, _ = copyAll(local, moving{t, t.remote.stream}) // rsync only sees the end; Read keeps the reason
		}
		_ = local.(*net.TCPConn).CloseWrite() // if that fails, close will do it
	})
	both.Wait()
}

// finish ends the tunnel after rsync has ended. The remote end gets a moment to end by itself. The error is its complaint, if it
// has any.
func (t *tunnel) finish() error {
	_ = t.listener.Close() // in case rsync never connected
	select {
	case <-t.pumping:
	case <-time.After(grace):
	}
	t.close()
	t.running.Wait()
	t.mu.Lock()
	defer t.mu.Unlock()
	return errors.Join(t.remote.Close(), t.readErr)
}

// close ends everything at once.
func (t *tunnel) close() {
	t.mu.Lock()
	t.closed = true
	local := t.local
	t.mu.Unlock()
	_ = t.listener.Close()
	if local != nil {
		_ = local.Close()
	}
	_ = t.remote.Close()
}

// watch cancels when nothing has moved for too long. rsync has a timeout of its own, which also makes both ends send keep-alive
// messages, but it counts in seconds, and only after the login.
func (t *tunnel) watch(cancel context.CancelCauseFunc, patience time.Duration) {
	tick := time.NewTicker(max(patience/8, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-t.pumping:
			return
		case <-tick.C:
			if time.Since(t.start)-time.Duration(t.moved.Load()) > patience {
				cancel(silence(patience))
				return
			}
		}
	}
}

// silence returns the error for a remote end that has fallen silent.
func silence(patience time.Duration) error {
	return fmt.Errorf("the connection broke: nothing came or went for %v", patience)
}

// moving records when bytes move.
type moving struct {
	t      *tunnel
	stream io.ReadWriter
}

func (m moving) Write(p []byte) (int, error) { return m.note(m.stream.Write(p)) }

func (m moving) Read(p []byte) (int, error) {
	n, err := m.note(m.stream.Read(p))
	if err != nil && !errors.Is(err, io.EOF) {
		m.t.mu.Lock()
		if !m.t.closed { // else close is the reason
			m.t.readErr = err
		}
		m.t.mu.Unlock()
	}
	return n, err
}

func (m moving) note(n int, err error) (int, error) {
	m.t.moved.Store(int64(time.Since(m.t.start)))
	return n, err
}

// copyAll copies with a buffer as large as rsync's own writes may get.
func copyAll(to io.Writer, from io.Reader) (int64, error) {
	return io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, make([]byte, 256<<10))
}
