package transfer

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

const (
	greetPatience = 10 * time.Second // for a connection and a greeting
	idlePatience  = 30 * time.Second // for any byte, in either direction
)

// greeting is the prefix of the first line of every rsync daemon.
const greeting = "@RSYNCD:"

// A daemonConn is a connection to a daemon that has greeted.
type daemonConn struct {
	stream io.ReadWriteCloser
	greets []byte // what was read already

	once     sync.Once
	closeErr error
}

// reach dials and waits for the greeting. It closes the connection when ctx is done, and calls cancel with an error if the
// greeting takes too long.
func (r *Remote) reach(ctx context.Context, cancel context.CancelCauseFunc) (*daemonConn, error) {
	patience := cmp.Or(r.Patience, greetPatience)
	late := time.AfterFunc(patience, func() {
		cancel(fmt.Errorf("the remote end did not answer within %v", patience))
	})
	defer late.Stop()
	stream, err := r.Dial(ctx)
	if err != nil {
		return nil, cmp.Or(context.Cause(ctx), fmt.Errorf("connect: %w", err))
	}
	f := &daemonConn{stream: stream}
	stop := context.AfterFunc(ctx, func() { _ = f.Close() })
	if err := f.awaitGreeting(); err != nil {
		stop()
		complaint := f.Close()
		if cause := context.Cause(ctx); cause != nil {
			return nil, cause
		}
		if complaint != nil {
			err = fmt.Errorf("%w: %s", err, r.hidden(complaint.Error()))
		}
		return nil, err
	}
	return f, nil
}

// awaitGreeting reads the first line. It gives a better error than rsync if the other side is not a daemon.
func (f *daemonConn) awaitGreeting() error {
	chunk := make([]byte, 1024)
	for {
		n, err := f.stream.Read(chunk)
		f.greets = append(f.greets, chunk[:n]...)
		line, _, whole := bytes.Cut(f.greets, []byte("\n"))
		switch {
		case whole && bytes.HasPrefix(line, []byte(greeting)):
			return nil // the next read returns the error again
		case whole, len(line) >= len(chunk), err != nil && len(line) > 0:
			return fmt.Errorf("the remote end is not an rsync daemon, it says %q", line)
		case errors.Is(err, io.EOF):
			return errors.New("the remote end ended without an answer")
		case err != nil:
			return fmt.Errorf("the remote end did not answer: %w", err)
		}
	}
}

// Close closes the connection. All calls return the error of the first one.
func (f *daemonConn) Close() error {
	f.once.Do(func() { f.closeErr = f.stream.Close() })
	return f.closeErr
}

// closeWrite ends the stream to the remote end, if the connection supports that.
func (f *daemonConn) closeWrite() {
	if half, ok := f.stream.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite() // if that fails, Close will do it
	}
}
