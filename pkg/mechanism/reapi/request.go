package reapi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// Codes of gRPC's statuses: https://grpc.io/docs/guides/status-codes/.
const (
	NotFound         = codes.NotFound
	PermissionDenied = codes.PermissionDenied
	Unauthenticated  = codes.Unauthenticated
)

// IsCode reports whether an error is a server's answer with a code.
func IsCode(err error, code codes.Code) bool { return status.Code(err) == code }

// A StatusError is an answer that is not OK, or the reason why there is no answer.
type StatusError struct{ status *status.Status }

// GRPCStatus returns the status.
func (e *StatusError) GRPCStatus() *status.Status { return e.status }

// inWords separates the words in the name of a code: PermissionDenied.
var inWords = regexp.MustCompile(`([a-z])([A-Z])`)

func (e *StatusError) Error() string {
	text := e.status.Message()
	if quoted, found := strings.CutPrefix(text, "connection error: desc = "); found { // the server has said nothing
		if plain, err := strconv.Unquote(quoted); err == nil {
			return strings.TrimPrefix(plain, "transport: Error while dialing: ")
		}
	}
	name := strings.ToLower(inWords.ReplaceAllString(e.status.Code().String(), "$1 $2"))
	if text == "" {
		return "the server says: " + name
	}
	return "the server says: " + name + ": " + text
}

var (
	// errStalled says that too little has moved for as long as a client waits.
	errStalled = errors.New("the server does not answer")

	// errMessage says that an answer has fields without sense.
	errMessage = errors.New("the answer is no message of the protocol")

	// errContent says that the server has other bytes than those that were asked for.
	errContent = errors.New("the server's bytes have another digest")

	// errSource says that a content cannot be read here.
	errSource = errors.New("cannot be read")
)

// maxMessage is the size, in bytes, of the largest message that is sent or taken. Servers have this limit by default.
const maxMessage = 4 << 20

// unary makes a request of one message that is answered by one message.
func unary[Request, Answer any](ctx context.Context, c *Client,
	method func(context.Context, *Request, ...grpc.CallOption) (*Answer, error), request *Request) (answer *Answer, err error) {
	err = c.again(ctx, func() error {
		ctx, cancel := context.WithTimeoutCause(ctx, c.patience, c.stalled())
		defer cancel()
		ctx, err := c.authenticated(ctx)
		if err != nil {
			return err
		}
		answer, err = method(ctx, request)
		return reason(ctx, err)
	})
	return answer, err
}

// authenticated adds the credentials to a request.
func (c *Client) authenticated(ctx context.Context) (context.Context, error) {
	if c.credentials == nil {
		return ctx, nil
	}
	headers, err := c.credentials(ctx)
	for name, values := range headers {
		for _, value := range values {
			ctx = metadata.AppendToOutgoingContext(ctx, name, value)
		}
	}
	return ctx, err
}

func (c *Client) stalled() error { return fmt.Errorf("%w for %v", errStalled, c.patience) }

// reason returns why a request failed: because its context ended, or what the status says.
func reason(ctx context.Context, err error) error {
	s, ok := status.FromError(err)
	switch {
	case err == nil || !ok:
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return &StatusError{s}
}

// attempts is how often a request is made that fails for a reason that may pass, and pause the time between them, which grows.
const (
	attempts = 3
	pause    = 100 * time.Millisecond
)

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
		case <-time.After(time.Duration(n) * pause):
		}
	}
}

// passing reports whether the same request may be answered if it is made again. One that stalled is not made again: it has cost enough.
func passing(err error) bool {
	switch status.Code(err) {
	case codes.Unavailable, codes.ResourceExhausted, codes.Internal: // Internal is a stream that ends without a status
		return true
	}
	return false
}

// least is how many bytes have to move for a transfer to go on while a client waits.
const least = 64 << 10

// transfer returns a context for a transfer. It ends when the connection has moved too little for too long.
func (c *Client) transfer(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		tick := time.NewTicker(c.patience / 8)
		defer tick.Stop()
		since, moved := time.Now(), c.moved.Load()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			switch now := c.moved.Load(); {
			case now-moved >= least:
				since, moved = time.Now(), now
			case time.Since(since) >= c.patience:
				cancel(c.stalled())
			}
		}
	}()
	return ctx, func() { cancel(nil) }
}

// dial connects to a server, without a proxy.
func (c *Client) dial(ctx context.Context, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: c.patience}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return &counted{conn, &c.moved}, nil
}

// A counted connection adds to the number of bytes that have moved.
type counted struct {
	net.Conn
	moved *atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.moved.Add(int64(n))
	return n, err
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.moved.Add(int64(n))
	return n, err
}
