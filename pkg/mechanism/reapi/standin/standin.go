// Package standin is a server of the Remote Execution API's cache in memory, for tests. It behaves as buildbox-casd does, or in other ways
// that the API allows, and misbehaves on demand.
//
// What must never be in here: what actions are.
package standin

import (
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	remote "github.com/bazelbuild/remote-apis/build/bazel/remote/execution/v2"

	"slipway.build/pkg/mechanism/reapi"
)

// A Fault is a way to misbehave.
type Fault string

const (
	Slow     Fault = "slow"     // answers 20 ms later
	Stall    Fault = "stall"    // never answers
	Corrupt  Fault = "corrupt"  // sends contents with a changed byte
	Truncate Fault = "truncate" // ends in the middle of a message
	Garbage  Fault = "garbage"  // sends what is no message
	Refuse   Fault = "refuse"   // says that it is unavailable
	Deny     Fault = "deny"     // says that this client may not
	Ask      Fault = "ask"      // says that it does not know who asks
	Hang     Fault = "hang up"  // closes the connection

	Trickle Fault = "trickle" // sends a byte every 20 ms
	Pace    Fault = "pace"    // sends 64 KiB every 100 ms
)

// Faults are all ways to misbehave that make a request fail at once, or never answer.
var Faults = []Fault{Stall, Corrupt, Truncate, Garbage, Refuse, Deny, Ask, Hang}

// A Server is a server on loopback.
type Server struct {
	Address string // HOST:PORT of loopback

	http *http.Server

	mu       sync.Mutex
	contents map[reapi.Digest][]byte
	results  map[reapi.Digest]*remote.ActionResult
	requests map[string]int
	faults   map[string]fault
	headers  []http.Header
	token    string
	readOnly bool
	apart    bool
	damage   func([]byte) []byte
	done     chan struct{}
}

type fault struct {
	kind  Fault
	times int // left; negative has no end
}

// Start starts a server that ends with the test.
func Start(t testing.TB) *Server {
	t.Helper()
	s, err := Serve()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Die)
	return s
}

// Serve starts a server that ends when it dies.
func Serve() (*Server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Server{
		Address:  listener.Addr().String(),
		contents: map[reapi.Digest][]byte{},
		results:  map[reapi.Digest]*remote.ActionResult{},
		requests: map[string]int{},
		faults:   map[string]fault{},
		done:     make(chan struct{}),
	}
	s.http = &http.Server{Handler: newHandler(s), Protocols: new(http.Protocols), ReadHeaderTimeout: time.Minute}
	s.http.Protocols.SetUnencryptedHTTP2(true)
	go func() { _ = s.http.Serve(listener) }()
	return s, nil
}

// URL is what a client is given.
func (s *Server) URL() string { return "grpc://" + s.Address }

// Die ends the server, and what it is doing.
func (s *Server) Die() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.done:
	default:
		close(s.done)
		_ = s.http.Close()
	}
}

// Misbehave has requests of a method, such as GetActionResult, go wrong: so many of them, or all if times is negative.
func (s *Server) Misbehave(method string, kind Fault, times int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[method] = fault{kind, times}
}

// Damage has every answer go through a function, from several goroutines, until it is nil.
func (s *Server) Damage(f func(frame []byte) []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.damage = f
}

func (s *Server) damaged() func([]byte) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.damage
}

// Behave ends all misbehavior.
func (s *Server) Behave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.faults)
}

// Require has the server deny requests whose Authorization header is another one.
func (s *Server) Require(authorization string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token = authorization
}

// ReadOnly has the server say that this client may not store results, and deny it.
func (s *Server) ReadOnly() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readOnly = true
}

// StdoutApart makes results hold the digest of stdout instead of its bytes, even if the client asks for the bytes, as the API allows.
func (s *Server) StdoutApart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.apart = true
}

// Lose forgets a content, as a server does whose disk is full.
func (s *Server) Lose(d reapi.Digest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.contents, d)
}

// Contents returns what the server keeps, in the order of their digests.
func (s *Server) Contents() []reapi.Digest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(maps.Keys(s.contents), func(a, b reapi.Digest) int { return strings.Compare(a.SHA256, b.SHA256) })
}

// Results returns how many results the server keeps.
func (s *Server) Results() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.results)
}

// Requests returns how many requests of a method there were.
func (s *Server) Requests(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[method]
}

// Headers returns those of all requests.
func (s *Server) Headers() []http.Header {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.headers)
}

// begin counts a request, and returns how it will go wrong.
func (s *Server) begin(method string, header http.Header) (kind Fault, denied bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests[method]++
	s.headers = append(s.headers, header)
	denied = s.token != "" && header.Get("Authorization") != s.token || s.readOnly && method == "UpdateActionResult"
	f := s.faults[method]
	if f.times == 0 {
		return "", denied
	}
	f.times--
	s.faults[method] = f
	return f.kind, denied
}
