package reapi

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	remote "github.com/bazelbuild/remote-apis/build/bazel/remote/execution/v2"
	"google.golang.org/genproto/googleapis/bytestream"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	tlscredentials "google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// A Client talks to one server. It may be used by several goroutines.
type Client struct {
	conn         *grpc.ClientConn
	capabilities remote.CapabilitiesClient
	results      remote.ActionCacheClient
	contents     remote.ContentAddressableStorageClient
	streams      bytestream.ByteStreamClient

	instance    string
	credentials func(context.Context) (http.Header, error)
	patience    time.Duration
	moved       atomic.Int64 // bytes that were read from and written to connections
}

// Options say how to reach a server.
type Options struct {
	// URL is grpc://HOST:PORT/INSTANCE, or grpcs:// with TLS. The instance may be missing.
	URL string
	TLS *tls.Config // of grpcs://; nil trusts what the machine trusts

	// Credentials, if not nil, returns headers for each request.
	Credentials func(context.Context) (http.Header, error)

	Patience time.Duration // how long a request, or 64 KiB of a transfer, may take; 0 is ten seconds
	Agent    string        // what the User-Agent header begins with
}

// ErrUser says that a URL has credentials in it.
var ErrUser = errors.New("the URL holds a user or a password")

// New returns a client. It does not connect yet. An error says what is wrong with the URL.
func New(o Options) (*Client, error) {
	u, err := url.Parse(o.URL)
	if err != nil {
		return nil, errors.New("not a URL such as grpcs://cache.example/main")
	}
	var security tlscredentials.TransportCredentials
	var port string
	switch {
	case u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("not a URL such as grpcs://cache.example/main")
	case !validPort(u):
		return nil, fmt.Errorf("the port is %q, want a number from 1 to 65535", u.Port())
	case u.User != nil: // others could read it, in a list of processes for example
		return nil, ErrUser
	case u.Scheme == "grpc":
		security, port = insecure.NewCredentials(), "80"
	case u.Scheme == "grpcs":
		security, port = tlscredentials.NewTLS(o.TLS), "443"
	default:
		return nil, fmt.Errorf("the scheme is %q, want grpc or grpcs", u.Scheme)
	}
	c := &Client{instance: strings.Trim(u.Path, "/"), credentials: o.Credentials, patience: cmp.Or(o.Patience, 10*time.Second)}
	c.conn, err = grpc.NewClient("passthrough:///"+net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), port)),
		grpc.WithTransportCredentials(security),
		grpc.WithAuthority(u.Host),
		grpc.WithUserAgent(o.Agent),
		grpc.WithContextDialer(c.dial),
		grpc.WithNoProxy(),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: pause, Multiplier: 1, MaxDelay: pause},
			MinConnectTimeout: c.patience,
		}),
	)
	if err != nil {
		return nil, err
	}
	c.capabilities = remote.NewCapabilitiesClient(c.conn)
	c.results = remote.NewActionCacheClient(c.conn)
	c.contents = remote.NewContentAddressableStorageClient(c.conn)
	c.streams = bytestream.NewByteStreamClient(c.conn)
	return c, nil
}

func validPort(u *url.URL) bool {
	port := u.Port()
	if port == "" {
		return !strings.HasSuffix(u.Host, ":")
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0
}

// Close ends the connection.
func (c *Client) Close() { _ = c.conn.Close() }

// Capabilities are what a server says of itself.
type Capabilities struct {
	SHA256 bool // it takes digests by SHA-256
	Update bool // this client may store results
}

// Capabilities asks the server what it can do.
func (c *Client) Capabilities(ctx context.Context) (*Capabilities, error) {
	answer, err := unary(ctx, c, c.capabilities.GetCapabilities, &remote.GetCapabilitiesRequest{InstanceName: c.instance})
	if err != nil {
		return nil, err
	}
	cache := answer.GetCacheCapabilities()
	return &Capabilities{
		SHA256: slices.Contains(cache.GetDigestFunctions(), remote.DigestFunction_SHA256),
		Update: cache.GetActionCacheUpdateCapabilities().GetUpdateEnabled(),
	}, nil
}

// Result returns what the server keeps for an action, or nil if it keeps nothing.
func (c *Client) Result(ctx context.Context, action Digest) (*Result, error) {
	answer, err := unary(ctx, c, c.results.GetActionResult,
		&remote.GetActionResultRequest{InstanceName: c.instance, ActionDigest: action.message(), InlineStdout: true})
	if IsCode(err, NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r, err := parseResult(answer)
	if err != nil || len(r.Stdout) > 0 || answer.StdoutDigest.GetSizeBytes() == 0 {
		return r, err
	}
	stdout, err := parseDigest(answer.StdoutDigest) // the server may leave out the bytes
	if err != nil {
		return nil, err
	}
	if stdout.Size > maxMessage { // it was stored in a message
		return nil, errMessage
	}
	var data bytes.Buffer
	err = c.Read(ctx, stdout, &data)
	if IsCode(err, NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r.Stdout = data.Bytes()
	return r, nil
}

// StoreResult keeps the result of an action. Its files must be there.
func (c *Client) StoreResult(ctx context.Context, action Digest, r *Result) error {
	request := &remote.UpdateActionResultRequest{InstanceName: c.instance, ActionDigest: action.message(), ActionResult: r.message()}
	if size := proto.Size(request); size > maxMessage {
		return fmt.Errorf("the result has %d bytes, a server takes %d", size, maxMessage)
	}
	_, err := unary(ctx, c, c.results.UpdateActionResult, request)
	return err
}

// missingAtOnce is how many contents are asked for at once. Their digests fit into a message.
const missingAtOnce = 20000

// Missing returns those contents that the server does not have.
func (c *Client) Missing(ctx context.Context, digests []Digest) ([]Digest, error) {
	var missing []Digest
	for some := range slices.Chunk(digests, missingAtOnce) {
		answer, err := unary(ctx, c, c.contents.FindMissingBlobs,
			&remote.FindMissingBlobsRequest{InstanceName: c.instance, BlobDigests: messages(some)})
		if err != nil {
			return nil, err
		}
		for _, m := range answer.MissingBlobDigests {
			d, err := parseDigest(m)
			if err != nil {
				return nil, err
			}
			missing = append(missing, d)
		}
	}
	return missing, nil
}

// MaxBatch is the size, in bytes, of contents that may travel together.
const MaxBatch = 3 << 20

// perContent is more than a batch's message needs for a content besides its bytes.
const perContent = 256

// Batches divides contents, by their sizes, into those that may travel together, and those that travel alone. It keeps their order.
func Batches[T any](contents []T, size func(T) int64) (together [][]T, alone []T) {
	var batch []T
	total := int64(0)
	for _, content := range contents {
		n := size(content) + perContent
		switch {
		case n > MaxBatch/4:
			alone = append(alone, content)
			continue
		case total+n > MaxBatch && len(batch) > 0:
			together = append(together, batch)
			batch, total = nil, 0
		}
		batch = append(batch, content)
		total += n
	}
	if len(batch) > 0 {
		together = append(together, batch)
	}
	return together, alone
}

// ReadBatch returns contents that are together no larger than MaxBatch. Those that the server does not have, or has with other bytes, are
// missing from the answer.
func (c *Client) ReadBatch(ctx context.Context, digests []Digest) (map[Digest][]byte, error) {
	answer, err := unary(ctx, c, c.contents.BatchReadBlobs,
		&remote.BatchReadBlobsRequest{InstanceName: c.instance, Digests: messages(digests)})
	if err != nil {
		return nil, err
	}
	contents := make(map[Digest][]byte, len(digests))
	for _, content := range answer.Responses {
		d, err := parseDigest(content.Digest)
		if err != nil {
			return nil, err
		}
		if content.Status.GetCode() == 0 && DigestOf(content.Data) == d {
			contents[d] = content.Data
		}
	}
	return contents, nil
}

// WriteBatch stores contents that are together no larger than MaxBatch.
func (c *Client) WriteBatch(ctx context.Context, contents [][]byte) error {
	request := &remote.BatchUpdateBlobsRequest{InstanceName: c.instance}
	for _, data := range contents {
		request.Requests = append(request.Requests,
			&remote.BatchUpdateBlobsRequest_Request{Digest: DigestOf(data).message(), Data: data})
	}
	answer, err := unary(ctx, c, c.contents.BatchUpdateBlobs, request)
	if err != nil {
		return err
	}
	for _, content := range answer.Responses {
		if content.Status.GetCode() != 0 {
			return &StatusError{status.FromProto(content.Status)}
		}
	}
	if len(answer.Responses) != len(contents) {
		return fmt.Errorf("the server took %d of %d contents", len(answer.Responses), len(contents))
	}
	return nil
}
