package local

import (
	"os"
	"path/filepath"
	"time"

	"slipway.build/pkg/build/road"
)

// watchBuilt tells c.Built of each binary as the Go tool finishes it, while it links the others. The Go tool renames a
// finished binary into bin, so one that is there is complete; one that stood there before is told apart by its inode. Built
// gets a link of its own, as the binary is about to move on.
func (r *run) watchBuilt(bin string, targets []road.Target) (stop func()) {
	if r.c.Built == nil {
		return func() {}
	}
	before := map[string]os.FileInfo{}
	for _, t := range targets {
		if info, err := os.Stat(filepath.Join(bin, r.c.File(t))); err == nil {
			before[r.c.File(t)] = info
		}
	}
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		told := map[string]bool{}
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-quit:
				return
			case <-tick.C:
			}
			for _, t := range targets {
				name := r.c.File(t)
				info, err := os.Stat(filepath.Join(bin, name))
				if err != nil || told[name] || before[name] != nil && os.SameFile(info, before[name]) {
					continue
				}
				told[name] = true
				link := filepath.Join(r.c.Scratch, "built-"+name)
				if os.Link(filepath.Join(bin, name), link) == nil { // without it, nobody is told, and nothing is lost
					r.c.Built(link)
				}
			}
		}
	}()
	return func() { close(quit); <-done }
}
