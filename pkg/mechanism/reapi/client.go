package reapi

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"slipway.build/pkg/mechanism/reapi/internal/wire"
)

// A Client talks to one server. It may be used by several goroutines.
type Client struct {
	base        string // the URL without the instance
	instance    string
	agent       string
	http        *http.Client
	credentials func(context.Context) (http.Header, error)
	patience    time.Duration
}

// Options say how to reach a server.
type Options struct {
	// URL is grpc://HOST:PORT/INSTANCE, or grpcs:// with TLS. The instance may be missing.
	URL string
	TLS *tls.Config // of grpcs://; nil trusts what the machine trusts

	// Credentials, if not nil, returns headers for each request.
	Credentials func(context.Context) (http.Header, error)

	Patience time.Duration // how long a request, or 64 KiB of a content that is read, may take; 0 is ten seconds
	Agent    string        // the User-Agent header
}

// connections is how many connections there are to a server, so that one large transfer does not delay small requests.
const connections = 4

// ErrUser says that a URL has credentials in it.
var ErrUser = errors.New("the URL holds a user or a password")

// New returns a client. It does not connect yet. An error says what is wrong with the URL.
func New(o Options) (*Client, error) {
	u, err := url.Parse(o.URL)
	if err != nil {
		return nil, errors.New("not a URL such as grpcs://cache.example/main")
	}
	c := &Client{instance: strings.Trim(u.Path, "/"), agent: o.Agent, credentials: o.Credentials, patience: o.Patience}
	if c.patience == 0 {
		c.patience = 10 * time.Second
	}
	t := &http.Transport{
		Protocols:           new(http.Protocols),
		TLSClientConfig:     o.TLS,
		MaxIdleConnsPerHost: connections,
		DialContext:         (&net.Dialer{Timeout: c.patience}).DialContext,
		TLSHandshakeTimeout: c.patience,
		DisableCompression:  true,
		ReadBufferSize:      64 << 10,
		WriteBufferSize:     64 << 10,
		HTTP2: &http.HTTP2Config{SendPingTimeout: c.patience, PingTimeout: c.patience, MaxReadFrameSize: 1 << 20,
			MaxReceiveBufferPerStream: 4 << 20},
	}
	switch {
	case u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("not a URL such as grpcs://cache.example/main")
	case !validPort(u):
		return nil, fmt.Errorf("the port is %q, want a number from 1 to 65535", u.Port())
	case u.User != nil: // others could read it, in a list of processes for example
		return nil, ErrUser
	case u.Scheme == "grpc":
		t.Protocols.SetUnencryptedHTTP2(true)
		c.base = "http://" + u.Host
	case u.Scheme == "grpcs":
		t.Protocols.SetHTTP2(true)
		c.base = "https://" + u.Host
	default:
		return nil, fmt.Errorf("the scheme is %q, want grpc or grpcs", u.Scheme)
	}
	c.http = &http.Client{Transport: t}
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

// Close ends idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Capabilities are what a server says of itself.
type Capabilities struct {
	SHA256 bool // it takes digests by SHA-256
	Update bool // this client may store results
}

const (
	executionService = "build.bazel.remote.execution.v2."
	byteStream       = "google.bytestream.ByteStream/"
)

// Capabilities asks the server what it can do.
func (c *Client) Capabilities(ctx context.Context) (*Capabilities, error) {
	answer, err := c.unary(ctx, executionService+"Capabilities/GetCapabilities", wire.AppendString(nil, 1, c.instance))
	if err != nil {
		return nil, err
	}
	caps := new(Capabilities)
	err = wire.Fields(answer, func(field wire.Field, value []byte, _ uint64) error {
		if field != 1 { // cache_capabilities
			return nil
		}
		return wire.Fields(value, func(field wire.Field, value []byte, number uint64) error {
			switch field {
			case 1: // digest_functions: numbers, packed or not; SHA256 is 1
				caps.SHA256 = caps.SHA256 || number == 1
				for len(value) > 0 {
					function, n := protowire.ConsumeVarint(value)
					if n < 0 {
						return wire.ErrMessage
					}
					caps.SHA256 = caps.SHA256 || function == 1
					value = value[n:]
				}
			case 2:
				return wire.Fields(value, func(field wire.Field, _ []byte, number uint64) error {
					caps.Update = caps.Update || field == 1 && number != 0
					return nil
				})
			}
			return nil
		})
	})
	return caps, err
}

// Result returns what the server keeps for an action, or nil if it keeps nothing.
func (c *Client) Result(ctx context.Context, action Digest) (*Result, error) {
	request := wire.AppendBytes(wire.AppendString(nil, 1, c.instance), 2, action.marshal())
	request = wire.AppendInt(request, 3, 1) // inline_stdout
	answer, err := c.unary(ctx, executionService+"ActionCache/GetActionResult", request)
	if IsCode(err, NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r, stdout, err := parseResult(answer)
	if err != nil || len(r.Stdout) > 0 || stdout.Size == 0 {
		return r, err
	}
	if stdout.Size > wire.Max { // it was stored in a message
		return nil, wire.ErrMessage
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
	request := wire.AppendBytes(wire.AppendString(nil, 1, c.instance), 2, action.marshal())
	request = wire.AppendBytes(request, 3, r.marshal())
	if len(request) > wire.Max {
		return fmt.Errorf("the result has %d bytes, a server takes %d", len(request), wire.Max)
	}
	_, err := c.unary(ctx, executionService+"ActionCache/UpdateActionResult", request)
	return err
}

// missingAtOnce is how many contents are asked for at once. Their digests fit into a message.
const missingAtOnce = 20000

// Missing returns those contents that the server does not have.
func (c *Client) Missing(ctx context.Context, digests []Digest) ([]Digest, error) {
	var missing []Digest
	for len(digests) > 0 {
		n := min(len(digests), missingAtOnce)
		request := wire.AppendString(nil, 1, c.instance)
		for _, d := range digests[:n] {
			request = wire.AppendBytes(request, 2, d.marshal())
		}
		digests = digests[n:]
		answer, err := c.unary(ctx, executionService+"ContentAddressableStorage/FindMissingBlobs", request)
		if err != nil {
			return nil, err
		}
		err = wire.Fields(answer, func(field wire.Field, value []byte, _ uint64) error {
			if field != 2 {
				return nil
			}
			d, err := parseDigest(value)
			missing = append(missing, d)
			return err
		})
		if err != nil {
			return nil, err
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
	request := wire.AppendString(nil, 1, c.instance)
	for _, d := range digests {
		request = wire.AppendBytes(request, 2, d.marshal())
	}
	answer, err := c.unary(ctx, executionService+"ContentAddressableStorage/BatchReadBlobs", request)
	if err != nil {
		return nil, err
	}
	contents := make(map[Digest][]byte, len(digests))
	err = wire.Fields(answer, func(field wire.Field, value []byte, _ uint64) error {
		if field != 1 {
			return nil
		}
		d, data, code, err := parseContent(value)
		if err == nil && code == 0 && DigestOf(data) == d {
			contents[d] = data
		}
		return err
	})
	return contents, err
}

// parseContent reads a BatchReadBlobsResponse.Response.
func parseContent(message []byte) (d Digest, data []byte, code Code, err error) {
	compressed := false
	err = wire.Fields(message, func(field wire.Field, value []byte, number uint64) (err error) {
		switch field {
		case 1:
			d, err = parseDigest(value)
		case 2:
			data = value
		case 3:
			code, _, err = parseStatus(value)
		case 4:
			compressed = number != 0
		}
		return err
	})
	if compressed {
		data = nil // nobody asked for that
	}
	return d, data, code, err
}

// WriteBatch stores contents that are together no larger than MaxBatch.
func (c *Client) WriteBatch(ctx context.Context, contents [][]byte) error {
	request := wire.AppendString(nil, 1, c.instance)
	for _, data := range contents {
		request = wire.AppendBytes(request, 2, wire.AppendBytes(wire.AppendBytes(nil, 1, DigestOf(data).marshal()), 2, data))
	}
	answer, err := c.unary(ctx, executionService+"ContentAddressableStorage/BatchUpdateBlobs", request)
	if err != nil {
		return err
	}
	stored := 0
	err = wire.Fields(answer, func(field wire.Field, value []byte, _ uint64) error {
		if field != 1 {
			return nil
		}
		return wire.Fields(value, func(field wire.Field, value []byte, _ uint64) error {
			switch field {
			case 1:
				stored++
			case 2:
				code, text, err := parseStatus(value)
				if err == nil && code != 0 {
					err = &StatusError{code, text}
				}
				return err
			}
			return nil
		})
	})
	if err == nil && stored != len(contents) {
		err = fmt.Errorf("the server took %d of %d contents", stored, len(contents))
	}
	return err
}

// resource names a content in a request of ByteStream.
func (c *Client) resource(parts ...string) string {
	if c.instance != "" {
		parts = append([]string{c.instance}, parts...)
	}
	return strings.Join(parts, "/")
}

// errContent says that the server has other bytes than those that were asked for.
var errContent = errors.New("the server's bytes have another digest")

// errSource says that a content cannot be read here.
var errSource = errors.New("cannot be read")

// drain reads a stream to its end, so that its status is known.
func drain(r *call) error {
	for {
		if _, err := r.next(); err != nil {
			if err == io.EOF {
				return nil
			}
			return err
		}
	}
}
