package container

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/docker/go-units"

	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/engine"
	"slipway.build/pkg/mechanism/transfer"
)

// A host is a running rsync container.
type host struct {
	*transfer.Remote
	container *engine.Container
	input     io.Closer       // ends the container when it is closed
	alive     context.Context // done when the container has ended; its cause says how
	free      int64           // disk space of the volumes when it started, bytes
}

// host starts an rsync container, with a password of its own.
func (s *session) host(ctx context.Context) (*host, error) {
	password := rand.Text()
	in, input := io.Pipe()
	ready := &firstLine{came: make(chan struct{})}
	c, err := s.engine.Start(ctx, s.owner, engine.Spec{
		Role:    roleRsync,
		Image:   s.image,
		Command: []string{rsyncHost},
		Dir:     "/",
		Volumes: volumes(treeVolume, workVolume, outputVolume.reading(), modulesVolume, cacheVolume, outVolume.reading()),
		Scratch: map[string]int64{secrets: 1 << 20, "/tmp": 1 << 20},
	}, engine.Streams{In: in, Out: ready, Err: ready})
	if err != nil {
		_ = input.Close()
		return nil, err
	}
	alive, end := context.WithCancelCause(context.Background())
	h := &host{container: c, input: input, alive: alive, Remote: &transfer.Remote{
		Password: password,
		Whole:    s.engine.Local,
	}}
	h.Dial = h.dial
	go func() { _, _ = io.WriteString(input, password+"\n") }() // ends when the pipe is closed, if nobody reads
	go func() {
		err := c.Wait(alive)
		end(cmp.Or(err, errors.New("ended at once")))
	}()
	if h.free, err = ready.wait(ctx, h); err != nil {
		return nil, errors.Join(err, h.remove())
	}
	return h, nil
}

// dial starts a daemon in the container. The connection closes when the container ends, without waiting for the engine to
// close it.
func (h *host) dial(ctx context.Context) (io.ReadWriteCloser, error) {
	stream, err := h.container.Exec(ctx, "rsync", "--server", "--daemon", "--config=/etc/slipway/rsyncd.conf", ".")
	if err != nil {
		return nil, err
	}
	context.AfterFunc(h.alive, func() { _ = stream.Close() })
	return stream, nil
}

// fetchFrom fetches files from the engine.
func (h *host) fetchFrom(ctx context.Context, rep action.Report, module, from string, names []string, to, basis string) error {
	return step(rep, "fetching results", func() (string, error) {
		stats, err := h.Fetch(ctx, module, from, names, to, basis)
		return fmt.Sprintf("fetched %d files, %s", stats.Files, units.HumanSize(float64(stats.Received))), err
	})
}

// remove removes the container. The host may be nil.
func (h *host) remove() error {
	if h == nil {
		return nil
	}
	_ = h.input.Close()
	return h.container.Remove()
}

// patience is how long an rsync container may take to start.
const patience = 30 * time.Second

// A firstLine receives the first line of a container's output.
type firstLine struct {
	text []byte
	came chan struct{}
}

func (f *firstLine) Write(p []byte) (int, error) {
	if len(f.text) == 0 && len(p) > 0 {
		f.text = append(f.text, p...)
		close(f.came)
	}
	return len(p), nil
}

// wait waits for the line of rsync-host, and returns the free disk space in it, in bytes.
func (f *firstLine) wait(ctx context.Context, h *host) (free int64, err error) {
	waiting, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not ready within %v", patience))
	defer cancel()
	select {
	case <-f.came:
	case <-h.alive.Done():
		return 0, fmt.Errorf("container %s: %w", h.container.Name, context.Cause(h.alive))
	case <-waiting.Done():
		return 0, fmt.Errorf("container %s: %w", h.container.Name, context.Cause(waiting))
	}
	if _, err := fmt.Sscanf(string(f.text), "ready %d\n", &free); err != nil {
		return 0, fmt.Errorf("container %s: %s", h.container.Name, bytes.TrimSpace(f.text))
	}
	return free, nil
}
