package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"slipway.build/pkg/make/project"
	"slipway.build/test/reapi"
)

// A cacheSide is a server of a shared cache on loopback, and clones that use it.
type cacheSide struct {
	*sides
	server *reapi.Server
	keys   string   // folder of the pair of keys that signs results
	use    []string // environment of those who take results
	store  []string // of those who store them, too
	stored bool     // the server has a release of the commit
	clones int
}

// sharing returns a server without results, and clones that have made nothing.
func (b *bench) sharing(ctx context.Context) (*cacheSide, error) {
	if b.cache != nil {
		return b.cache, nil
	}
	server, err := reapi.Start(ctx, filepath.Join(b.dir, "shared-cache"))
	if err != nil {
		return nil, &missing{err}
	}
	c := &cacheSide{server: server, keys: filepath.Join(b.dir, "keys")}
	b.cache = c // its server must be ended from now on
	if c.sides, err = b.newSides(ctx, "cache", false); err != nil {
		return nil, err
	}
	if err := execute(ctx, c.make(ctx, "slipway"), nil); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(c.keys, 0o777); err != nil {
		return nil, err
	}
	pair := c.slipway(ctx, c.keys, []string{"COSIGN_PASSWORD="}, "keys", "new", "bench")
	c.at(server.Direct)
	return c, execute(ctx, pair, nil)
}

// at makes the environments of clones that reach the server at an address.
func (c *cacheSide) at(address string) {
	c.use = []string{"SLIPWAY_CACHE=grpc://" + address, "SLIPWAY_CACHE_KEYS=" + filepath.Join(c.keys, "bench.pub")}
	c.store = append(c.use[:len(c.use):len(c.use)],
		"SLIPWAY_CACHE_UPLOAD=true", "SLIPWAY_CACHE_SIGNING_KEY="+filepath.Join(c.keys, "bench.key"), "COSIGN_PASSWORD=")
}

// slipway prepares a run of the installed command in a folder.
func (c *cacheSide) slipway(ctx context.Context, dir string, env []string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(c.ours, project.Output, "bin", "slipway"), args...)
	cmd.Dir, cmd.Env = dir, append(c.env[:len(c.env):len(c.env)], env...)
	return cmd
}

// warmCache returns a server that has the results of a release, and a clone in which it is made.
func (b *bench) warmCache(ctx context.Context) (*cacheSide, error) {
	c, err := b.sharing(ctx)
	if err != nil || c.stored {
		return c, err
	}
	b.say("  a release whose results are stored, unmeasured")
	if err := execute(ctx, c.slipway(ctx, c.ours, c.store, "release", "--quick"), nil); err != nil {
		return nil, err
	}
	c.stored = true
	return c, nil
}

// fresh returns a new clone, and an environment with empty Go caches.
func (c *cacheSide) fresh(ctx context.Context) (dir string, env []string, err error) {
	c.clones++
	home := filepath.Join(c.dir, "cache", fmt.Sprint("clone-", c.clones))
	dir = filepath.Join(home, "tree")
	env = []string{"GOCACHE=" + filepath.Join(home, "build"), "GOMODCACHE=" + filepath.Join(home, "modules"),
		"XDG_CACHE_HOME=" + filepath.Join(home, "cache")}
	return dir, env, c.git(ctx, c.root, "clone", "--quiet", c.ours, dir)
}

// far is how much longer requests take to a server that is in another building.
const far = 20 * time.Millisecond

// delayed measures a row with a server that answers later.
func delayed(by time.Duration, measure func(context.Context, *bench, *Row) error) func(context.Context, *bench, *Row) error {
	return func(ctx context.Context, b *bench, row *Row) error {
		c, err := b.warmCache(ctx)
		if err != nil {
			return err
		}
		c.server.Delay(by)
		defer c.server.Delay(0)
		c.at(c.server.Address) // the proxy delays
		defer c.at(c.server.Direct)
		return measure(ctx, b, row)
	}
}

// cacheEdit measures a release in a fresh clone with empty caches of Go in which one line was edited, of results, packages and modules that
// another one has stored, against the same edit where everything was made before.
func cacheEdit(ctx context.Context, b *bench, row *Row) error {
	c, err := b.warmCache(ctx)
	if err != nil {
		return err
	}
	binary := func(dir string) string {
		return filepath.Join(dir, project.Output, "local", "bin", c.platform.OS, c.platform.Arch, edited)
	}
	measure := func(name, dir string, env []string) (Sample, error) {
		mark, err := c.edit(dir)
		if err != nil {
			return Sample{}, err
		}
		sample, err := b.command(ctx, name, c.slipway(ctx, dir, env, "release", "--quick"))
		if err != nil {
			return sample, err
		}
		return sample, holds(binary(dir), mark)
	}
	contest := contest{
		servers: true,
		ours: func() (Sample, error) {
			dir, env, err := c.fresh(ctx)
			if err != nil {
				return Sample{}, err
			}
			sample, err := measure("slipway release --quick after an edit in a fresh clone", dir, append(env, c.use...))
			return sample, errors.Join(err, removeAll(filepath.Dir(dir)))
		},
		theirs: func() (Sample, error) { return measure("slipway release --quick after an edit", c.ours, nil) },
		before: func() error { // the edit is of a clean tree in both, and the first one: nothing was linked with a dirty version
			if err := c.git(ctx, c.ours, "checkout", "--quiet", "."); err != nil {
				return err
			}
			if err := execute(ctx, c.slipway(ctx, c.ours, nil, "release", "--quick"), nil); err != nil {
				return err
			}
			return os.RemoveAll(filepath.Join(c.ours, project.State, "links"))
		},
	}
	if err := contest.rounds(b.n, row); err != nil {
		return err
	}
	return contest.before()
}

// cacheCommit measures a release of a new commit in a fresh clone with empty caches of Go, of what another one has stored of the commit
// before, against the same commit where that was made.
func cacheCommit(ctx context.Context, b *bench, row *Row) error {
	c, err := b.warmCache(ctx)
	if err != nil {
		return err
	}
	var dir string
	contest := contest{
		servers: true,
		before:  func() error { return c.commit(ctx) },
		ours: func() (Sample, error) {
			fresh, env, err := c.fresh(ctx)
			if err != nil {
				return Sample{}, err
			}
			dir = fresh
			return b.command(ctx, "slipway release --quick of a new commit in a fresh clone",
				c.slipway(ctx, dir, append(env, c.use...), "release", "--quick"))
		},
		theirs: func() (Sample, error) {
			return b.command(ctx, "slipway release --quick of a new commit", c.slipway(ctx, c.ours, nil, "release", "--quick"))
		},
		after: func() error { return errors.Join(c.sameSums(dir, c.ours), removeAll(filepath.Dir(dir))) },
	}
	return contest.rounds(b.n, row)
}

// removeAll removes a folder in which a module cache has made folders that nobody may write to.
func removeAll(dir string) error {
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = os.Chmod(name, 0o755)
		}
		return err
	})
	return errors.Join(err, os.RemoveAll(dir))
}

// cacheClone measures a release in a fresh clone, of results that another one has stored.
func cacheClone(ctx context.Context, b *bench, row *Row) error {
	c, err := b.warmCache(ctx)
	if err != nil {
		return err
	}
	for range b.n {
		dir, env, err := c.fresh(ctx)
		if err != nil {
			return err
		}
		sample, err := b.command(ctx, "slipway release --quick in a fresh clone",
			c.slipway(ctx, dir, append(env, c.use...), "release", "--quick"))
		if err != nil {
			return err
		}
		row.Ours = append(row.Ours, sample)
		if err := c.sameSums(dir, c.ours); err != nil {
			return err
		}
		if err := removeAll(filepath.Dir(dir)); err != nil {
			return err
		}
	}
	return nil
}

// sameSums checks that two clones have the same release.
func (c *cacheSide) sameSums(one, other string) error {
	var sums []string
	for _, dir := range []string{one, other} {
		text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(project.Tars), "SHA256SUMS"))
		if err != nil {
			return err
		}
		sums = append(sums, string(text))
	}
	if sums[0] != sums[1] {
		return errors.New("a release of the cache is another one than was stored")
	}
	return nil
}

// cacheNoop measures a release with nothing to do, with the cache configured and without.
func cacheNoop(ctx context.Context, b *bench, row *Row) error {
	c, err := b.warmCache(ctx)
	if err != nil {
		return err
	}
	run := func(name string, env ...string) measurement {
		return func() (Sample, error) { return b.command(ctx, name, c.slipway(ctx, c.ours, env, "release", "--quick")) }
	}
	contest := contest{servers: true, ours: run("slipway release --quick with the cache", c.use...),
		theirs: run("slipway release --quick without")}
	return contest.warmly(b.n, row) // the first run finds files that another command has touched
}

// cacheCold is measured once: it compiles all of Kubernetes and of the other projects twice.
func cacheCold(ctx context.Context, b *bench, row *Row) error {
	c, err := b.sharing(ctx)
	if err != nil {
		return err
	}
	if c.stored {
		return errors.New("the cache is not empty any more: measure this row first")
	}
	var dirs []string
	run := func(name string, env ...string) measurement {
		return func() (Sample, error) {
			dir, caches, err := c.fresh(ctx)
			if err != nil {
				return Sample{}, err
			}
			dirs = append(dirs, dir)
			caches = caches[:1] // modules and Debian packages are there
			return b.command(ctx, name, c.slipway(ctx, dir, append(caches, env...), "release", "--quick"))
		}
	}
	contest := contest{
		servers: true,
		ours:    run("slipway release --quick, cold, and its results are stored", c.store...),
		theirs:  run("slipway release --quick, cold"),
		after:   func() error { return c.sameSums(dirs[0], dirs[1]) },
	}
	if err := contest.rounds(1, row); err != nil {
		return err
	}
	for _, dir := range dirs {
		if err := removeAll(filepath.Dir(dir)); err != nil {
			return err
		}
	}
	return nil
}
