package standin

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	remote "github.com/bazelbuild/remote-apis/build/bazel/remote/execution/v2"
	"google.golang.org/genproto/googleapis/bytestream"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"slipway.build/pkg/mechanism/reapi"
)

// newHandler returns a handler of the server's methods, and of their faults.
func newHandler(s *Server) http.Handler {
	methods, all := grpc.NewServer(), &service{Server: s}
	remote.RegisterCapabilitiesServer(methods, all)
	remote.RegisterActionCacheServer(methods, all)
	remote.RegisterContentAddressableStorageServer(methods, all)
	bytestream.RegisterByteStreamServer(methods, all)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kind, damage := s.begin(path.Base(r.URL.Path), r.Header)
		code := map[Fault]codes.Code{Deny: codes.PermissionDenied, Ask: codes.Unauthenticated, Refuse: codes.Unavailable}[kind]
		switch {
		case code != codes.OK:
			w.Header().Set("Content-Type", "application/grpc")
			w.Header().Set("Grpc-Status", strconv.Itoa(int(code)))
			if code == codes.PermissionDenied {
				w.Header().Set("Grpc-Message", "not%20you")
			}
			return
		case kind == Slow:
			time.Sleep(20 * time.Millisecond)
		case kind == Stall:
			select {
			case <-r.Context().Done():
			case <-s.done:
			}
			return
		case kind == Hang:
			panic(http.ErrAbortHandler)
		}
		ctx := context.WithValue(r.Context(), corrupt{}, kind == Corrupt)
		methods.ServeHTTP(&answer{ResponseWriter: w, kind: kind, damage: damage}, r.WithContext(ctx))
	})
}

// An answer sends messages, whole or not.
type answer struct {
	http.ResponseWriter
	kind   Fault
	damage func([]byte) []byte // may be nil
	frame  []byte              // of the next message, as far as it is written
}

func (a *answer) Write(p []byte) (int, error) {
	a.frame = append(a.frame, p...)
	return len(p), nil
}

// Flush is called after each message, and for headers without one.
func (a *answer) Flush() {
	frame := a.frame
	a.frame = nil
	if len(frame) == 0 {
		a.send(nil)
		return
	}
	if a.damage != nil {
		frame = a.damage(frame)
	}
	switch a.kind {
	case Garbage:
		a.send(bytes.Repeat([]byte{0xff}, 64))
	case Truncate:
		a.send(frame[:len(frame)-1])
		panic(http.ErrAbortHandler)
	case Trickle:
		a.pace(frame, 1, 20*time.Millisecond)
	case Pace:
		a.pace(frame, 64<<10, 100*time.Millisecond)
	default:
		a.send(frame)
	}
}

// send sends bytes. The next call fails if nobody listens any more.
func (a *answer) send(data []byte) bool {
	_, err := a.ResponseWriter.Write(data)
	return err == nil && http.NewResponseController(a.ResponseWriter).Flush() == nil
}

// pace sends a frame in pieces.
func (a *answer) pace(frame []byte, size int, pause time.Duration) {
	for piece := range slices.Chunk(frame, size) {
		if !a.send(piece) {
			return
		}
		time.Sleep(pause)
	}
}

// A service has the methods of the API.
type service struct {
	*Server
	remote.UnimplementedCapabilitiesServer
	remote.UnimplementedActionCacheServer
	remote.UnimplementedContentAddressableStorageServer
	bytestream.UnimplementedByteStreamServer
}

func (s *service) GetCapabilities(context.Context, *remote.GetCapabilitiesRequest) (*remote.ServerCapabilities, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &remote.ServerCapabilities{CacheCapabilities: &remote.CacheCapabilities{
		DigestFunctions:               []remote.DigestFunction_Value{remote.DigestFunction_SHA256},
		ActionCacheUpdateCapabilities: &remote.ActionCacheUpdateCapabilities{UpdateEnabled: !s.settings.ReadOnly},
	}}, nil
}

func digestOf(m *remote.Digest) reapi.Digest {
	return reapi.Digest{SHA256: m.GetHash(), Size: m.GetSizeBytes()}
}

func (s *service) GetActionResult(ctx context.Context, r *remote.GetActionResultRequest) (*remote.ActionResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stored, ok := s.results[digestOf(r.ActionDigest)]
	if !ok {
		return nil, status.Error(codes.NotFound, "")
	}
	for _, file := range stored.OutputFiles {
		if _, ok := s.contents[digestOf(file.Digest)]; !ok {
			return nil, status.Error(codes.NotFound, "a file is gone")
		}
	}
	result := proto.CloneOf(stored)
	if r.InlineStdout && !s.settings.StdoutApart {
		result.StdoutRaw = altered(ctx, result.StdoutRaw)
		return result, nil
	}
	d := reapi.DigestOf(result.StdoutRaw)
	s.contents[d] = result.StdoutRaw
	result.StdoutRaw, result.StdoutDigest = nil, &remote.Digest{Hash: d.SHA256, SizeBytes: d.Size}
	return result, nil
}

func (s *service) UpdateActionResult(_ context.Context, r *remote.UpdateActionResultRequest) (*remote.ActionResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.results[digestOf(r.ActionDigest)] = r.ActionResult
	return r.ActionResult, nil
}

func (s *service) FindMissingBlobs(_ context.Context, r *remote.FindMissingBlobsRequest) (*remote.FindMissingBlobsResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	missing := slices.DeleteFunc(r.BlobDigests, func(m *remote.Digest) bool {
		_, ok := s.contents[digestOf(m)]
		return ok
	})
	return &remote.FindMissingBlobsResponse{MissingBlobDigests: missing}, nil
}

func (s *service) BatchReadBlobs(ctx context.Context, r *remote.BatchReadBlobsRequest) (*remote.BatchReadBlobsResponse, error) {
	answer := &remote.BatchReadBlobsResponse{}
	for _, digest := range r.Digests {
		data, err := s.content(ctx, digestOf(digest))
		answer.Responses = append(answer.Responses,
			&remote.BatchReadBlobsResponse_Response{Digest: digest, Data: data, Status: status.Convert(err).Proto()})
	}
	return answer, nil
}

func (s *service) BatchUpdateBlobs(_ context.Context, r *remote.BatchUpdateBlobsRequest) (*remote.BatchUpdateBlobsResponse, error) {
	answer := &remote.BatchUpdateBlobsResponse{}
	for _, content := range r.Requests {
		err := s.keep(digestOf(content.Digest), content.Data)
		answer.Responses = append(answer.Responses,
			&remote.BatchUpdateBlobsResponse_Response{Digest: content.Digest, Status: status.Convert(err).Proto()})
	}
	return answer, nil
}

// corrupt is the key of whether a request is answered with changed bytes.
type corrupt struct{}

// altered returns bytes as they are sent.
func altered(ctx context.Context, data []byte) []byte {
	if ctx.Value(corrupt{}) == true && len(data) > 0 {
		data = bytes.Clone(data)
		data[len(data)/2]++
	}
	return data
}

// content returns a content as it is sent.
func (s *service) content(ctx context.Context, d reapi.Digest) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	data, ok := s.contents[d]
	if !ok {
		return nil, status.Error(codes.NotFound, "")
	}
	return altered(ctx, data), nil
}

// keep stores a content under its digest, which must be that of the bytes.
func (s *service) keep(d reapi.Digest, data []byte) error {
	if reapi.DigestOf(data) != d {
		return status.Error(codes.InvalidArgument, "the bytes have another digest")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.contents[d] = data
	return nil
}

// named returns the digest at the end of a resource's name: …/SHA256/SIZE.
func named(resource string) (reapi.Digest, error) {
	folder, last := path.Split(resource)
	size, err := strconv.ParseInt(last, 10, 64)
	return reapi.Digest{SHA256: path.Base(folder), Size: size}, err
}

// piece is how many bytes a message of a content that is read has.
const piece = 1 << 20

func (s *service) Read(r *bytestream.ReadRequest, to bytestream.ByteStream_ReadServer) error {
	d, err := named(r.ResourceName)
	if err != nil {
		return err
	}
	data, err := s.content(to.Context(), d)
	if err != nil {
		return err
	}
	for data := range slices.Chunk(data, piece) {
		if err := to.Send(&bytestream.ReadResponse{Data: data}); err != nil {
			return err
		}
	}
	return nil
}

func (s *service) Write(from bytestream.ByteStream_WriteServer) error {
	var name string
	var data []byte
	for finished := false; !finished; {
		r, err := from.Recv()
		if err == io.EOF {
			return status.Error(codes.InvalidArgument, "a content is cut short")
		}
		if err != nil {
			return err
		}
		if r.WriteOffset != int64(len(data)) {
			return status.Error(codes.InvalidArgument, "an offset is wrong")
		}
		name += r.ResourceName
		data = append(data, r.Data...)
		finished = r.FinishWrite
	}
	d, err := named(name)
	if err != nil || !strings.Contains(name, "uploads/") {
		return status.Error(codes.InvalidArgument, "the resource has a wrong name")
	}
	if err := s.keep(d, data); err != nil {
		return err
	}
	return from.SendAndClose(&bytestream.WriteResponse{CommittedSize: d.Size})
}
