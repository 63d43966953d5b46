package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"slipway.build/pkg/build/plan"
)

// longRows are rows that take more than an hour, and are measured only by name.
func longRows() []*Row {
	return []*Row{{
		Name: "cache-platforms", Unit: "s", What: "release of all platforms with the test set, in a fresh clone with empty Go caches, from a shared cache",
		With: "curl of the same files from a file server", Wanted: Bound{AtMost, 1.5}, measure: cachePlatforms,
	}}
}

// forgotten is how long ext4 without a journal avoids the inodes of removed files. Until then, it skips them one by one whenever it creates a
// file.
const forgotten = 6 * time.Minute

// forget waits until files that were removed slow down no new ones.
func (b *bench) forget(ctx context.Context) error {
	b.say("  %v until removed files slow down no new ones, unmeasured", forgotten)
	select {
	case <-time.After(forgotten):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// cachePlatforms measures a release of all platforms with the test set in a fresh clone with empty Go caches, of results that others have
// stored, against curl that downloads the same files from a file server on loopback. Before that, jobs of one platform each make the release.
func cachePlatforms(ctx context.Context, b *bench, row *Row) error {
	c, err := b.sharing(ctx)
	if err != nil {
		return err
	}
	p, err := c.project(ctx)
	if err != nil {
		return err
	}
	for _, platform := range p.Catalog.AllPlatforms() {
		if err := c.job(ctx, platform != c.platform, "--platform", platform.String(), "--inputs=false"); err != nil {
			return err
		}
	}
	b.say("  a job that makes a release of their results, unmeasured")
	if err := execute(ctx, c.slipway(ctx, c.ours, c.store, "release"), nil); err != nil {
		return err
	}
	if err := b.forget(ctx); err != nil {
		return err
	}
	files, stop, err := serve(filepath.Join(c.ours, filepath.FromSlash(plan.Tars)))
	if err != nil {
		return err
	}
	defer stop()
	contest := contest{
		ours: func() (Sample, error) {
			dir, env, err := c.fresh(ctx)
			if err != nil {
				return Sample{}, err
			}
			sample, err := b.command(ctx, "slipway release in a fresh clone", c.slipway(ctx, dir, append(env, c.use...), "release"))
			if err == nil {
				err = c.sameSums(dir, c.ours)
			}
			if err != nil {
				return sample, err
			}
			return sample, os.RemoveAll(filepath.Join(dir, filepath.FromSlash(plan.Tars))) // the small files stay, see forgotten
		},
		theirs: func() (Sample, error) { return b.download(ctx, c.dir, files) },
	}
	return contest.rounds(b.n, row)
}

// job makes a part of a release in a fresh clone, and stores it, unmeasured. Its packages are in a Go cache of its own, which would fill
// disks if it was kept, or in that of the user, which is likely to have them.
func (c *cacheSide) job(ctx context.Context, ownGoCache bool, args ...string) error {
	c.say("  release %s, unmeasured", strings.Join(args, " "))
	dir, caches, err := c.fresh(ctx)
	if err != nil {
		return err
	}
	var goCache []string
	if ownGoCache {
		goCache = caches[:1] // modules and Debian packages are there
	}
	run := func(env []string) error {
		return execute(ctx, c.slipway(ctx, dir, slices.Concat(goCache, env), append([]string{"release"}, args...)...), nil)
	}
	err = run(nil)
	if err == nil { // what is made already is stored without the packages that it was compiled of
		err = run(c.store)
	}
	return errors.Join(err, removeAll(filepath.Dir(dir)))
}

// serve serves the files below a folder on loopback, and returns what curl has to be told to download them.
func serve(dir string) (config string, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{Handler: http.FileServer(http.Dir(dir))}
	go func() { _ = server.Serve(l) }() // until it is closed
	err = fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			config += fmt.Sprintf("url = http://%s/%s\noutput = %s\ncreate-dirs\n", l.Addr(), name, name)
		}
		return err
	})
	if err != nil {
		return "", nil, errors.Join(err, server.Close())
	}
	return config, func() { _ = server.Close() }, nil
}
