package engine

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/pkg/stdcopy"
)

// A Terminal is a user's terminal that a process in a container uses.
type Terminal struct {
	Size    func() (width, height int)                      // characters
	Resized func(set func(width, height int)) (stop func()) // calls set whenever the size changes
}

// Do runs a command in the container to its end, with input and output, at terminal unless that is nil. The error is an Exit if the
// command failed. When ctx ends first, Do returns; the process ends with the container.
func (c *Container) Do(ctx context.Context, command []string, streams Streams, terminal *Terminal) error {
	options := container.ExecOptions{Cmd: command}
	if terminal != nil {
		options.Tty = true
		width, height := terminal.Size()
		options.ConsoleSize = &[2]uint{uint(height), uint(width)}
	}
	id, conn, err := c.exec(ctx, options)
	if err != nil {
		return err
	}
	defer conn.Close()
	if terminal != nil {
		size := func(width, height int) {
			// An error means that the process has ended.
			_ = c.engine.Client.ContainerExecResize(ctx, id, container.ResizeOptions{Width: uint(width), Height: uint(height)})
		}
		size(terminal.Size())
		defer terminal.Resized(size)()
	}
	go func() {
		if streams.In != nil {
			_, _ = io.Copy(conn.Conn, streams.In) // it fails when the process has ended
		}
		_ = conn.CloseWrite()
	}()
	copied := make(chan error, 1)
	go func() {
		var err error
		if terminal != nil {
			_, err = io.Copy(orDiscard(streams.Out), conn.Reader)
		} else {
			_, err = stdcopy.StdCopy(orDiscard(streams.Out), orDiscard(streams.Err), conn.Reader)
		}
		copied <- err
	}()
	select {
	case <-ctx.Done():
		conn.Close()
		<-copied // after this, nothing writes to the streams
		return context.Cause(ctx)
	case err := <-copied:
		if err != nil {
			return c.engine.Lost(err)
		}
	}
	return c.execExit(ctx, id)
}

// execExit returns the Exit of a process whose output has ended, or nil for success.
func (c *Container) execExit(ctx context.Context, id string) error {
	for range 40 { // two seconds
		info, err := c.engine.Client.ContainerExecInspect(ctx, id)
		switch {
		case err != nil:
			return c.engine.Lost(err)
		case info.Running: // it may take a moment to end
			time.Sleep(50 * time.Millisecond)
		case info.ExitCode != 0:
			return exitOf(int64(info.ExitCode))
		default:
			return nil
		}
	}
	return fmt.Errorf("container %s: the connection broke while the command was running", c.Name)
}
