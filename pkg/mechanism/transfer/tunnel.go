package transfer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// grace is how long one direction may go on when the other has failed or rsync has ended: so that last messages arrive.
const grace = time.Second

// A tunnel carries one connection from a port of this machine to the remote end.
type tunnel struct {
	remote   *daemonConn
	listener net.Listener
	close    context.CancelFunc // ends everything at once
	idle     *time.Timer        // ends the transfer; set back whenever a byte moves
	pumped   chan struct{}      // closed when both directions are at their end
	readErr  error              // of the remote end; valid when pumped is closed
}

// open listens, and carries the first connection. It calls cancel if no byte moves within patience. The tunnel closes when ctx
// is done.
func open(ctx context.Context, cancel context.CancelCauseFunc, f *daemonConn, patience time.Duration) (*tunnel, error) {
	patience = cmp.Or(patience, idlePatience)
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	t := &tunnel{remote: f, listener: l, pumped: make(chan struct{})}
	// rsync has a timeout of its own, which also makes both ends send keep-alive messages, but it counts in seconds, and only after the
	// login.
	t.idle = time.AfterFunc(patience, func() { cancel(silence(patience)) })
	ctx, t.close = context.WithCancel(ctx)
	context.AfterFunc(ctx, func() {
		_ = l.Close()
		_ = f.Close()
	})
	go func() {
		defer close(t.pumped)
		t.carry(ctx, patience)
	}()
	return t, nil
}

func (t *tunnel) port() int { return t.listener.Addr().(*net.TCPAddr).Port }

func (t *tunnel) carry(ctx context.Context, patience time.Duration) {
	local, err := t.listener.Accept()
	_ = t.listener.Close()
	if err != nil {
		return // closed before rsync connected
	}
	context.AfterFunc(ctx, func() { _ = local.Close() })
	remote := moving{t, func() { t.idle.Reset(patience) }, ctx}
	var both sync.WaitGroup
	both.Go(func() {
		if _, err := copyAll(remote, local); err != nil {
			time.AfterFunc(grace, t.close)
		}
		t.remote.closeWrite()
	})
	both.Go(func() {
		_, _ = copyAll(local, remote)         // rsync only sees the end; Read keeps the reason
		_ = local.(*net.TCPConn).CloseWrite() // if that fails, close will do it
	})
	both.Wait()
}

// finish ends the tunnel after rsync has ended. The remote end gets a moment to end by itself. The error is its complaint, if it
// has any.
func (t *tunnel) finish() error {
	_ = t.listener.Close() // in case rsync never connected
	select {
	case <-t.pumped:
	case <-time.After(grace):
	}
	t.close()
	complaint := t.remote.Close()
	<-t.pumped
	t.idle.Stop()
	return errors.Join(complaint, t.readErr)
}

// silence returns the error for a remote end that has fallen silent.
func silence(patience time.Duration) error {
	return fmt.Errorf("the connection broke: nothing came or went for %v", patience)
}

// moving is the stream to the remote end. It says when bytes move.
type moving struct {
	*tunnel
	moved func()
	ctx   context.Context
}

func (m moving) Write(p []byte) (int, error) {
	n, err := m.remote.stream.Write(p)
	m.moved()
	return n, err
}

func (m moving) Read(p []byte) (int, error) {
	n, err := m.remote.reader.Read(p)
	m.moved()
	if err != nil && !errors.Is(err, io.EOF) && m.ctx.Err() == nil { // else close is the reason
		m.readErr = err
	}
	return n, err
}

// copyAll copies with a buffer as large as rsync's own writes may get.
func copyAll(to io.Writer, from io.Reader) (int64, error) {
	return io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, make([]byte, 256<<10))
}
