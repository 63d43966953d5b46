package conformance

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// A progress is where e2e.test tells which specs ended.
type progress struct {
	listener net.Listener
	server   *http.Server
}

// listen waits for it on loopback.
func listen(each func(result Result, name string)) (*progress, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &progress{l, &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var told struct{ Msg string }
		if err := json.NewDecoder(io.LimitReader(r.Body, 16<<20)).Decode(&told); err != nil { // it repeats the names of all that failed
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if name, ok := strings.CutPrefix(told.Msg, "PASSED "); ok {
			each(Passed, strings.TrimSpace(name))
		} else if name, ok := strings.CutPrefix(told.Msg, "FAILED "); ok {
			each(Failed, strings.TrimSpace(name))
		}
	})}}
	go func() { _ = p.server.Serve(l) }() // until it is closed
	return p, nil
}

func (p *progress) address() string { return "http://" + p.listener.Addr().String() + "/" }

func (p *progress) close() { _ = p.server.Close() }
