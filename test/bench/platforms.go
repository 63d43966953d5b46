package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"slipway.build/pkg/make/plan"
	"slipway.build/pkg/make/project"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/reapi"
	"slipway.build/pkg/mechanism/sharedcache"
	"slipway.build/pkg/mechanism/signature"
	"slipway.build/pkg/tree/catalog"
)

// longRows are rows that are measured only by name, since they compile for more platforms than this machine's.
func longRows() []*Row {
	return []*Row{{
		Name: "cache-platforms", Unit: "s", What: "release of all platforms with the test set, in a fresh clone with empty Go caches, from a " +
			"shared cache",
		With: "curl of the same files from a file server", Wanted: Bound{AtMost, 1.5}, measure: cachePlatforms,
	}, {
		Name: "cross", Unit: "s", What: "make cross for linux/arm64, darwin/arm64 and windows/amd64, nothing there but modules",
		With: "go build of the same binaries, for one platform after the other", Wanted: Bound{AtMost, 1}, measure: cross,
	}}
}

// cachePlatforms measures a release of all platforms with the test set in a fresh clone with empty Go caches, of results that are stored,
// against curl that downloads the same files from a file server on loopback. The results of this machine's platform are real. To compile
// the others takes hours, so stand-ins have their keys.
func cachePlatforms(ctx context.Context, b *bench, row *Row) error {
	c, err := b.sharing(ctx)
	if err != nil {
		return err
	}
	if c.stored {
		return errors.New("the cache is not empty any more: measure this row by itself")
	}
	b.say("  release --platform %s, unmeasured", c.platform)
	if err := execute(ctx, c.slipway(ctx, c.ours, c.store, "release", "--platform", c.platform.String()), nil); err != nil {
		return err
	}
	trust, err := c.storeStandIns(ctx)
	if err != nil {
		return err
	}
	files, err := c.move(filepath.Join(c.theirs, filepath.FromSlash(project.Tars)))
	if err != nil {
		return err
	}
	config, stop, err := serve(files)
	if err != nil {
		return err
	}
	defer stop()
	if err := b.forget(ctx); err != nil {
		return err
	}
	contest := contest{
		servers: true,
		ours: func() (Sample, error) {
			dir, env, err := c.fresh(ctx)
			if err != nil {
				return Sample{}, err
			}
			sample, err := b.command(ctx, "slipway release in a fresh clone", c.slipway(ctx, dir, append(env, trust...), "release"))
			if err != nil {
				return sample, err
			}
			compiled, err := filepath.Glob(filepath.Join(filepath.Dir(dir), "build", "*", "*-d"))
			if err != nil {
				return sample, err
			}
			if len(compiled) > 0 {
				return sample, fmt.Errorf("%d packages were compiled: the cache lacked results", len(compiled))
			}
			dir = filepath.Join(dir, filepath.FromSlash(project.Tars))
			return sample, errors.Join(sameSizes(dir, files), os.RemoveAll(dir)) // the small files stay, see forgotten
		},
		theirs: func() (Sample, error) { return b.download(ctx, c.dir, config, files) },
	}
	return contest.rounds(b.n, row)
}

// storeStandIns makes a release of all platforms in the clone for go build, and stores it. What nobody has stored is made of random bytes:
// as many files as this machine's platform has, and as large if they belong to the release's files. The environment that it returns trusts
// such results, too.
func (c *cacheSide) storeStandIns(ctx context.Context) (trust []string, err error) {
	key, err := signature.New()
	if err != nil {
		return nil, err
	}
	own, others := filepath.Join(c.keys, "bench.pub"), filepath.Join(c.keys, "stand-in.pub")
	if err := os.WriteFile(others, key.Public().PEM(), 0o666); err != nil {
		return nil, err
	}
	trusted, err := signature.ReadPublic(ctx, own)
	if err != nil {
		return nil, err
	}
	client, err := reapi.New(reapi.Options{URL: "grpc://" + c.server.Direct})
	if err != nil {
		return nil, err
	}
	defer client.Close()
	cache := sharedcache.New(sharedcache.Options{Client: client, Keys: []signature.PublicKey{trusted}, Sign: &key,
		Notify: func(text string) { c.say("  %s", text) }})

	_, model, err := c.release(ctx, c.ours, c.platform)
	if err != nil {
		return nil, err
	}
	p, whole, err := c.release(ctx, c.theirs)
	if err != nil {
		return nil, err
	}
	graph, err := c.standingIn(whole, model, p.Catalog.AllPlatforms())
	if err != nil {
		return nil, err
	}
	c.say("  a release of all platforms, of random bytes where nobody has made them, unmeasured")
	if err := graph.Run(ctx, action.Options{Cache: cache, Wanted: whole.Wanted()}); err != nil {
		return nil, err
	}
	if n := cache.Counts(); n.Hits+n.Stored != int64(len(graph.Actions)) {
		return nil, fmt.Errorf("of %d results, %d were taken and %d stored", len(graph.Actions), n.Hits, n.Stored)
	}
	return append(c.use[:len(c.use):len(c.use)], "SLIPWAY_CACHE_KEYS="+own+string(filepath.ListSeparator)+others), nil
}

// release returns the plan of `slipway release` in a clone that uses a cache. No platforms means all.
func (c *cacheSide) release(ctx context.Context, dir string, platforms ...catalog.Platform) (*project.Project, *plan.Plan, error) {
	p, err := open(ctx, dir, c.env)
	if err != nil {
		return nil, nil, err
	}
	planned, err := plan.New(ctx, p, plan.Request{Tars: true, TestSet: true, Inputs: true, Everywhere: true, PatchesLater: true,
		Platforms: platforms})
	return p, planned, err
}

// standingIn returns the graph of a release whose actions write random bytes. Their sizes are those of what the actions of this machine's
// platform have made in slipway's clone.
func (c *cacheSide) standingIn(whole, model *plan.Plan, all []catalog.Platform) (*action.Graph, error) {
	made := map[string]*action.Action{}
	for _, a := range model.Graph.Actions {
		made[a.ID] = a
	}
	wanted := whole.Wanted()
	// A folder of documents has one for each platform, by name.
	documents := map[string][]string{}
	for _, a := range whole.Graph.Actions {
		for _, input := range a.Inputs {
			if folder := path.Dir(input) + "/"; !strings.HasSuffix(input, "/") {
				documents[folder] = append(documents[folder], path.Base(input))
			}
		}
	}
	graph := *whole.Graph
	graph.Actions = nil
	for i, a := range whole.Graph.Actions {
		like := made[onPlatform(c.platform, a.ID, all)]
		if like == nil || len(like.Outputs) != len(a.Outputs) {
			return nil, fmt.Errorf("%s: %s has none like it", a.ID, c.platform)
		}
		random := *a
		random.Batch, random.Cost = nil, action.Cost{}
		random.Run = func(_ context.Context, t *action.Task) error {
			for k, output := range a.Outputs {
				s := standIn{source: rand.NewChaCha8([32]byte{byte(i), byte(i >> 8), byte(k)}), most: unread}
				if slices.ContainsFunc(wanted, func(w string) bool {
					return w == output || strings.HasSuffix(output, "/") && strings.HasPrefix(w, output)
				}) {
					s.most = math.MaxInt64
				}
				model := filepath.Join(c.ours, filepath.FromSlash(like.Outputs[k]))
				if err := s.write(t.Path(output), model); err != nil {
					return err
				}
				for _, name := range documents[output] {
					if err := s.write(filepath.Join(t.Path(output), name), filepath.Join(model, onPlatform(c.platform, name, all))); err != nil {
						return err
					}
				}
			}
			return nil
		}
		graph.Actions = append(graph.Actions, &random)
	}
	return &graph, nil
}

// onPlatform returns the ID, or file name, of what is for a platform as one for another platform is.
func onPlatform(here catalog.Platform, id string, all []catalog.Platform) string {
	was := catalog.Platform{}
	for _, p := range all {
		isNamed := strings.Contains(id, p.String()) || strings.Contains(id, p.Dash())
		if isNamed && len(p.String()) > len(was.String()) { // linux/arm64, not linux/arm
			was = p
		}
	}
	if was == (catalog.Platform{}) {
		return id
	}
	return strings.NewReplacer(was.String(), here.String(), was.Dash(), here.Dash()).Replace(id)
}

// unread is the size, in bytes, of files that are not fetched, if they are not smaller.
const unread = 4 << 10

// A standIn writes files of random bytes, which are the same each time, and folders of them.
type standIn struct {
	source *rand.ChaCha8
	most   int64 // bytes of a file
}

// write writes what is like another file or folder.
func (s standIn) write(to, like string) error {
	return filepath.WalkDir(like, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(like, name)
		if err != nil {
			return err
		}
		at := filepath.Join(to, rel)
		info, err := d.Info()
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return os.MkdirAll(at, 0o777)
		case d.Type() == fs.ModeSymlink:
			target, err := os.Readlink(name)
			if err != nil {
				return err
			}
			return os.Symlink(target, at)
		}
		return s.file(at, min(info.Size(), s.most), info.Mode().Perm())
	})
}

func (s standIn) file(name string, size int64, mode fs.FileMode) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := io.CopyN(f, s.source, size); err != nil {
		return err
	}
	return f.Close()
}

// forgotten is how long ext4 without a journal avoids the inodes of removed files. Until then, it skips them one by one whenever it creates
// a file.
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

// move removes the files below a folder, and returns where the cache has them, by their slash-separated names in the folder. It reads all
// of the cache's files, so that the first round finds them in memory.
func (c *cacheSide) move(dir string) (map[string]string, error) {
	sums := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		file := filepath.Join(dir, filepath.FromSlash(name))
		sums[name], err = sum(file)
		return errors.Join(err, os.Remove(file))
	})
	if err != nil {
		return nil, err
	}
	stored, err := c.server.Files(slices.Collect(maps.Values(sums))...)
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for name, want := range sums {
		for _, file := range stored[want] {
			if got, err := sum(file); err == nil && got == want {
				files[name] = file
			}
		}
		if files[name] == "" {
			return nil, fmt.Errorf("the cache has no %s", name)
		}
	}
	return files, nil
}

// serve serves files by their names on loopback, and returns what curl has to be told to download them. They are the cache's own, so that
// both sides read the same pages of memory, or wait for the same disk.
func serve(files map[string]string) (config string, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		config += fmt.Sprintf("url = http://%s/%s\noutput = %s\ncreate-dirs\n", l.Addr(), name, name)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.ServeFile(w, r, files[strings.TrimPrefix(r.URL.Path, "/")])
	})}
	go func() { _ = server.Serve(l) }() // until it is closed
	return config, func() { _ = server.Close() }, nil
}

// sameSizes checks that a folder has files, by their slash-separated names, as large as others, and no more.
func sameSizes(dir string, files map[string]string) error {
	n := 0
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		n++
		if files[name] == "" {
			return fmt.Errorf("%s was not asked for", name)
		}
		want, err := os.Stat(files[name])
		if err != nil {
			return err
		}
		got, err := d.Info()
		if err == nil && got.Size() != want.Size() {
			err = fmt.Errorf("%s has %d of %d bytes", name, got.Size(), want.Size())
		}
		return err
	})
	if err == nil && n != len(files) {
		err = fmt.Errorf("%s has %d of %d files", dir, n, len(files))
	}
	return err
}

// download measures curl that downloads files into a new folder, which is removed.
func (b *bench) download(ctx context.Context, dir, config string, files map[string]string) (Sample, error) {
	to, err := os.MkdirTemp(dir, "downloaded-")
	if err != nil {
		return Sample{}, err
	}
	cmd := exec.CommandContext(ctx, "curl", "--fail", "--silent", "--show-error", "--config", "-")
	cmd.Dir, cmd.Stdin = to, strings.NewReader(config)
	sample, err := b.command(ctx, "curl of the same files", cmd)
	if err != nil {
		return sample, err
	}
	return sample, errors.Join(sameSizes(to, files), os.RemoveAll(to))
}
