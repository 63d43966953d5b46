package reapi

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync/atomic"

	"slipway.build/pkg/mechanism/reapi/internal/wire"
)

// Read writes a content of any size to w. After an error w has a part of it, or other bytes.
func (c *Client) Read(ctx context.Context, d Digest, w io.Writer) error {
	request := wire.AppendString(nil, 1, c.resource("blobs", d.SHA256, strconv.FormatInt(d.Size, 10)))
	call, err := c.call(ctx, byteStream+"Read", strings.NewReader(string(wire.Frame(request))))
	if err != nil {
		return err
	}
	defer call.close()
	sum, size := sha256.New(), int64(0)
	err = call.data(10, func(piece []byte) error {
		if size += int64(len(piece)); size > d.Size {
			return errContent
		}
		sum.Write(piece)
		_, err := w.Write(piece)
		return err
	})
	if err != nil {
		return err
	}
	if size != d.Size || hex.EncodeToString(sum.Sum(nil)) != d.SHA256 {
		return errContent
	}
	return nil
}

// chunk is how many bytes of a content a message of a stream has.
const chunk = 1 << 20

// Write stores a content of any size. Open returns its bytes; it is called again if a connection breaks.
func (c *Client) Write(ctx context.Context, d Digest, open func() (io.ReadCloser, error)) error {
	return c.again(ctx, func() error { return c.write(ctx, d, open) })
}

func (c *Client) write(ctx context.Context, d Digest, open func() (io.ReadCloser, error)) error {
	source, err := open()
	if err != nil {
		return fmt.Errorf("%w: %w", errSource, err)
	}
	defer func() { _ = source.Close() }()
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	name := c.resource("uploads", fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:]), "blobs", d.SHA256,
		strconv.FormatInt(d.Size, 10))
	body := &upload{name: name, digest: d, source: source}
	call, err := c.call(ctx, byteStream+"Write", body)
	if err != nil {
		if failed := body.failed.Load(); failed != nil {
			return *failed
		}
		return err
	}
	defer call.close()
	answer, err := call.next()
	if err != nil {
		if err == io.EOF {
			err = wire.ErrMessage
		}
		return err
	}
	committed := int64(0)
	if err := wire.Fields(answer, func(field wire.Field, _ []byte, number uint64) error {
		if field == 1 {
			committed = int64(number)
		}
		return nil
	}); err != nil {
		return err
	}
	if committed != d.Size && committed != -1 { // -1: somebody else has stored it meanwhile, compressed
		return fmt.Errorf("the server took %d of %d bytes", committed, d.Size)
	}
	return drain(call)
}

// An upload is the body of a request of ByteStream.Write: a content in messages.
type upload struct {
	name    string // of the resource; only the first message has it
	digest  Digest
	source  io.Reader
	offset  int64
	pending []byte
	ended   bool
	failed  atomic.Pointer[error] // set by the transport, which may still read after the call has ended
}

func (u *upload) Read(p []byte) (int, error) {
	if len(u.pending) == 0 {
		if u.ended {
			return 0, io.EOF
		}
		if err := u.fill(); err != nil {
			err = fmt.Errorf("%w: %w", errSource, err)
			u.failed.Store(&err)
			return 0, err
		}
	}
	n := copy(p, u.pending)
	u.pending = u.pending[n:]
	return n, nil
}

func (u *upload) fill() error {
	data := make([]byte, min(chunk, u.digest.Size-u.offset))
	if _, err := io.ReadFull(u.source, data); err != nil {
		return err
	}
	message := wire.AppendInt(wire.AppendString(nil, 1, u.name), 2, u.offset)
	u.name = ""
	u.offset += int64(len(data))
	if u.offset == u.digest.Size {
		u.ended = true
		message = wire.AppendInt(message, 3, 1)
	}
	u.pending = wire.Frame(wire.AppendBytes(message, 10, data))
	return nil
}
