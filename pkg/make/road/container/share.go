package container

import (
	"context"
	"errors"
	"os"
	"strings"

	"slipway.build/pkg/make/objects"
	"slipway.build/pkg/make/road"
	"slipway.build/pkg/make/road/prebuilt"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/engine"
)

// A workplace has what a go command in a container works with besides the sources. Compiles with packages that were compiled elsewhere have
// one of their own, with a folder for binaries, too: the go command does not link a binary again that was linked from such packages.
type workplace struct {
	cache string // GOCACHE
	out   string // folder of binaries, see outFolder
}

func ownPlace(spec road.Spec) workplace { return workplace{ownCache, outFolder(spec)} }

func sharedPlace(spec road.Spec) workplace {
	return workplace{sharedCache, outFolder(spec) + "-shared"}
}

// listFiles is a script that lists the files of caches of Go, and makes the first one.
const listFiles = `mkdir -p "$1"
for dir; do
	find "$dir" -name "*-[ad]" 2>/dev/null || true
done`

// share fetches packages that go commands elsewhere have compiled, unless the engine's own cache of Go has most of them, and sends them. It
// returns where the go command works. It uses the host, and starts one if it is nil and returns it. What cannot be fetched or sent is
// compiled; an error says that the run is over or the engine lost.
func (s *session) share(ctx context.Context, h *host, p *prebuilt.Packages, command road.GoCommand) (workplace, *host, error) {
	place := ownPlace(p.Compilation.Spec)
	found := p.Find(ctx, command)
	if len(found) == 0 {
		return place, h, ctx.Err()
	}
	shared := false
	err := func() (err error) {
		if h == nil {
			if h, err = s.host(ctx); err != nil {
				return err
			}
		}
		shared, err = sendPackages(ctx, h, p, found)
		return err
	}()
	if err != nil {
		err = s.cause(ctx, err)
		if lost := new(engine.LostError); ctx.Err() != nil || errors.As(err, &lost) {
			return place, h, err
		}
		p.Failed(ctx, err)
	}
	if shared {
		p.Compilation.Shared.Use(action.Derived)
		place = sharedPlace(p.Compilation.Spec)
	}
	return place, h, nil
}

// sendPackages makes packages available in the engine, and reports whether the cache with them is the better one.
func sendPackages(ctx context.Context, h *host, p *prebuilt.Packages, found objects.List) (bool, error) {
	out, err := h.container.Run(ctx, "/bin/sh", "-euc", listFiles, "sh", sharedCache, ownCache)
	if err != nil {
		return false, err
	}
	own, shared := listing(out, ownCache), listing(out, sharedCache)
	if found.MostlyIn(objects.Listed(own)) {
		return false, nil
	}
	better := func() bool {
		return len(found.Missing(objects.Listed(shared))) < len(found.Missing(objects.Listed(own)))
	}
	lacking := found.Missing(objects.Listed(shared))
	if len(lacking) == 0 {
		return better(), nil
	}
	folder, err := os.MkdirTemp(p.Compilation.Scratch, "packages")
	if err != nil {
		return better(), err
	}
	defer os.RemoveAll(folder)
	if !p.Fetch(ctx, folder, lacking) {
		return better(), nil
	}
	names := lacking.Files(folder)
	err = step(p.Report, "sending compiled packages", func() (string, error) {
		stats, err := h.Add(ctx, "packages", folder, names)
		return sent("compiled packages", stats), err
	})
	if err == nil {
		for _, name := range names {
			shared[name] = true
		}
	}
	return better(), err
}

// listing returns the files in a folder, out of a list of absolute names.
func listing(list []byte, folder string) map[string]bool {
	files := map[string]bool{}
	for line := range strings.Lines(string(list)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), folder+"/"); ok {
			files[name] = true
		}
	}
	return files
}
