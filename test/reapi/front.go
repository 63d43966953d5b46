package reapi

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

// startFront starts a proxy to a server that supports the Remote Execution API from version 2.1 on. The proxy declares support from 2.0 on,
// because Bazel 7 supports 2.0 and would refuse the server. The parts that Bazel uses are the same in 2.1.
//
// It delays each request, too, as a network would.
func startFront(to string, delay *atomic.Int64) (address string, server *http.Server, err error) {
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: to}) },
		Transport:     &http.Transport{Protocols: &protocols},
		FlushInterval: -1,
		ModifyResponse: func(r *http.Response) error {
			if !strings.HasSuffix(r.Request.URL.Path, "/GetCapabilities") {
				return nil
			}
			return lowerVersion(r)
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	server = &http.Server{Protocols: &protocols, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(time.Duration(delay.Load())):
		case <-r.Context().Done():
			return
		}
		proxy.ServeHTTP(w, r)
	})}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	go func() { _ = server.Serve(l) }() // until it is closed
	return l.Addr().String(), server, nil
}

// lowerVersion adds another field 4, low_api_version { major: 2 }, to a gRPC message, a ServerCapabilities. The last one counts.
func lowerVersion(r *http.Response) error {
	data, err := io.ReadAll(r.Body) // reads the trailer, too
	if err != nil || len(data) < 5 {
		return err
	}
	data = append(data, 0x22, 0x04, 0x08, 0x02, 0x10, 0x00)
	binary.BigEndian.PutUint32(data[1:], uint32(len(data)-5))
	r.Body = io.NopCloser(bytes.NewReader(data))
	r.ContentLength = -1
	r.Header.Del("Content-Length")
	return nil
}
