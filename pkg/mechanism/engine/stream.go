package engine

import (
	"bytes"
	"context"
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
	err bytes.Buffer // what the process wrote for people: its first lines
}

// Exec starts a process in the container.
func (c *Container) Exec(ctx context.Context, command ...string) (*Stream, error) {
	created, err := c.engine.Client.ContainerExecCreate(ctx, c.ID, container.ExecOptions{
		Cmd: command, AttachStdin: true, AttachStdout: true, AttachStderr: true,
	})
	if err != nil {
		return nil, fmt.Errorf("exec in container %s: %w", c.Name, err)
	}
	conn, err := c.attachExec(ctx, created.ID, container.ExecAttachOptions{})
	if err != nil {
		return nil, err
	}
	out, w := io.Pipe()
	s := &Stream{conn: conn, out: out}
	go func() {
		_, err := stdcopy.StdCopy(w, (*complaints)(s), conn.Reader)
		_ = w.CloseWithError(err) // nil is io.EOF
	}()
	return s, nil
}

func (c *Container) attachExec(ctx context.Context, id string, options container.ExecAttachOptions) (types.HijackedResponse, error) {
	conn, err := await(ctx, func() (types.HijackedResponse, error) {
		return c.engine.Client.ContainerExecAttach(ctx, id, options)
	}, func(late types.HijackedResponse) { late.Close() })
	if err != nil {
		return conn, fmt.Errorf("exec in container %s: %w", c.Name, err)
	}
	return conn, nil
}

// complaints keeps the beginning of what a process says on its error output.
type complaints Stream

func (c *complaints) Write(p []byte) (int, error) {
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

// Close ends the connection. The error is what the process complained of, if anything.
func (s *Stream) Close() error {
	s.conn.Close()
	_ = s.out.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if text := strings.TrimSpace(s.err.String()); text != "" {
		return fmt.Errorf("%s", text)
	}
	return nil
}

// Run runs a command in the container to its end, and returns what it wrote.
func (c *Container) Run(ctx context.Context, command ...string) ([]byte, error) {
	var out, complaints bytes.Buffer
	if err := c.Do(ctx, command, Streams{Out: &out, Err: &complaints}, nil); err != nil {
		return nil, fmt.Errorf("%s in container %s: %w: %s", command[0], c.Name, err, bytes.TrimSpace(complaints.Bytes()))
	}
	return out.Bytes(), nil
}
