package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"slipway.build/pkg/make/plan"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/tree/catalog"
)

// cold is measured once: it compiles all of Kubernetes twice.
func cold(ctx context.Context, b *bench, row *Row) error {
	s, err := b.newSides(ctx, row.Name, true)
	if err != nil {
		return err
	}
	if err := s.makeThirdParty(ctx); err != nil {
		return err
	}
	return s.cold(ctx, b, row)
}

// first is like cold, and compiles other projects' programs, too.
func first(ctx context.Context, b *bench, row *Row) error {
	s, err := b.newSides(ctx, row.Name, true)
	if err != nil {
		return err
	}
	b.first = row
	return s.cold(ctx, b, row)
}

// firstProcessor has the processor time of first, which other work on the machine changes less than the time.
func firstProcessor(ctx context.Context, b *bench, row *Row) error {
	if b.first == nil {
		if err := first(ctx, b, &Row{Name: "first"}); err != nil {
			return err
		}
	}
	processor := func(samples []Sample) (of []Sample) {
		for _, s := range samples {
			of = append(of, Sample{Value: s.Processor})
		}
		return of
	}
	row.Ours, row.Theirs = processor(b.first.Ours), processor(b.first.Theirs)
	return nil
}

func (s *sides) cold(ctx context.Context, b *bench, row *Row) error {
	c := contest{after: s.same}
	c.ours = func() (Sample, error) {
		return b.command(ctx, "make quick-release, cold", s.make(ctx, "quick-release"))
	}
	c.theirs = func() (Sample, error) {
		cmd, err := s.goBuild(ctx, s.platform, s.binaries...)
		if err != nil {
			return Sample{}, err
		}
		return b.command(ctx, "go build, cold", cmd)
	}
	return c.rounds(1, row)
}

// crossed are the platforms of the row "cross".
var crossed = []catalog.Platform{{OS: "linux", Arch: "arm64"}, {OS: "darwin", Arch: "arm64"}, {OS: "windows", Arch: "amd64"}}

// cross is measured once: it compiles Kubernetes for three platforms twice.
func cross(ctx context.Context, b *bench, row *Row) error {
	s, err := b.newSides(ctx, row.Name, true)
	if err != nil {
		return err
	}
	p, err := s.project(ctx)
	if err != nil {
		return err
	}
	var names []string
	for _, on := range crossed {
		names = append(names, on.String())
	}
	c := contest{}
	c.ours = func() (Sample, error) {
		return b.command(ctx, "make cross, cold", s.make(ctx, "cross", "KUBE_BUILD_PLATFORMS="+strings.Join(names, " ")))
	}
	c.theirs = func() (sum Sample, err error) {
		for _, on := range crossed {
			cmd, err := s.goBuild(ctx, on, slices.DeleteFunc(p.Catalog.Default(), func(b catalog.Binary) bool {
				return !slices.Contains(p.Catalog.PlatformsOf(b), on)
			})...)
			if err != nil {
				return sum, err
			}
			one, err := b.command(ctx, "go build for "+on.String()+", cold", cmd)
			if err != nil {
				return sum, err
			}
			sum = Sample{Value: sum.Value + one.Value, Memory: max(sum.Memory, one.Memory), Processor: sum.Processor + one.Processor,
				Others: max(sum.Others, one.Others)}
		}
		return sum, nil
	}
	return c.rounds(1, row)
}

// makeThirdParty builds the third-party parts of a quick release in slipway's clone, with the user's Go cache.
func (s *sides) makeThirdParty(ctx context.Context) error {
	p, err := open(ctx, s.ours, environment(os.Environ()))
	if err != nil {
		return err
	}
	g, _, err := plan.ThirdParty(ctx, p, s.platform)
	if err != nil {
		return err
	}
	s.say("  building the third-party parts of a release, unmeasured")
	return g.Run(ctx, action.Options{})
}

// warmed returns sides that have built everything once, unmeasured.
func (b *bench) warmed(ctx context.Context) (*sides, error) {
	if b.warm != nil {
		return b.warm, nil
	}
	s, err := b.newSides(ctx, "warm", false)
	if err != nil {
		return nil, err
	}
	b.say("  building both sides once (all of Kubernetes, if the Go cache does not have it)")
	if err := s.settle(ctx); err != nil {
		return nil, err
	}
	b.warm = s
	return s, nil
}

// settle builds everything on both sides as it is now, unmeasured.
func (s *sides) settle(ctx context.Context) error {
	if err := execute(ctx, s.make(ctx, "quick-release"), nil); err != nil {
		return err
	}
	cmd, err := s.goBuild(ctx, s.platform, s.binaries...)
	if err != nil {
		return err
	}
	return execute(ctx, cmd, nil)
}

func noop(ctx context.Context, b *bench, row *Row) error {
	s, err := b.warmed(ctx)
	if err != nil {
		return err
	}
	c := contest{ours: func() (Sample, error) { return b.command(ctx, "make quick-release", s.make(ctx, "quick-release")) }}
	return c.warmly(b.n, row) // the first run finds files that another command has touched
}

// edit measures make, with arguments, after an edit of one component's source in a tree that was dirty before.
func edit(args ...string) func(context.Context, *bench, *Row) error {
	return func(ctx context.Context, b *bench, row *Row) error {
		s, err := b.warmed(ctx)
		if err != nil {
			return err
		}
		platform := s.platform
		if args[0] != "quick-release" {
			platform = catalog.Host() // make builds for the machine it runs on
		}
		var binary catalog.Binary
		for _, bin := range s.binaries {
			if bin.Name == edited {
				binary = bin
			}
		}
		c := contest{}
		c.ours = func() (Sample, error) {
			return s.edited(ctx, s.ours, s.ourBinary(platform, edited), func() (*exec.Cmd, error) { return s.make(ctx, args...), nil })
		}
		c.theirs = func() (Sample, error) {
			return s.edited(ctx, s.theirs, s.theirBinary(platform, edited), func() (*exec.Cmd, error) { return s.goBuild(ctx, platform, binary) })
		}
		// Unmeasured first: an edit of a clean tree changes the stamp.
		return c.warmly(b.n, row)
	}
}

// edited measures a build after an edit in a clone.
func (s *sides) edited(ctx context.Context, clone, binary string, build func() (*exec.Cmd, error)) (Sample, error) {
	mark, err := s.edit(clone)
	if err != nil {
		return Sample{}, err
	}
	cmd, err := build()
	if err != nil {
		return Sample{}, err
	}
	name := filepath.Base(cmd.Path)
	if name == "make" {
		name += " " + cmd.Args[1]
	}
	sample, err := s.command(ctx, name+" after an edit", cmd)
	if err != nil {
		return sample, err
	}
	return sample, holds(binary, mark)
}

func commit(ctx context.Context, b *bench, row *Row) error {
	s, err := b.warmed(ctx)
	if err != nil {
		return err
	}
	if err := s.even(); err != nil {
		return err
	}
	// The stamp before is one of a clean tree, too.
	if err := s.commit(ctx); err != nil {
		return err
	}
	if err := s.settle(ctx); err != nil {
		return err
	}
	c := contest{before: func() error { return s.commit(ctx) }, after: s.same}
	c.ours = func() (Sample, error) {
		return s.command(ctx, "make quick-release after a commit", s.make(ctx, "quick-release"))
	}
	c.theirs = func() (Sample, error) {
		cmd, err := s.goBuild(ctx, s.platform, s.binaries...)
		if err != nil {
			return Sample{}, err
		}
		return s.command(ctx, "go build with the new stamp", cmd)
	}
	return c.rounds(b.n, row)
}
