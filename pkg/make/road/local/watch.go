package local

import (
	"os"
	"path/filepath"
	"time"

	"slipway.build/pkg/make/road"
)

// watchBuilt calls c.Built with each binary that the Go command finishes, while it links the others. The Go command renames a
// finished binary into bin, so a file there is complete; a previous binary is recognized by its inode. Built gets a hard link, since
// the binary itself is moved later.
func (r *run) watchBuilt(bin string, targets []road.Target) (stop func()) {
	if r.c.Built == nil {
		return func() {}
	}
	before := map[string]os.FileInfo{}
	for _, t := range targets {
		if info, err := os.Stat(filepath.Join(bin, r.c.File(t.Binary))); err == nil {
			before[r.c.File(t.Binary)] = info
		}
	}
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		seen := map[string]bool{}
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-quit:
				return
			case <-tick.C:
			}
			for _, t := range targets {
				name := r.c.File(t.Binary)
				info, err := os.Stat(filepath.Join(bin, name))
				if err != nil || seen[name] || before[name] != nil && os.SameFile(info, before[name]) {
					continue
				}
				seen[name] = true
				link := filepath.Join(r.c.Scratch, "built-"+name)
				if os.Link(filepath.Join(bin, name), link) == nil { // without hard links, Built is not called, which only costs time
					r.c.Built(link)
				}
			}
		}
	}()
	return func() { close(quit); <-done }
}
