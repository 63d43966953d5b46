package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/pkg/stdcopy"
)

// A Stream is a connection to the input and output of a process in a container.
type Stream struct {
	conn types.HijackedResponse
	out  *io.PipeReader

	mu  sync.Mutex
	err bytes.Buffer // the beginning of its error output
}

// Exec starts a process in the container.
func (c *Container) Exec(ctx context.Context, command ...string) (*Stream, error) {
	_, conn, err := c.exec(ctx, container.ExecOptions{Cmd: command})
	if err != nil {
		return nil, err
	}
	out, w := io.Pipe()
	s := &Stream{conn: conn, out: out}
	go func() {
		_, err := stdcopy.StdCopy(w, (*errorOutput)(s), conn.Reader)
		_ = w.CloseWithError(err) // nil is io.EOF
	}()
	return s, nil
}

// exec starts a process with input and output. It returns its ID, and the connection to it.
func (c *Container) exec(ctx context.Context, options container.ExecOptions) (id string, conn types.HijackedResponse, err error) {
	options.AttachStdin, options.AttachStdout, options.AttachStderr = true, true, true
	created, err := c.engine.Client.ContainerExecCreate(ctx, c.ID, options)
	if err == nil {
		conn, err = await(ctx, func() (types.HijackedResponse, error) {
			return c.engine.Client.ContainerExecAttach(ctx, created.ID,
				container.ExecAttachOptions{Tty: options.Tty, ConsoleSize: options.ConsoleSize})
		}, func(late types.HijackedResponse) { late.Close() })
	}
	if err != nil {
		err = fmt.Errorf("exec in container %s: %w", c.Name, err)
	}
	return created.ID, conn, err
}

// An errorOutput keeps the beginning of a process's error output.
type errorOutput Stream

func (c *errorOutput) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if room := 4096 - c.err.Len(); room > 0 {
		c.err.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

func (s *Stream) Read(p []byte) (int, error)  { return s.out.Read(p) }
func (s *Stream) Write(p []byte) (int, error) { return s.conn.Conn.Write(p) }

// CloseWrite ends the process's input.
func (s *Stream) CloseWrite() error { return s.conn.CloseWrite() }

// Close ends the connection. It returns what the process wrote to its error output as an error.
func (s *Stream) Close() error {
	s.conn.Close()
	_ = s.out.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if text := strings.TrimSpace(s.err.String()); text != "" {
		return errors.New(text)
	}
	return nil
}

// Run runs a command in the container to its end, and returns its output.
func (c *Container) Run(ctx context.Context, command ...string) ([]byte, error) {
	var out, problem bytes.Buffer
	if err := c.Do(ctx, command, Streams{Out: &out, Err: &problem}, nil); err != nil {
		return nil, fmt.Errorf("%s in container %s: %w: %s", command[0], c.Name, err, bytes.TrimSpace(problem.Bytes()))
	}
	return out.Bytes(), nil
}
