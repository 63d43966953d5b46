package archive

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"time"
)

// Prepare compresses a file's content into the cache, ahead of the archives that will hold it. It is for the time in which
// processors would idle otherwise; TarGz does all that was not prepared.
func (p *Packer) Prepare(ctx context.Context, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.Size() < minSegment || p.Cache == "" {
		return nil // nothing that is kept
	}
	members, err := layout([]Entry{{Name: "content", Path: path}}, time.Time{})
	if err != nil {
		return fmt.Errorf("prepare %s: %w", path, err)
	}
	cache, err := openCache(p.Cache)
	if err != nil {
		return err
	}
	threads := p.Workers
	if threads <= 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	if err := newPacking(cache, newWorkers(threads), members).prepare(ctx); err != nil {
		return err
	}
	return ctx.Err() // prepare leaves it to others to report
}
