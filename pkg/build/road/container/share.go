package container

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"slipway.build/pkg/build/objects"
	"slipway.build/pkg/build/road"
	"slipway.build/pkg/build/road/prebuilt"
)

// listEntries is a script that lists the entries of the two caches of Go, and makes the second one.
const listEntries = `mkdir -p "$1"
for dir; do
	[ ! -d "$dir" ] || find "$dir" -name "*-a"
done`

// share fetches packages that go commands elsewhere have compiled, unless the engine's own cache of Go has most of them, and sends them. It
// returns the folder that the go command takes as its cache of Go. First may be nil. An error is one of the engine: what cannot be fetched is
// compiled.
func (s *session) share(ctx context.Context, first *host, p *prebuilt.Packages, command road.GoCommand, rep road.Report) (cache string, err error) {
	found := p.Find(ctx, command)
	if len(found) == 0 {
		return ownCache, nil
	}
	h := first
	if h == nil {
		if h, err = s.host(ctx); err != nil {
			return "", err
		}
		defer func() { err = errors.Join(err, h.remove()) }()
	}
	out, err := h.container.Run(ctx, "/bin/sh", "-euc", listEntries, "sh", sharedCache, ownCache)
	if err != nil {
		return "", err
	}
	own, shared := map[string]bool{}, map[string]bool{}
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, ownCache+"/"); ok {
			own[name] = true
		} else if name, ok := strings.CutPrefix(line, sharedCache+"/"); ok {
			shared[name] = true
		}
	}
	if found.Mostly(objects.Named(own)) {
		return ownCache, nil
	}
	if lacking := found.Missing(objects.Named(shared)); len(lacking) > 0 {
		folder := p.Fetch(ctx, lacking)
		if folder == "" {
			return ownCache, ctx.Err()
		}
		names := lacking.Files(folder)
		err = step(rep, "sending compiled packages", func() (string, error) {
			stats, err := h.Add(ctx, "packages", folder, names)
			return sent("compiled packages", stats), err
		})
		if err != nil {
			return "", err
		}
	}
	p.Compilation.Shared.Foreign()
	return sharedCache, nil
}

// caching returns an environment with a folder as Go's cache.
func caching(env []string, folder string) []string {
	env = slices.DeleteFunc(slices.Clone(env), func(kv string) bool { return strings.HasPrefix(kv, "GOCACHE=") })
	return append(env, fmt.Sprintf("GOCACHE=%s", folder))
}
