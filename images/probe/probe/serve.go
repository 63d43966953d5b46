package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"sync/atomic"
)

// serve answers HTTP until SIGINT or SIGTERM:
//
//	/hostname          the host's name
//	/client            the address that the request came from
//	/env?name=NAME     a variable of the environment
//	/file?name=FILE    the content of a file
//	/healthy, /ready   200, or 503 from a request /healthy?set=false or /ready?set=false until set=true
//
// It also answers gRPC's health check: SERVING as long as /healthy is 200.
func serve(address string) error {
	if address == "" {
		address = ":8080"
	}
	var ill, busy atomic.Bool
	mux := http.NewServeMux()
	mux.HandleFunc("/hostname", func(w http.ResponseWriter, _ *http.Request) {
		name, err := os.Hostname()
		answer(w, name, err)
	})
	mux.HandleFunc("/client", func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.RemoteAddr)
		answer(w, host, err)
	})
	mux.HandleFunc("/env", func(w http.ResponseWriter, r *http.Request) { answer(w, os.Getenv(r.FormValue("name")), nil) })
	mux.HandleFunc("/file", func(w http.ResponseWriter, r *http.Request) {
		text, err := os.ReadFile(r.FormValue("name"))
		answer(w, string(text), err)
	})
	mux.HandleFunc("/healthy", toggled(&ill))
	mux.HandleFunc("/ready", toggled(&busy))
	mux.HandleFunc("POST /grpc.health.v1.Health/Check", func(w http.ResponseWriter, _ *http.Request) { healthCheck(w, !ill.Load()) })
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	fmt.Println("serving at", listener.Addr())
	go func() {
		server := http.Server{Handler: mux, Protocols: &http.Protocols{}}
		server.Protocols.SetHTTP1(true)
		server.Protocols.SetUnencryptedHTTP2(true) // of gRPC
		fmt.Fprintln(os.Stderr, server.Serve(listener))
		os.Exit(1)
	}()
	wait()
	return nil
}

// healthCheck answers gRPC's health check: a message of two bytes, the field "status" with the value SERVING or NOT_SERVING. See
// https://github.com/grpc/grpc/blob/master/doc/health-checking.md. A library would be most of the program.
func healthCheck(w http.ResponseWriter, serving bool) {
	status := byte(2)
	if serving {
		status = 1
	}
	w.Header().Set("Content-Type", "application/grpc")
	w.Header().Set("Trailer", "Grpc-Status")
	_, _ = w.Write([]byte{0, 0, 0, 0, 2, 1 << 3, status}) // not compressed, the length, and the message
	w.Header().Set("Grpc-Status", "0")
}

// toggled returns a handler that sets off as the request says, and then reports whether it is false.
func toggled(off *atomic.Bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch r.FormValue("set") {
		case "true":
			off.Store(false)
		case "false":
			off.Store(true)
		default:
			if off.Load() {
				http.Error(w, "no", http.StatusServiceUnavailable)
				return
			}
		}
		answer(w, "yes", nil)
	}
}

func answer(w http.ResponseWriter, text string, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	fmt.Fprintln(w, text)
}
