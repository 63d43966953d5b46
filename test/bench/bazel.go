package main

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"slipway.build/pkg/make/project"
	"slipway.build/test/reapi"
)

// A bazelSide is a clone in which Bazel compiles, with a remote cache of its own.
type bazelSide struct {
	*sides
	server *reapi.Server
	cold   Sample // of the first build of all components
	packed bool   // it has made a release
}

// bazels returns the clone in which Bazel compiles, after a build of all components in it.
func (b *bench) bazels(ctx context.Context) (*bazelSide, error) {
	if b.bazel != nil {
		return b.bazel, nil
	}
	server, err := reapi.Start(ctx, filepath.Join(b.dir, "reapi"))
	if err != nil {
		return nil, &missing{err}
	}
	s, err := b.newSides(ctx, "bazel", false)
	if err != nil {
		server.Stop()
		return nil, err
	}
	side := &bazelSide{sides: s, server: server}
	b.bazel = side // its Bazel server must be ended from now on
	// Not measured: making the root that has Bazel, if there is none, and starting Bazel's server.
	if err := execute(ctx, s.make(ctx, "slipway"), nil); err != nil {
		return nil, err
	}
	if err := execute(ctx, side.run(ctx, "info", "release"), nil); err != nil {
		return nil, &missing{err}
	}
	side.cold, err = b.command(ctx, "bazel build //cmd/..., nothing there", side.build(ctx))
	return side, err
}

// run prepares a run of Bazel in the clone.
func (s *bazelSide) run(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(s.ours, project.Output, "bin", "slipway"), append([]string{"bazel", "--"}, args...)...)
	cmd.Dir, cmd.Env = s.ours, s.env
	return cmd
}

// build prepares a build of all components.
func (s *bazelSide) build(ctx context.Context) *exec.Cmd {
	return s.run(ctx, "build", "--config=release", "--config=remote", "--remote_cache=grpc://"+s.server.Address, "//cmd/...")
}

// release prepares a release by Bazel.
func (s *bazelSide) release(ctx context.Context) *exec.Cmd {
	return s.make(ctx, "quick-release", "ROAD=bazel")
}

// leave removes what Bazel made outside of the clone, and ends its server.
func (s *bazelSide) leave(err *error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	*err = errors.Join(*err, execute(ctx, s.make(ctx, "clean"), nil))
	s.server.Stop()
}

// bazelCold compiles all components twice: by Bazel, and by the local road.
func bazelCold(ctx context.Context, b *bench, row *Row) error {
	s, err := b.bazels(ctx)
	if err != nil {
		return err
	}
	row.Ours = []Sample{s.cold}
	p, err := s.project(ctx)
	if err != nil {
		return err
	}
	var names []string
	for _, bin := range p.Catalog.Binaries {
		if !bin.IsTest() && p.Catalog.IsComponent(bin) && slices.Contains(p.Catalog.PlatformsOf(bin), s.platform) {
			names = append(names, bin.Name)
		}
	}
	cmd := s.make(ctx, "all", "WHAT="+strings.Join(names, " "), "KUBE_BUILD_PLATFORMS="+s.platform.String())
	cmd.Dir = s.theirs
	cmd.Env = append(cmd.Env, "GOCACHE="+filepath.Join(b.dir, row.Name, "cache"))
	sample, err := b.command(ctx, "make of the same components, empty Go cache", cmd)
	row.Theirs = []Sample{sample}
	return err
}

// bazelRemote measures a clean build from a cache that has everything.
func bazelRemote(ctx context.Context, b *bench, row *Row) error {
	s, err := b.bazels(ctx)
	if err != nil {
		return err
	}
	row.Theirs = []Sample{s.cold}
	// buildbox considers a result that is a folder with subfolders (Go's standard library) incomplete until it has made it itself.
	// What depends on it may then be compiled once more.
	b.say("  the smallest component, by remote execution, and then what the cache does not have yet")
	executed := s.run(ctx, "build", "--config=release", "--config=remote", "--remote_cache=grpc://"+s.server.Address,
		"--remote_executor=grpc://"+s.server.Address, "--noremote_accept_cached", "//cmd:kube-log-runner")
	for _, cmd := range []*exec.Cmd{s.run(ctx, "clean"), executed, s.build(ctx)} {
		if err := execute(ctx, cmd, nil); err != nil {
			return err
		}
	}
	for range b.n {
		if err := execute(ctx, s.run(ctx, "clean"), nil); err != nil {
			return err
		}
		sample, err := b.command(ctx, "bazel build //cmd/... after bazel clean, warm remote cache", s.build(ctx))
		if err != nil {
			return err
		}
		row.Ours = append(row.Ours, sample)
	}
	return nil
}

// bazelNoop compares a release with nothing to do with a bare build with nothing to do.
func bazelNoop(ctx context.Context, b *bench, row *Row) error {
	s, err := b.bazels(ctx)
	if err != nil {
		return err
	}
	if !s.packed {
		b.say("  a release by Bazel")
		for _, cmd := range []*exec.Cmd{s.release(ctx), s.build(ctx)} {
			if err := execute(ctx, cmd, nil); err != nil {
				return err
			}
		}
		s.packed = true
	}
	c := contest{servers: true}
	c.ours = func() (Sample, error) { return b.command(ctx, "make quick-release, ROAD=bazel", s.release(ctx)) }
	c.theirs = func() (Sample, error) { return b.command(ctx, "bazel build //cmd/...", s.build(ctx)) }
	return c.warmly(b.n, row) // the first run finds files that another command has touched
}

// bazelTest runs unit tests of Kubernetes again, when nothing has changed since they passed.
func bazelTest(ctx context.Context, b *bench, row *Row) error {
	s, err := b.bazels(ctx)
	if err != nil {
		return err
	}
	const what, fails = "WHAT=k8s.io/apimachinery/... k8s.io/kubernetes/pkg/scheduler/...", " -@io_k8s_apimachinery//pkg/util/naming/..."
	c := contest{servers: true}
	c.ours = func() (Sample, error) {
		return b.command(ctx, "make bazel-test", s.make(ctx, "bazel-test", what+fails))
	}
	c.theirs = func() (Sample, error) {
		cmd := s.make(ctx, "test", what)
		cmd.Dir = s.theirs
		return b.command(ctx, "make test", cmd)
	}
	return c.warmly(b.n, row) // the first run tests
}
