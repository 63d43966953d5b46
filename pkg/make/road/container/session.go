package container

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/docker/go-units"
	"golang.org/x/sync/errgroup"

	"slipway.build/pkg/make/kubecross"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/engine"
	"slipway.build/pkg/mechanism/transfer"
)

// A session is an engine that is ready for compiles of the tree as it is now.
type session struct {
	engine *engine.Engine
	owner  engine.Owner
	image  string
	empty  bool // the volumes are new

	mu        sync.Mutex
	generated []string // folders that were sent, see generated
}

// open makes the engine ready at the first call of a run; later calls return the same session, unless the first failed. The
// first caller also gets the rsync container that received the sources; it may fetch files from it, and must remove it.
func (r *Road) open(ctx context.Context, rep action.Report) (*session, *host, error) {
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
		return nil, nil, s.cause(watched, err)
	}
	r.session = s
	return s, h, nil
}

// Open makes the engine ready before the first command, for callers that must do so while they hold a lock.
func (r *Road) Open(ctx context.Context, rep action.Report) error {
	_, h, err := r.open(ctx, rep)
	return errors.Join(err, h.remove())
}

// sourceModule returns the rsync module that receives the sources.
func (r *Road) sourceModule() string {
	if r.Work {
		return "work"
	}
	return "tree"
}

// dial checks this machine's rsync, and connects to the engine.
func dial(ctx context.Context) (*engine.Engine, error) {
	if runtime.GOOS == "windows" {
		return nil, errors.New("the container road needs a Unix machine, such as WSL")
	}
	if _, err := transfer.Client(ctx); err != nil {
		return nil, err
	}
	return engine.Connect(ctx)
}

// connect connects to the engine, removes what killed runs left there, and makes the image and the data container.
func (r *Road) connect(ctx context.Context, rep action.Report) (*session, error) {
	s := &session{owner: engine.OwnerOf(r.Root)}
	err := step(rep, "looking for a container engine", func() (text string, err error) {
		if s.engine, err = dial(ctx); err != nil {
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
		return nil, s.cause(ctx, err)
	}
	if len(left) > 0 {
		rep.Step(fmt.Sprintf("removed what a killed run left: %s", strings.Join(left, ", ")), 0)
	}
	if r.Used != nil {
		if err := r.Used(); err != nil {
			return nil, err
		}
	}
	err = step(rep, "looking for the build image", func() (string, error) {
		ref, built, err := r.Image.Ensure(ctx, s.engine, s.owner, rep.Progress)
		s.image = ref
		if built {
			return "built image " + ref, err
		}
		return "", err
	})
	if err != nil {
		return nil, s.cause(ctx, err)
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
		return nil, s.cause(ctx, err)
	}
	// Build images of this tree that no longer match images/kube-cross go.
	_, err = kubecross.Tidy(ctx, s.engine, s.owner, s.image)
	return s, s.cause(ctx, err)
}

// Clean removes all that the tree in root has in an engine, and returns the names.
func Clean(ctx context.Context, root string) (removed []string, err error) {
	e, err := engine.Connect(ctx)
	if err != nil {
		return nil, err
	}
	defer e.Close()
	owner := engine.OwnerOf(root)
	containers, err1 := e.RemoveContainers(ctx, owner)
	volumes, err2 := e.RemoveVolumes(ctx, owner)
	images, err3 := kubecross.Tidy(ctx, e, owner, "")
	return slices.Concat(containers, volumes, images), errors.Join(err1, err2, err3)
}

// step does a part of the work, and reports what was done unless that is empty.
func step(rep action.Report, doing string, do func() (done string, err error)) error {
	rep.Progress(doing)
	start := time.Now()
	done, err := do()
	if err == nil && done != "" {
		rep.Step(done, time.Since(start))
	}
	return err
}

// cause returns what caused an error: the end of a context, the loss of the engine, or the error itself.
func (s *session) cause(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		var lost *engine.LostError
		if errors.As(context.Cause(ctx), &lost) {
			return lost
		}
		return ctx.Err()
	}
	return s.engine.Lost(err)
}

// Free disk space that the engine must have, in bytes: at first, before caches and binaries of a platform's components fill about
// 5 GiB, and later.
const (
	leastAtFirst = 6 << 30
	leastLater   = 512 << 20
)

// send updates the engine's copies of the tree and of the modules, and returns the running rsync container that it used.
func (r *Road) send(ctx context.Context, s *session, rep action.Report) (h *host, err error) {
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
	// Both mostly wait for the other end, so they run side by side.
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() error {
		return step(rep, "sending modules", func() (string, error) {
			stats, err := h.Add(ctx, "modules", downloads.folder, downloads.files)
			return sent("modules", stats), err
		})
	})
	both.Go(func() error {
		return step(rep, "sending sources", func() (string, error) {
			stats, err := h.Mirror(ctx, r.sourceModule(), r.Root, names, "_output")
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
		return fmt.Errorf("docker engine at %s: %s of disk space left, and a build needs about %s: free some (docker system df, docker "+
			"system prune)",
			s.engine.Address, units.HumanSize(float64(free)), units.HumanSize(float64(least)))
	}
	return nil
}
