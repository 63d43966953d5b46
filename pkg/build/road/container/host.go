package container

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/docker/go-units"

	"slipway.build/pkg/build/road"
	"slipway.build/pkg/mechanism/engine"
	"slipway.build/pkg/mechanism/transfer"
)

// A host is a running rsync container.
type host struct {
	*transfer.Remote
	container *engine.Container
	input     io.Closer // ends the container when it is closed
	free      int64     // disk space of the volumes when it started, bytes
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
	h := &host{container: c, input: input, Remote: &transfer.Remote{
		Dial: func(ctx context.Context) (io.ReadWriteCloser, error) {
			return c.Exec(ctx, "rsync", "--server", "--daemon", "--config=/etc/slipway/rsyncd.conf", ".")
		},
		Password: password,
		Whole:    s.engine.Local,
	}}
	go func() { _, _ = io.WriteString(input, password+"\n") }() // ends when the pipe is closed, if nobody reads
	if h.free, err = ready.wait(ctx, c); err != nil {
		return nil, errors.Join(err, h.remove())
	}
	return h, nil
}

// fetchFrom fetches files from the engine.
func (h *host) fetchFrom(ctx context.Context, rep road.Report, module, from string, names []string, to, basis string) error {
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
func (f *firstLine) wait(ctx context.Context, c *engine.Container) (free int64, err error) {
	ended := make(chan error, 1)
	waiting, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("container %s: not ready within %v", c.Name, patience))
	defer cancel()
	go func() { ended <- c.Wait(waiting) }()
	select {
	case <-f.came:
	case err := <-ended:
		if err == nil {
			err = errors.New("ended at once")
		}
		return 0, fmt.Errorf("container %s: %w", c.Name, err)
	}
	if _, err := fmt.Sscanf(string(f.text), "ready %d\n", &free); err != nil {
		return 0, fmt.Errorf("container %s: %s", c.Name, bytes.TrimSpace(f.text))
	}
	return free, nil
}
