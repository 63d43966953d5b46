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

	"google.golang.org/genproto/googleapis/bytestream"
)

// resource names a content in a request of ByteStream.
func (c *Client) resource(parts ...string) string {
	if c.instance != "" {
		parts = append([]string{c.instance}, parts...)
	}
	return strings.Join(parts, "/")
}

// Read writes a content of any size to w. After an error w has a part of it, or other bytes.
func (c *Client) Read(ctx context.Context, d Digest, w io.Writer) error {
	ctx, stop := c.transfer(ctx)
	defer stop()
	ctx, err := c.authenticated(ctx)
	if err != nil {
		return err
	}
	stream, err := c.streams.Read(ctx, &bytestream.ReadRequest{ResourceName: c.resource("blobs", d.SHA256, strconv.FormatInt(d.Size, 10))})
	if err != nil {
		return reason(ctx, err)
	}
	sum, size := sha256.New(), int64(0)
	for {
		answer, err := stream.Recv()
		if err == io.EOF {
			break
		}
		if err != nil {
			return reason(ctx, err)
		}
		if size += int64(len(answer.Data)); size > d.Size {
			return errContent
		}
		sum.Write(answer.Data)
		if _, err := w.Write(answer.Data); err != nil {
			return err
		}
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
	ctx, stop := c.transfer(ctx)
	defer stop()
	ctx, err = c.authenticated(ctx)
	if err != nil {
		return err
	}
	stream, err := c.streams.Write(ctx)
	if err != nil {
		return reason(ctx, err)
	}
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	name := c.resource("uploads", fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:]), "blobs", d.SHA256,
		strconv.FormatInt(d.Size, 10))
	data := make([]byte, min(chunk, d.Size))
	for request := (&bytestream.WriteRequest{ResourceName: name}); !request.FinishWrite; {
		request.Data = data[:min(chunk, d.Size-request.WriteOffset)]
		if _, err := io.ReadFull(source, request.Data); err != nil {
			return fmt.Errorf("%w: %w", errSource, err)
		}
		end := request.WriteOffset + int64(len(request.Data))
		request.FinishWrite = end == d.Size
		err := stream.Send(request)
		if err == io.EOF { // the server wants no more, and its answer says why
			break
		}
		if err != nil {
			return reason(ctx, err)
		}
		if !request.FinishWrite {
			request = &bytestream.WriteRequest{WriteOffset: end}
		}
	}
	answer, err := stream.CloseAndRecv()
	if err != nil {
		return reason(ctx, err)
	}
	if answer.CommittedSize != d.Size && answer.CommittedSize != -1 { // -1: somebody else has stored it meanwhile, compressed
		return fmt.Errorf("the server took %d of %d bytes", answer.CommittedSize, d.Size)
	}
	return nil
}
