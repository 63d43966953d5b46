// Package server runs programs that serve on this machine, each while a function uses it.
//
// What must never be in here: which programs these are, and programs that outlive the function.
package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"slipway.build/pkg/mechanism/child"
	"slipway.build/pkg/mechanism/tail"
)

// How long a program may take on a busy machine. A program that fails ends, so nobody waits for that.
const (
	toServe = 5 * time.Minute
	toEnd   = time.Minute
)

// A Server is a program that serves.
type Server struct {
	Command []string     // with the program's path
	Env     []string     // nil means that of this process
	Ready   string       // a URL that has an answer once the program serves
	Client  *http.Client // asks for it
}

// Run starts the program, waits until it serves, calls use, and stops the program. If the program ends before use does, the context
// of use ends, and the error says why the program ended.
func (s Server) Run(ctx context.Context, use func(context.Context) error) error {
	name := filepath.Base(s.Command[0])
	running, end := context.WithCancelCause(ctx)
	cmd := exec.CommandContext(running, s.Command[0], s.Command[1:]...)
	cmd.Env = s.Env
	log := &tail.Lines{}
	cmd.Stdout, cmd.Stderr = log, log
	child.Group(cmd)
	cmd.Cancel = func() error { return child.SignalGroup(cmd, syscall.SIGTERM) }
	cmd.WaitDelay = toEnd
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err := child.Run(cmd, syscall.SIGKILL, nil)
		if err == nil {
			err = errors.New("exit status 0")
		}
		end(fmt.Errorf("%s ended: %w", name, log.Explain(err))) // it stays unread if the context ended first
	}()
	stop := func() { end(nil); <-ended }
	defer stop()
	for deadline := time.Now().Add(toServe); !s.ready(running); time.Sleep(50 * time.Millisecond) {
		if running.Err() != nil {
			return context.Cause(running)
		}
		if time.Now().After(deadline) {
			stop()
			return log.Explain(fmt.Errorf("%s did not serve on %s within %v", name, s.Ready, toServe))
		}
	}
	err := use(running)
	if err != nil && running.Err() != nil {
		return context.Cause(running)
	}
	return err
}

func (s Server) ready(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.Ready, nil)
	if err != nil {
		return false
	}
	resp, err := s.Client.Do(req)
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// FreeAddresses returns addresses of loopback that nothing listens on.
func FreeAddresses(count int) ([]string, error) {
	var addresses []string
	for range count {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close() // until then no other process gets the port
		addresses = append(addresses, l.Addr().String())
	}
	return addresses, nil
}
