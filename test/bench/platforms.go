package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"slipway.build/pkg/build/plan"
)

// longRows are rows that take more than an hour, and are measured only by name.
func longRows() []*Row {
	return []*Row{{
		Name: "cache-platforms", Unit: "s", What: "release of all platforms with the test set, in a fresh clone with empty Go caches, from a shared cache",
		With: "curl of the same files from a file server", Wanted: Bound{AtMost, 1.5}, measure: cachePlatforms,
	}}
}

// cachePlatforms measures a release of all platforms with the test set in a fresh clone with empty Go caches, of results that another one has
// stored, against curl that downloads the same files from a file server on loopback. Before that, it makes all of the release.
func cachePlatforms(ctx context.Context, b *bench, row *Row) error {
	c, err := b.sharing(ctx)
	if err != nil {
		return err
	}
	b.say("  a release of all platforms, unmeasured")
	for _, env := range [][]string{nil, c.store} { // what is made already is stored without the packages that it was compiled of
		if err := execute(ctx, c.slipway(ctx, c.ours, env, "release"), nil); err != nil {
			return err
		}
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
			return sample, errors.Join(err, removeAll(filepath.Dir(dir)))
		},
		theirs: func() (Sample, error) {
			to := filepath.Join(c.dir, "cache", "downloaded")
			if err := os.MkdirAll(to, 0o777); err != nil {
				return Sample{}, err
			}
			cmd := exec.CommandContext(ctx, "curl", "--fail", "--silent", "--show-error", "--config", "-")
			cmd.Dir, cmd.Stdin = to, strings.NewReader(files)
			sample, err := b.command(ctx, "curl of the same files", cmd)
			return sample, errors.Join(err, os.RemoveAll(to))
		},
	}
	return contest.rounds(b.n, row)
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
