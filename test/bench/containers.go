package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/filters"

	"slipway.build/pkg/make/roads"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/engine"
)

// A pair is two clones in which slipway works: one by the container road, one by the local road.
type pair struct {
	*sides
	away    []string // environment of the container road
	settled bool     // each has built a release
}

// newPair clones the tree twice, and compiles the mage targets of both. The engine gets the build image, if it lacks it, and nothing
// else.
func (b *bench) newPair(ctx context.Context, name string) (*pair, error) {
	e, err := engine.Connect(ctx)
	if err != nil {
		return nil, &missing{err}
	}
	defer e.Close()
	s, err := b.newSides(ctx, name, false)
	if err != nil {
		return nil, err
	}
	p := &pair{sides: s, away: append(s.env[:len(s.env):len(s.env)], "ROAD=container")}
	for _, cmd := range []*exec.Cmd{p.local(ctx, "help"), p.container(ctx, "help")} {
		if err := execute(ctx, cmd, nil); err != nil {
			return nil, err
		}
	}
	project, err := p.project(ctx)
	if err != nil {
		return nil, err
	}
	b.say("  building the build image, if the engine does not have it")
	_, _, err = project.Roads.Containers().Image.Ensure(ctx, e, engine.OwnerOf(p.ours), nil)
	return p, err
}

// container prepares a run of make by the container road, local one by the local road.
func (p *pair) container(ctx context.Context, args ...string) *exec.Cmd {
	cmd := p.make(ctx, args...)
	cmd.Env = p.away
	return cmd
}

func (p *pair) local(ctx context.Context, args ...string) *exec.Cmd {
	cmd := p.make(ctx, args...)
	cmd.Dir = p.theirs
	return cmd
}

// leave removes what the clones have in the engine.
func (p *pair) leave(err *error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	*err = errors.Join(*err, execute(ctx, p.container(ctx, "clean"), nil))
}

// binaryOf returns the path of a binary in a road's clone.
func (p *pair) binaryOf(clone, road, name string) string {
	return filepath.Join(clone, filepath.FromSlash(roads.Output(road)), p.platform.OS, p.platform.Arch, name)
}

// equal checks that both roads have made the same binaries.
func (p *pair) equal() error {
	for _, b := range p.binaries {
		ours, err := sum(p.binaryOf(p.ours, "container", b.Name))
		if err != nil {
			return err
		}
		theirs, err := sum(p.binaryOf(p.theirs, "local", b.Name))
		if err != nil {
			return err
		}
		if ours != theirs {
			return fmt.Errorf("%s: the container road made another one than the local road: %s, not %s", b.Name, ours, theirs)
		}
	}
	return nil
}

// containerCold compiles all of Kubernetes twice. The engine's volumes are empty, and so is the local road's Go cache.
func containerCold(ctx context.Context, b *bench, row *Row) (err error) {
	p, err := b.newPair(ctx, row.Name)
	if err != nil {
		return err
	}
	if b.away == nil {
		b.away = p // the other rows continue with it
	} else {
		defer p.leave(&err)
	}
	platform := "KUBE_BUILD_PLATFORMS=" + p.platform.String()
	c := contest{after: p.equal, servers: true}
	c.ours = func() (Sample, error) {
		return b.command(ctx, "make, cold, ROAD=container", p.container(ctx, "all", platform))
	}
	c.theirs = func() (Sample, error) {
		cmd := p.local(ctx, "all", platform)
		cmd.Env = append(cmd.Env, "GOCACHE="+filepath.Join(b.dir, row.Name, "cache"))
		return b.command(ctx, "make, cold", cmd)
	}
	return c.rounds(1, row)
}

// settled returns two clones, each of which has built a release by its road, unmeasured.
func (b *bench) settled(ctx context.Context) (*pair, error) {
	if b.away == nil {
		p, err := b.newPair(ctx, "containers")
		if err != nil {
			return nil, err
		}
		b.away = p // it has something in the engine from now on
	}
	p := b.away
	if p.settled {
		return p, nil
	}
	b.say("  building both once (all of Kubernetes, in the engine, if it has not)")
	for _, cmd := range []*exec.Cmd{p.container(ctx, "quick-release"), p.local(ctx, "quick-release")} {
		if err := execute(ctx, cmd, nil); err != nil {
			return nil, err
		}
	}
	p.settled = true
	return p, p.equal()
}

func containerNoop(ctx context.Context, b *bench, row *Row) error {
	p, err := b.settled(ctx)
	if err != nil {
		return err
	}
	since := time.Now()
	for i := range b.n + 1 {
		sample, err := b.command(ctx, "make quick-release, ROAD=container", p.container(ctx, "quick-release"))
		if err != nil {
			return err
		}
		if i > 0 { // the first run finds files that another command has touched
			row.Ours = append(row.Ours, sample)
		}
	}
	return p.quiet(ctx, since)
}

// quiet checks that the engine started none of the clone's containers.
func (p *pair) quiet(ctx context.Context, since time.Time) error {
	e, err := engine.Connect(ctx)
	if err != nil {
		return err
	}
	defer e.Close()
	instant := func(t time.Time) string { return fmt.Sprintf("%d.%09d", t.Unix(), t.Nanosecond()) }
	happened, failed := e.Client.Events(ctx, events.ListOptions{
		Since: instant(since),
		Until: instant(time.Now()),
		Filters: filters.NewArgs(filters.Arg("type", "container"), filters.Arg("event", "start"),
			filters.Arg("label", engine.TreeLabel+"="+engine.OwnerOf(p.ours).ID)),
	})
	for {
		select {
		case h := <-happened:
			return fmt.Errorf("nothing had to be done, and the engine started container %s", h.Actor.Attributes["name"])
		case err := <-failed:
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}

func containerEdit(ctx context.Context, b *bench, row *Row) error {
	p, err := b.settled(ctx)
	if err != nil {
		return err
	}
	c := contest{servers: true}
	c.ours = func() (Sample, error) {
		return p.edited(ctx, p.ours, p.binaryOf(p.ours, "container", edited),
			func() (*exec.Cmd, error) { return p.container(ctx, "quick-release"), nil })
	}
	c.theirs = func() (Sample, error) {
		return p.edited(ctx, p.theirs, p.binaryOf(p.theirs, "local", edited),
			func() (*exec.Cmd, error) { return p.local(ctx, "quick-release"), nil })
	}
	// Unmeasured first: an edit of a clean tree changes the stamp.
	return c.warmly(b.n, row)
}

// containerSync measures how long it takes to find that the engine has the same sources and modules.
func containerSync(ctx context.Context, b *bench, row *Row) error {
	if b.away == nil {
		p, err := b.newPair(ctx, "containers")
		if err != nil {
			return err
		}
		b.away = p
	}
	for i := range b.n + 1 {
		project, err := b.away.project(ctx)
		if err != nil {
			return err
		}
		var found syncs
		sample, err := b.time(ctx, "engine, image, data container, sources and modules looked at", func() error {
			return project.Roads.Containers(project.Catalog.Module).Open(ctx, found.event)
		})
		if err != nil {
			return err
		}
		if i == 0 { // it may have sent something
			continue
		}
		if found.unchanged != 2 {
			return errors.New("sources and modules were sent that had not changed")
		}
		sample.Value = found.longest.Seconds() // they are compared in parallel
		b.say("  %8.2f s  of it for sources and modules", sample.Value)
		row.Ours = append(row.Ours, sample)
	}
	return nil
}

// syncs are the steps in which a road found that it need not send sources or modules.
type syncs struct {
	mu        sync.Mutex
	unchanged int
	longest   time.Duration
}

func (s *syncs) event(e action.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.Kind == action.Step && strings.HasSuffix(e.Text, " are up to date") {
		s.unchanged++
		s.longest = max(s.longest, e.Duration)
	}
}
