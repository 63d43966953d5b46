package transfer

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
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
	reader io.Reader    // of stream, from its start
	Close  func() error // closes the connection; all calls return the error of the first one
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
	f := &daemonConn{stream: stream, reader: stream, Close: sync.OnceValue(stream.Close)}
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
	b := bufio.NewReaderSize(f.stream, 1024)
	first, err := b.ReadSlice('\n') // at most what b holds
	line := string(first)
	f.reader = io.MultiReader(strings.NewReader(line), b)
	switch {
	case err == nil && strings.HasPrefix(line, greeting):
		return nil
	case line != "":
		return fmt.Errorf("the remote end is not an rsync daemon, it says %q", strings.TrimSuffix(line, "\n"))
	case errors.Is(err, io.EOF):
		return errors.New("the remote end ended without an answer")
	}
	return fmt.Errorf("the remote end did not answer: %w", err)
}

// closeWrite ends the stream to the remote end, if the connection supports that.
func (f *daemonConn) closeWrite() {
	if half, ok := f.stream.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite() // if that fails, Close will do it
	}
}
