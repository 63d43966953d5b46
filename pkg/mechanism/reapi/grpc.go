package reapi

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"slipway.build/pkg/mechanism/reapi/internal/wire"
)

// A Code is a status code of gRPC: https://grpc.io/docs/guides/status-codes/.
type Code int

const (
	InvalidArgument   Code = 3
	NotFound          Code = 5
	PermissionDenied  Code = 7
	ResourceExhausted Code = 8
	Unimplemented     Code = 12
	Unavailable       Code = 14
	Unauthenticated   Code = 16
)

var codeNames = map[Code]string{
	1: "canceled", 2: "unknown error", InvalidArgument: "invalid argument", 4: "deadline exceeded", NotFound: "not found",
	6: "already exists", PermissionDenied: "permission denied", ResourceExhausted: "resource exhausted", 9: "failed precondition",
	10: "aborted", 11: "out of range", Unimplemented: "not implemented", 13: "internal error", Unavailable: "unavailable",
	15: "data loss", Unauthenticated: "not authenticated",
}

// A StatusError is an answer of a server that is not OK.
type StatusError struct {
	Code    Code
	Message string // the server's
}

func (e *StatusError) Error() string {
	name := codeNames[e.Code]
	if name == "" {
		name = "status " + strconv.Itoa(int(e.Code))
	}
	if e.Message == "" {
		return "the server says: " + name
	}
	return "the server says: " + name + ": " + e.Message
}

// IsCode reports whether an error is a server's answer with a code.
func IsCode(err error, code Code) bool {
	e, ok := errors.AsType[*StatusError](err)
	return ok && e.Code == code
}

// A call is a request whose answer is read by messages, or by pieces of them.
type call struct {
	answer *http.Response
	cancel context.CancelCauseFunc
	ctx    context.Context
	watch  *time.Timer
	stall  time.Duration
}

var errStalled = errors.New("the server does not answer")

// call begins a request. It is given up if nothing moves for as long as the client waits.
func (c *Client) call(ctx context.Context, method string, body io.Reader) (*call, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	r := &call{cancel: cancel, ctx: ctx, stall: c.patience}
	r.watch = time.AfterFunc(c.patience, func() { cancel(errStalled) })
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+"/"+method, &moving{r, body})
	if err != nil {
		r.close()
		return nil, err
	}
	request.Header = http.Header{
		"Content-Type": {"application/grpc"},
		"Te":           {"trailers"},
		"User-Agent":   {c.agent},
	}
	if c.credentials != nil {
		headers, err := c.credentials(ctx)
		if err != nil {
			r.close()
			return nil, err
		}
		for name, values := range headers {
			request.Header[http.CanonicalHeaderKey(name)] = values
		}
	}
	if r.answer, err = c.http.Do(request); err != nil {
		err = r.cause(err)
		r.close()
		return nil, err
	}
	r.moved()
	if r.answer.StatusCode != http.StatusOK {
		err := httpError(r.answer)
		r.close()
		return nil, err
	}
	return r, nil
}

// moving is a request's body, which shows that the server still reads it.
type moving struct {
	*call
	io.Reader
}

func (m *moving) Read(p []byte) (int, error) {
	n, err := m.Reader.Read(p)
	m.moved()
	return n, err
}

func (r *call) moved() { r.watch.Reset(r.stall) }

func (r *call) close() {
	r.watch.Stop()
	r.cancel(context.Canceled)
	if r.answer != nil {
		_ = r.answer.Body.Close()
	}
}

// cause returns why a request ended: what the library says of a canceled one does not name the reason. It leaves out the method's URL.
func (r *call) cause(err error) error {
	if errors.Is(context.Cause(r.ctx), errStalled) {
		return fmt.Errorf("%w for %v", errStalled, r.stall)
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// next returns the next message of the answer, or io.EOF if the server says that all went well.
func (r *call) next() ([]byte, error) {
	message, err := wire.ReadFrame(r.answer.Body)
	if err == nil {
		r.moved()
		return message, nil
	}
	if err != io.EOF {
		return nil, r.cause(err)
	}
	return nil, r.end()
}

// readSize is how much of a content, in bytes, is held between receiving and writing it: small enough for the processor's cache, and
// for many transfers at once.
const readSize = 128 << 10

// readers are used again, since each has a buffer.
var readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, readSize) }}

// data calls use for the value of a field of all messages, in pieces that are valid until use returns. It fails unless the server says
// that all went well.
func (r *call) data(field wire.Field, use func(piece []byte) error) error {
	b := readers.Get().(*bufio.Reader)
	defer readers.Put(b)
	b.Reset(r.answer.Body)
	defer b.Reset(nil)
	var failed error // of use, which is not the connection's
	unmoved := 0     // bytes
	for {
		err := wire.ReadBytes(b, field, func(piece []byte) error {
			if unmoved += len(piece); unmoved >= readSize/2 { // a byte now and then is no answer
				r.moved()
				unmoved = 0
			}
			failed = use(piece)
			return failed
		})
		switch {
		case failed != nil:
			return failed
		case err == io.EOF:
			if err = r.end(); err == io.EOF {
				return nil
			}
			return err
		case err != nil:
			return r.cause(err)
		}
	}
}

// end returns what the server says at the end of an answer: io.EOF if all went well.
func (r *call) end() error {
	status := r.answer.Trailer.Get("Grpc-Status")
	text := r.answer.Trailer.Get("Grpc-Message")
	if status == "" { // an answer without messages has only headers
		status, text = r.answer.Header.Get("Grpc-Status"), r.answer.Header.Get("Grpc-Message")
	}
	code, err := strconv.Atoi(status)
	switch {
	case err != nil:
		return fmt.Errorf("the answer has no status: %w", wire.ErrMessage)
	case code == 0:
		return io.EOF
	}
	if plain, err := url.PathUnescape(text); err == nil {
		text = plain
	}
	return &StatusError{Code(code), text}
}

// httpError is of an answer that did not come from a server of gRPC, but of one before it.
func httpError(answer *http.Response) error {
	code := Code(2)
	switch answer.StatusCode {
	case http.StatusUnauthorized:
		code = Unauthenticated
	case http.StatusForbidden:
		code = PermissionDenied
	case http.StatusNotFound:
		code = Unimplemented
	}
	return &StatusError{code, "HTTP status " + answer.Status}
}

// unary sends one message and returns the one that answers it.
func (c *Client) unary(ctx context.Context, method string, request []byte) ([]byte, error) {
	var answer []byte
	err := c.again(ctx, func() error {
		ctx, cancel := context.WithTimeout(ctx, c.patience)
		defer cancel()
		call, err := c.call(ctx, method, strings.NewReader(string(wire.Frame(request))))
		if err != nil {
			return err
		}
		defer call.close()
		if answer, err = call.next(); err != nil {
			if err == io.EOF {
				return wire.ErrMessage
			}
			return err
		}
		if _, err := call.next(); err != io.EOF {
			return errors.Join(err, wire.ErrMessage)
		}
		return nil
	})
	return answer, err
}

// attempts is how often a request is made that fails for a reason that may pass.
const attempts = 3

// again repeats a request that a server was too busy for, or whose connection broke.
func (c *Client) again(ctx context.Context, f func() error) error {
	for n := 1; ; n++ {
		err := f()
		if err == nil || n == attempts || ctx.Err() != nil || !passing(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(time.Duration(n) * 100 * time.Millisecond):
		}
	}
}

// passing reports whether the same request may be answered if it is made again. One that stalled is not made again: it has cost enough.
func passing(err error) bool {
	if e, ok := errors.AsType[*StatusError](err); ok {
		return e.Code == Unavailable || e.Code == ResourceExhausted
	}
	return !errors.Is(err, errStalled) && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, errContent) &&
		!errors.Is(err, errSource)
}
