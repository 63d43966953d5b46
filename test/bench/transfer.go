package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/reapi"
	"slipway.build/pkg/mechanism/sharedcache"
	"slipway.build/pkg/mechanism/signature"
)

// A synthetic release is results of actions, about as many and as large as those of a release of all platforms with the test set, but of random
// bytes. It takes a minute to make, and not hours.
const (
	levels  = 10 // of small files; each action reads one of the level before
	width   = 61
	largeIn = "tars" // folder
)

// tarballSizes returns the sizes of tarballs, in bytes: as many of each kind as there are platforms with it, and as large as those of linux/amd64.
func tarballSizes() []int64 {
	return slices.Concat(
		slices.Repeat([]int64{38_000_000}, 11), // client
		slices.Repeat([]int64{98_000_000}, 5),  // node
		slices.Repeat([]int64{558_000_000}, 4), // server
		slices.Repeat([]int64{289_000_000}, 8), // test
		[]int64{1_300_000_000},                 // inputs
	)
}

// synthetic returns the graph of a synthetic release in a folder.
func synthetic(dir string) *action.Graph {
	g := &action.Graph{Root: dir, State: ".slipway"}
	add := func(output string, seed int, size int64, inputs ...string) {
		g.Actions = append(g.Actions, &action.Action{
			ID: output, Phase: largeIn, Recipe: []string{fmt.Sprint(seed, size)}, Inputs: inputs, Outputs: []string{output},
			Run: func(_ context.Context, t *action.Task) error { return random(t.Path(output), seed, size) },
		})
	}
	part := func(level, i int) string { return fmt.Sprintf("parts/%d/%d", level, i) }
	for level := range levels {
		for i := range width {
			var inputs []string
			if level > 0 {
				inputs = []string{part(level-1, i)}
			}
			add(part(level, i), level*width+i, 4096, inputs...)
		}
	}
	for i, size := range tarballSizes() {
		add(fmt.Sprintf("%s/%d", largeIn, i), -1-i, size, part(levels-1, i))
	}
	return g
}

// random writes a file of random bytes, which are the same each time.
func random(name string, seed int, size int64) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	source := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	if _, err := io.CopyN(f, source, size); err != nil {
		return err
	}
	return f.Close()
}

// cacheTransfer measures a run that takes the results of a synthetic release, and fetches its large files, against curl that downloads the same files from a
// file server on loopback.
func cacheTransfer(ctx context.Context, b *bench, row *Row) error {
	c, err := b.sharing(ctx)
	if err != nil {
		return err
	}
	key, err := signature.New()
	if err != nil {
		return err
	}
	// run makes the release in a folder, with a new client.
	run := func(dir string, o sharedcache.Options) (sharedcache.Counts, error) {
		var err error
		if o.Client, err = reapi.New(reapi.Options{URL: "grpc://" + c.server.Direct}); err != nil {
			return sharedcache.Counts{}, err
		}
		defer o.Client.Close()
		o.Notify = func(text string) { b.say("  %s", text) }
		cache := sharedcache.New(o)
		err = synthetic(dir).Run(ctx, action.Options{Cache: cache, Wanted: []string{largeIn + "/"}})
		return cache.Counts(), err
	}
	made := filepath.Join(c.dir, "synthetic")
	defer debug.SetGCPercent(debug.SetGCPercent(200)) // as in the command
	b.say("  a synthetic release is made and stored, unmeasured")
	if _, err := run(made, sharedcache.Options{Sign: &key}); err != nil {
		return err
	}
	files, stop, err := serve(filepath.Join(made, largeIn))
	if err != nil {
		return err
	}
	defer stop()
	if c.clones > 0 {
		if err := b.forget(ctx); err != nil {
			return err
		}
	}
	contest := contest{
		ours: func() (Sample, error) {
			dir, err := os.MkdirTemp(c.dir, "taken-") // only its large files are removed soon, see forgotten
			if err != nil {
				return Sample{}, err
			}
			sample, err := b.time(ctx, "a run that takes them from the cache", func() error {
				counts, err := run(dir, sharedcache.Options{Keys: []signature.PublicKey{key.Public()}})
				if err == nil && counts.Hits != int64(len(synthetic(dir).Actions)) {
					err = fmt.Errorf("it took %d of %d results", counts.Hits, len(synthetic(dir).Actions))
				}
				return err
			})
			if err != nil {
				return sample, err
			}
			return sample, os.RemoveAll(filepath.Join(dir, largeIn))
		},
		theirs: func() (Sample, error) { return b.download(ctx, c.dir, files) },
	}
	return errors.Join(contest.rounds(b.n, row), os.RemoveAll(made))
}

// download measures curl that downloads files into a new folder, which is removed.
func (b *bench) download(ctx context.Context, dir, files string) (Sample, error) {
	to, err := os.MkdirTemp(dir, "downloaded-")
	if err != nil {
		return Sample{}, err
	}
	cmd := exec.CommandContext(ctx, "curl", "--fail", "--silent", "--show-error", "--config", "-")
	cmd.Dir, cmd.Stdin = to, strings.NewReader(files)
	sample, err := b.command(ctx, "curl of the same files", cmd)
	if err != nil {
		return sample, err
	}
	return sample, os.RemoveAll(to)
}
