package local

import (
	"bytes"
	"context"
	"path/filepath"
	"time"

	"slipway.build/pkg/road"
)

// A compile that has gone on for this long is asked how much there is to do, once it has compiled so many packages.
// Asking costs the Go tool a few seconds of one processor: links alone (after a new commit, say) are better off without.
const (
	longCompile  = 10 * time.Second
	manyPackages = 20
)

// countStale counts the packages that targets need and that are not in the Go build cache; 0 if that cannot be told.
func (r *run) countStale(ctx context.Context, targets []road.Target) int64 {
	args := append([]string{"list", "-deps", "-f", "{{if .Stale}}x{{end}}"}, r.c.BuildFlags()...)
	for _, t := range targets {
		if t.Test {
			return 0 // the packages that only a test imports would need another question
		}
		args = append(args, t.Package)
	}
	var out bytes.Buffer
	cmd := r.g.Command(ctx, filepath.Join(r.c.Root, filepath.FromSlash(r.c.Module)), r.c.Platform.OS, r.c.Platform.Arch, args...)
	cmd.Env = append(cmd.Env, "GOFLAGS="+r.c.Options.GoFlags)
	cmd.Stdout = &out
	if err := cmd.Run(); err != nil {
		return 0 // it is only for the progress shown; what is wrong, the compile says itself
	}
	return int64(bytes.Count(out.Bytes(), []byte("x")))
}

// watchTotal finds out, if the compile goes on for long, of how many packages it is, and tells it in every
// progress from then on. The function it returns ends that.
func (r *run) watchTotal(ctx context.Context, targets []road.Target) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(longCompile)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			before := r.packages.Load()
			if before < manyPackages {
				continue
			}
			if stale := r.countStale(ctx, targets); stale > 0 {
				r.total.Store(before + stale)
			}
			return
		}
	}()
	return func() { cancel(); <-done }
}
