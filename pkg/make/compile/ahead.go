package compile

import (
	"context"
	"os"
	"sync"

	"slipway.build/pkg/mechanism/archive"
)

// A packedAhead compresses finished binaries and keeps their digests. A nil one does nothing.
type packedAhead struct {
	files  chan string
	cancel context.CancelFunc
	done   sync.WaitGroup
	packer archive.Packer

	mu       sync.Mutex
	digested []digested
}

// A digested file has its SHA-256 in hex.
type digested struct {
	file os.FileInfo
	sum  string
}

// ahead compresses finished binaries for tarballs and images, one after another, while others are linked: links leave processors idle. It
// only saves time. Packing compresses what is still missing when the compile ends, and reports the errors that ahead ignores.
func (c *Compiler) ahead(ctx context.Context) *packedAhead {
	if c.Cache == "" {
		return nil
	}
	p := &packedAhead{
		files:  make(chan string, 1000), // more than a module has binaries
		packer: archive.Packer{Cache: c.Cache, Workers: 1},
	}
	ctx, p.cancel = context.WithCancel(ctx)
	p.done.Go(func() {
		for file := range p.files {
			p.pack(ctx, file)
		}
	})
	return p
}

// pack compresses a binary now.
func (p *packedAhead) pack(ctx context.Context, file string) {
	if p == nil {
		return
	}
	before, err := os.Stat(file)
	if err != nil {
		return
	}
	if sum, _ := p.packer.Prepare(ctx, file); sum != "" {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.digested = append(p.digested, digested{before, sum})
	}
}

// built returns a function that queues a file for compression, or nil.
func (p *packedAhead) built() func(file string) {
	if p == nil {
		return nil
	}
	return func(file string) { p.files <- file }
}

func (p *packedAhead) stop() {
	if p != nil {
		p.cancel()
		close(p.files)
		p.done.Wait()
	}
}

// sum returns the SHA-256 of a file that was compressed, perhaps under another name, or "" if it was not or has changed. It must be called
// after stop.
func (p *packedAhead) sum(file string) string {
	info, err := os.Stat(file)
	if err != nil || p == nil {
		return ""
	}
	for _, d := range p.digested {
		if os.SameFile(info, d.file) && info.Size() == d.file.Size() && info.ModTime().Equal(d.file.ModTime()) {
			return d.sum
		}
	}
	return ""
}
