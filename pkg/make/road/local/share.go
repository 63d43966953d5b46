package local

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"slipway.build/pkg/make/objects"
	"slipway.build/pkg/make/road"
	"slipway.build/pkg/make/road/prebuilt"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/child"
)

// share fetches packages that go commands elsewhere have compiled, unless the user's own cache has most of them, and makes the run use the
// cache of Go that holds them.
func (r *run) share(ctx context.Context, command road.GoCommand) {
	r.cache = r.own
	found := r.packages.Find(ctx, command)
	own := objects.InFolder(r.own)
	if found.MostlyIn(own) {
		return
	}
	folder, err := prebuilt.Folder()
	if err != nil {
		r.packages.Failed(ctx, err)
		return
	}
	r.cache = folder
	wait := func() {}
	if len(found.Missing(objects.InFolder(folder))) > 0 {
		wait = r.load(ctx, command)
	}
	fetched := r.packages.Fetch(ctx, folder, found)
	wait()
	// If fetching was given up, the user's own cache may have more.
	if !fetched || len(found.Missing(objects.InFolder(folder))) >= len(found.Missing(own)) {
		r.cache = r.own
		return
	}
	r.c.Shared.Use(action.Derived)
}

// downloads is how many modules a go command downloads at the same time, which it would do by the number of processors otherwise: most of
// the time of a download is spent waiting for a distant server.
const downloads = 8

// load starts a go list of the targets, so that modules which are not on this machine are downloaded while packages are fetched. The caller
// must call wait before it changes r.cache.
func (r *run) load(ctx context.Context, command road.GoCommand) (wait func()) {
	args := r.listArgs(command.Targets)
	cmd := r.g.Command(ctx, r.dir, r.c.Platform.OS, r.c.Platform.Arch, args...)
	cmd.Env = append(cmd.Env, "GOFLAGS="+r.c.Options.GoFlags, "GOCACHE="+r.cache,
		"GOMAXPROCS="+strconv.Itoa(max(downloads, runtime.GOMAXPROCS(0))))
	cmd.Stderr = &road.GoOutput{Report: func(e action.Event) {
		if e.Kind == action.Progress { // the compile reports errors
			r.rep(e)
		}
	}}
	var loading sync.WaitGroup
	loading.Go(func() { _ = child.Run(cmd, syscall.SIGKILL, nil) })
	return func() {
		r.rep.Progress("loading packages")
		loading.Wait()
	}
}

// listArgs returns arguments of the go command that list the packages of targets.
func (r *run) listArgs(targets []road.Target, flags ...string) []string {
	args := []string{"list", "-deps"}
	if targets[0].Test { // and so are the others
		args = append(args, "-test")
	}
	args = slices.Concat(args, flags, r.c.BuildFlags())
	for _, t := range targets {
		args = append(args, t.Package)
	}
	return args
}

// keep uploads the compiled packages of binaries for which the cache has no list.
func (r *run) keep(ctx context.Context, command road.GoCommand) {
	if !r.c.Shared.Cache().Stores() {
		return
	}
	r.c.Shared.UploadAsync(ctx, func(ctx context.Context, dir string) error {
		s := &objects.Share{Cache: r.c.Shared.Cache(), Scratch: dir}
		byKey := map[string]road.Target{}
		var keys []string
		for _, t := range command.Targets {
			all, err := r.packages.Keys(t.Binary)
			if err != nil {
				return err
			}
			byKey[all[0]] = t
			keys = append(keys, all[0])
		}
		missing := s.Missing(ctx, keys)
		if len(missing) == 0 {
			return nil
		}
		var targets []road.Target
		for _, key := range missing {
			targets = append(targets, byKey[key])
		}
		ids, err := r.buildIDs(ctx, targets)
		if err != nil {
			return err
		}
		var wanted []objects.Binary
		for i, key := range missing {
			wanted = append(wanted, objects.Binary{Key: key, BuildIDs: ids[i]})
		}
		return s.Store(ctx, r.cache, wanted)
	})
}

// buildIDs returns the build IDs of the packages of each target, all of which are compiled.
func (r *run) buildIDs(ctx context.Context, targets []road.Target) ([][]string, error) {
	out, err := r.list(ctx, r.listArgs(targets, "-export", "-json=ImportPath,BuildID,Deps,Module"))
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
