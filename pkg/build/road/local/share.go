package local

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"slipway.build/pkg/build/objects"
	"slipway.build/pkg/build/road"
	"slipway.build/pkg/build/toolchain"
)

// share fetches packages that go commands elsewhere have compiled, and makes the run use the cache of Go that holds them. They never get
// into the user's own cache, which a release without a shared cache uses. What cannot be fetched is compiled.
func (r *run) share(ctx context.Context, command road.GoCommand) {
	start := time.Now()
	use, err := r.fetch(ctx, command)
	if slow := new(objects.SlowError); errors.As(err, &slow) {
		r.slow.Store(true)
		r.rep.Output(fmt.Sprintf("no more compiled packages are fetched in this run: %v", slow))
	} else if err != nil && ctx.Err() == nil {
		r.rep.Output(fmt.Sprintf("some compiled packages could not be fetched, and are compiled here: %v", err))
	}
	if use.Dir != "" {
		r.cache = use.Dir
	}
	if use.Foreign {
		r.c.Shared.Foreign()
	}
	if use.Fetched > 0 {
		r.rep.Step(fmt.Sprintf("%d compiled packages fetched, %d MiB", use.Fetched, use.Bytes>>20), time.Since(start))
	}
}

func (r *run) fetch(ctx context.Context, command road.GoCommand) (objects.Use, error) {
	s, err := r.newShare(r.c.Scratch)
	if err != nil {
		return objects.Use{}, err
	}
	var binaries [][]string
	for _, t := range command.Targets {
		keys, err := r.objectKeys(t.Binary)
		if err != nil {
			return objects.Use{}, err
		}
		binaries = append(binaries, keys)
	}
	return s.Fetch(ctx, binaries)
}

func (r *run) newShare(scratch string) (*objects.Share, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	return &objects.Share{
		Cache: r.c.Shared.Cache(), Own: r.g.Setting("GOCACHE"), Foreign: filepath.Join(cache, "slipway", "go-build"), Scratch: scratch,
		Compile: compileTime,
		Progress: func(done, total int64) {
			r.rep.Progress(0, 0, fmt.Sprintf("fetching compiled packages: %d of %d MiB", done>>20, total>>20))
		},
	}, nil
}

// compileTime returns how long the go command takes for packages: 305 s of processor time were measured for the 1,414 of kube-scheduler.
func compileTime(packages int) time.Duration {
	return time.Duration(packages) * 305 * time.Second / 1414 / time.Duration(runtime.NumCPU())
}

// objectKeys returns the keys of a binary's lists: with the tree's patches, if there are any, and without them. Patches leave most
// packages as they are, so a list without them is the next best.
func (r *run) objectKeys(bin road.Binary) ([]string, error) {
	plain := r.c.Spec
	plain.ModFile, plain.LDFlags, plain.Options.LDFlags = "", "", ""
	files := []string{filepath.Join(r.dir, "go.mod")}
	if m := r.c.ModFile; m != "" {
		if !path.IsAbs(m) {
			m = filepath.Join(r.root, filepath.FromSlash(m))
		}
		files = append([]string{m}, files...)
	}
	var keys []string
	for _, file := range files {
		parts := slices.Concat([]string{r.g.Version, plain.Platform.String(), plain.Options.GoFlags, plain.Module, bin.Package, fmt.Sprint(bin.Test)},
			toolchain.Levels(), plain.BuildFlags())
		for _, name := range []string{file, strings.TrimSuffix(file, ".mod") + ".sum"} {
			data, err := os.ReadFile(name)
			if err != nil && !errors.Is(err, fs.ErrNotExist) { // a module without dependencies has no go.sum
				return nil, err
			}
			sum := sha256.Sum256(data)
			parts = append(parts, hex.EncodeToString(sum[:]))
		}
		keys = append(keys, objects.Key(parts...))
	}
	return keys, nil
}

// keep stores the compiled packages of binaries that the cache has no list for.
func (r *run) keep(ctx context.Context, command road.GoCommand) {
	if !r.c.Shared.Cache().Stores() {
		return
	}
	r.c.Shared.Later(ctx, func(ctx context.Context, dir string) error {
		s, err := r.newShare(dir)
		if err != nil {
			return err
		}
		byKey := map[string]road.Target{}
		var keys []string
		for _, t := range command.Targets {
			all, err := r.objectKeys(t.Binary)
			if err != nil {
				return err
			}
			byKey[all[0]] = t
			keys = append(keys, all[0])
		}
		unknown := s.Unknown(ctx, keys)
		if len(unknown) == 0 {
			return nil
		}
		var targets []road.Target
		for _, key := range unknown {
			targets = append(targets, byKey[key])
		}
		ids, err := r.buildIDs(ctx, targets)
		if err != nil {
			return err
		}
		var wanted []objects.Binary
		for i, key := range unknown {
			wanted = append(wanted, objects.Binary{Key: key, BuildIDs: ids[i]})
		}
		return s.Store(ctx, r.cache, wanted)
	})
}

// buildIDs returns the build IDs of the packages of each target, all of which are compiled.
func (r *run) buildIDs(ctx context.Context, targets []road.Target) ([][]string, error) {
	args := append([]string{"list", "-deps", "-export", "-json=ImportPath,BuildID,Deps,Module"}, r.c.BuildFlags()...)
	if targets[0].Test { // and so are the others
		args = slices.Insert(args, 1, "-test")
	}
	for _, t := range targets {
		args = append(args, t.Package)
	}
	out, err := r.list(ctx, args)
	if err != nil {
		return nil, fmt.Errorf("go list of compiled packages: %w", err)
	}
	type listed struct {
		ImportPath, BuildID string
		Deps                []string
		Module              struct {
			Path string
			Main bool
		}
	}
	packages := map[string]listed{}
	main := "" // path of the module
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go list of compiled packages: %w", err)
		}
		packages[p.ImportPath] = p
		if p.Module.Main {
			main = p.Module.Path
		}
	}
	ids := make([][]string, len(targets))
	for i, t := range targets {
		name := t.Package
		if in, ok := strings.CutPrefix(name, "./"); ok {
			name = main + "/" + in
		}
		if t.Test {
			name += ".test"
		}
		for _, of := range append(packages[name].Deps, name) {
			if id := packages[of].BuildID; id != "" { // package unsafe has none
				ids[i] = append(ids[i], id)
			}
		}
	}
	return ids, nil
}
