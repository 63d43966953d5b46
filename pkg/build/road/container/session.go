package container

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"

	"github.com/docker/go-units"
	"golang.org/x/sync/errgroup"

	"slipway.build/pkg/build/road"
	"slipway.build/pkg/mechanism/engine"
	"slipway.build/pkg/mechanism/transfer"
)

// A session is the engine made ready for the tree as it is now.
type session struct {
	engine *engine.Engine
	owner  engine.Owner
	image  string
	empty  bool // the volumes have just been made
}

// open makes the engine ready at the first call of a run; later ones get the same session. What failed is tried again. The
// first caller also gets the rsync container that has brought the sources, which it may fetch files from, and has to remove.
func (r *Road) open(ctx context.Context, rep road.Report) (*session, *host, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.session != nil {
		return r.session, nil, nil
	}
	s, err := r.connect(ctx, rep)
	if err != nil {
		return nil, nil, err
	}
	watched, stop := s.engine.Watch(ctx)
	defer stop()
	h, err := r.send(watched, s, rep)
	if err != nil {
		return nil, nil, s.said(watched, err)
	}
	r.session = s
	return s, h, nil
}

// Ready does all that comes before the first command or compile, so that it can be done apart from it.
func (r *Road) Ready(ctx context.Context, rep road.Report) error {
	_, h, err := r.open(ctx, rep)
	return errors.Join(err, h.remove())
}

// copy is the rsync module that gets the sources.
func (r *Road) copy() string {
	if r.Work {
		return "work"
	}
	return "tree"
}

// connect finds the engine, clears what killed runs left there, and sees to the image and the data container.
func (r *Road) connect(ctx context.Context, rep road.Report) (*session, error) {
	if runtime.GOOS == "windows" {
		return nil, errors.New("the container road needs a Unix here: run slipway in WSL, or use ROAD=local")
	}
	s := &session{owner: engine.OwnerOf(r.Root)}
	if _, err := transfer.Client(ctx); err != nil { // before an image is built for nothing
		return nil, err
	}
	err := step(rep, "looking for a container engine", func() (text string, err error) {
		if s.engine, err = engine.Connect(ctx); err != nil {
			return "", err
		}
		return s.engine.String(), nil
	})
	if err != nil {
		return nil, err
	}
	ctx, stop := s.engine.Watch(ctx)
	defer stop()
	left, err := s.engine.RemoveContainers(ctx, s.owner, roleBuild, roleRsync)
	if err == nil {
		var ended []string
		ended, err = s.engine.RemoveEnded(ctx, s.owner, roleUser)
		left = append(left, ended...)
	}
	if err != nil {
		return nil, s.said(ctx, err)
	}
	if len(left) > 0 {
		rep.Step(fmt.Sprintf("removed what a run that was killed had left: %s", strings.Join(left, ", ")), 0)
	}
	if r.Used != nil {
		if err := r.Used(); err != nil {
			return nil, err
		}
	}
	err = step(rep, "looking for the build image", func() (string, error) {
		ref, built, err := r.Image.Ensure(ctx, s.engine, s.owner, func(text string) { rep.Progress(0, 0, text) })
		s.image = ref
		if built {
			return "built image " + ref, err
		}
		return "", err
	})
	if err != nil {
		return nil, s.said(ctx, err)
	}
	err = step(rep, "looking for the data container", func() (string, error) {
		made, empty, err := s.engine.Data(ctx, s.owner, roleData, s.image, allVolumes(s.image))
		s.empty = empty
		if made {
			return "made data container " + s.owner.Name(roleData), err
		}
		return "", err
	})
	if err != nil {
		return nil, s.said(ctx, err)
	}
	return s, r.tidy(ctx, s)
}

// step does a part of the work, and tells of it if it has something to tell.
func step(rep road.Report, doing string, do func() (told string, err error)) error {
	rep.Progress(0, 0, doing)
	start := time.Now()
	told, err := do()
	if err == nil && told != "" {
		rep.Step(told, time.Since(start))
	}
	return err
}

// said puts in the place of an error what it came of: the end of a context, or of the engine.
func (s *session) said(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		var lost *engine.LostError
		if errors.As(context.Cause(ctx), &lost) {
			return lost
		}
		return ctx.Err()
	}
	return s.engine.Lost(err)
}

// How much free disk space there has to be in the engine, in bytes: at first, when caches and binaries of a platform's components
// are still to come (about 5 GiB), and later.
const (
	leastAtFirst = 6 << 30
	leastLater   = 512 << 20
)

// send brings the engine's copies of the tree and of the modules up to date, by an rsync container that it leaves running.
func (r *Road) send(ctx context.Context, s *session, rep road.Report) (h *host, err error) {
	if err := r.checkModules(); err != nil {
		return nil, err
	}
	names, err := r.Sources(ctx)
	if err != nil {
		return nil, err
	}
	downloads, err := r.downloads(ctx, rep)
	if err != nil {
		return nil, err
	}
	h, err = s.host(ctx)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.remove())
			h = nil
		}
	}()
	if err := s.enoughSpace(h.free); err != nil {
		return h, err
	}
	// Side by side, as both are spent on waiting for each other's ends.
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() error {
		return step(rep, "sending modules", func() (string, error) {
			stats, err := h.Add(ctx, "modules", downloads.folder, downloads.files)
			return sent("modules", stats), err
		})
	})
	both.Go(func() error {
		return step(rep, "sending sources", func() (string, error) {
			stats, err := h.Mirror(ctx, r.copy(), r.Root, names, "_output")
			return sent("sources", stats), err
		})
	})
	return h, both.Wait()
}

func sent(what string, stats transfer.Stats) string {
	if stats.Files == 0 && stats.Deleted == 0 {
		return what + " are up to date"
	}
	text := fmt.Sprintf("sent %s: %d files, %s", what, stats.Files, units.HumanSize(float64(stats.Sent)))
	if stats.Deleted > 0 {
		text += fmt.Sprintf(", %d deleted", stats.Deleted)
	}
	return text
}

func (s *session) enoughSpace(free int64) error {
	least := int64(leastLater)
	if s.empty {
		least = leastAtFirst
	}
	if free < least {
		return fmt.Errorf("docker engine at %s: it has %s of disk space left, and a build needs about %s: make room there (docker system df, docker system prune)",
			s.engine.Address, units.HumanSize(float64(free)), units.HumanSize(float64(least)))
	}
	return nil
}

// fetchFrom gets files out of the engine.
func (h *host) fetchFrom(ctx context.Context, rep road.Report, module, from string, names []string, to, basis string) error {
	return step(rep, "fetching results", func() (string, error) {
		stats, err := h.Fetch(ctx, module, from, names, to, basis)
		return fmt.Sprintf("fetched %d files, %s", stats.Files, units.HumanSize(float64(stats.Received))), err
	})
}

// A host is an rsync container that is ready.
type host struct {
	*transfer.Remote
	container *engine.Container
	end       io.Closer // of its input
	free      int64     // bytes on the disk of the volumes, when it started
}

// host starts an rsync container. Its password is for this one, and is told to nobody else.
func (s *session) host(ctx context.Context) (*host, error) {
	password := rand.Text()
	in, end := io.Pipe()
	ready := &firstLine{came: make(chan struct{})}
	c, err := s.engine.Start(ctx, s.owner, engine.Spec{
		Role:    roleRsync,
		Image:   s.image,
		Command: []string{rsyncHost},
		Dir:     "/",
		Volumes: volumes(treeVolume, workVolume, outputVolume.reading(), modulesVolume, outVolume.reading()),
		Scratch: map[string]int64{secrets: 1 << 20, "/tmp": 1 << 20},
	}, engine.Streams{In: in, Out: ready, Err: ready})
	if err != nil {
		_ = end.Close()
		return nil, err
	}
	h := &host{container: c, end: end, Remote: &transfer.Remote{
		Dial: func(ctx context.Context) (io.ReadWriteCloser, error) {
			return c.Exec(ctx, "rsync", "--server", "--daemon", "--config=/etc/slipway/rsyncd.conf", ".")
		},
		Password: password,
		Whole:    s.engine.Local,
	}}
	go func() { _, _ = io.WriteString(end, password+"\n") }() // if it is never read, the pipe's end ends it
	if h.free, err = ready.wait(ctx, c); err != nil {
		return nil, errors.Join(err, h.remove())
	}
	return h, nil
}

// remove removes the container, if there is one.
func (h *host) remove() error {
	if h == nil {
		return nil
	}
	_ = h.end.Close()
	return h.container.Remove()
}

// patience is how long an rsync container may take to get ready.
const patience = 30 * time.Second

// A firstLine waits for the first thing that a container says.
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

// wait returns how much disk space rsync-host says there is, in bytes.
func (f *firstLine) wait(ctx context.Context, c *engine.Container) (free int64, err error) {
	ended := make(chan error, 1)
	waiting, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("container %s: it was not ready within %v", c.Name, patience))
	defer cancel()
	go func() { ended <- c.Wait(waiting) }()
	select {
	case <-f.came:
	case err := <-ended:
		if err == nil {
			err = errors.New("it ended at once")
		}
		return 0, fmt.Errorf("container %s: %w", c.Name, err)
	}
	if _, err := fmt.Sscanf(string(f.text), "ready %d\n", &free); err != nil {
		return 0, fmt.Errorf("container %s: %s", c.Name, bytes.TrimSpace(f.text))
	}
	return free, nil
}
