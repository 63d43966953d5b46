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

// Settings say how a server behaves, without being at fault.
type Settings struct {
	Authorization string // requests with another header are denied; "" denies none
	ReadOnly      bool   // it says that this client may not store results, and denies it
	StdoutApart   bool   // results hold the digest of stdout instead of its bytes, even if a client asks for these, as the API allows

	Damage func(frame []byte) []byte // every answer goes through it, from several goroutines; may be nil
}

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
	settings Settings
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

// Set changes the settings.
func (s *Server) Set(settings Settings) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settings = settings
}

// Behave ends all misbehavior.
func (s *Server) Behave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.faults)
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

// begin counts a request, and returns how it will go wrong, and how its answer is damaged.
func (s *Server) begin(method string, header http.Header) (kind Fault, damage func([]byte) []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests[method]++
	s.headers = append(s.headers, header)
	if f := s.faults[method]; f.times != 0 {
		kind = f.kind
		f.times--
		s.faults[method] = f
	}
	stranger := s.settings.Authorization != "" && header.Get("Authorization") != s.settings.Authorization
	if stranger || s.settings.ReadOnly && method == "UpdateActionResult" {
		kind = Deny
	}
	return kind, s.settings.Damage
}
