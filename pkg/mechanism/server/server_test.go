package server_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway.build/pkg/mechanism/server"
)

// fault is a variable that makes the test's program a server, and says what is wrong with that.
const fault = "FAKE_SERVER_FAULT"

func TestMain(m *testing.M) {
	if fault, ok := os.LookupEnv(fault); ok {
		fmt.Fprintln(os.Stderr, serve(os.Args[1], fault))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// serve serves its health, and fails when it is asked for /crash. It fails at once if its disk is full, and serves nothing if that is slow.
func serve(address, fault string) error {
	switch fault {
	case "full disk":
		return errors.New("no space left on device")
	case "slow disk":
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err == nil {
			_, err = l.Accept()
		}
		return err
	}
	http.HandleFunc("/health", func(http.ResponseWriter, *http.Request) {})
	http.HandleFunc("/crash", func(http.ResponseWriter, *http.Request) {
		fmt.Fprintln(os.Stderr, "the disk is gone")
		os.Exit(3)
	})
	return http.ListenAndServe(address, nil)
}

// fake returns a server with a fault.
func fake(t *testing.T, wrong string) (s server.Server, url string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	addresses, err := server.FreeAddresses(1)
	if err != nil {
		t.Fatal(err)
	}
	url = "http://" + addresses[0]
	return server.Server{
		Command: []string{self, addresses[0]}, Env: []string{fault + "=" + wrong}, Ready: url + "/health", Client: http.DefaultClient,
	}, url
}

// get asks for a page, and reports whether there was an answer.
func get(url string) bool {
	resp, err := http.Get(url)
	if err != nil {
		return false
	}
	resp.Body.Close()
	return true
}

func notServed(context.Context) error { return errors.New("the function ran without a server") }

// The tests are not parallel: two servers that start at the same time may choose the same free port.

func TestServerRunsWhileItIsUsed(t *testing.T) {
	s, url := fake(t, "")
	failed := errors.New("failed")
	err := s.Run(t.Context(), func(ctx context.Context) error {
		if !get(url+"/health") || ctx.Err() != nil {
			t.Errorf("nothing serves at %s: %v", url, ctx.Err())
		}
		return failed
	})
	if !errors.Is(err, failed) || err.Error() != failed.Error() {
		t.Errorf("error %v, want that of the function alone", err)
	}
	if get(url + "/health") {
		t.Error("the program still serves")
	}
}

func TestServerThatEndsStopsItsUse(t *testing.T) {
	s, url := fake(t, "")
	err := s.Run(t.Context(), func(ctx context.Context) error {
		get(url + "/crash")
		<-ctx.Done()
		return ctx.Err()
	})
	if err == nil || !strings.Contains(err.Error(), "server.test ended: exit status 3") || !strings.Contains(err.Error(), "the disk is gone") {
		t.Errorf("error %v", err)
	}
}

func TestServerThatFailsSaysWhy(t *testing.T) {
	s, _ := fake(t, "full disk")
	err := s.Run(t.Context(), notServed)
	if err == nil || !strings.Contains(err.Error(), "ended: exit status 1") || !strings.Contains(err.Error(), "no space left on device") {
		t.Errorf("error %v", err)
	}
}

func TestInterruptWhileAServerStartsIsNoFailureOfIt(t *testing.T) {
	s, _ := fake(t, "slow disk")
	interrupted := errors.New("interrupted")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 200*time.Millisecond, interrupted)
	defer cancel()
	if err := s.Run(ctx, notServed); !errors.Is(err, interrupted) || err.Error() != interrupted.Error() {
		t.Errorf("error %v", err)
	}
}

func TestFreeAddressesDiffer(t *testing.T) {
	addresses, err := server.FreeAddresses(9)
	slices.Sort(addresses)
	if err != nil || len(slices.Compact(addresses)) != 9 {
		t.Errorf("%q, %v", addresses, err)
	}
}
