// Package local is the road over the Go toolchain of this machine: one `go build` per module and platform.
package local

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"slipway.build/pkg/catalog"
	"slipway.build/pkg/road"
	"slipway.build/pkg/toolchain"
)

// A Road is the local road.
type Road struct {
	Pin toolchain.Pin
	Go  func(ctx context.Context, progress func(string)) (*toolchain.Go, error) // finds the pinned Go, once
}

func (*Road) Name() string { return "local" }

// Recipe holds no path and nothing of the machine, except for debug builds: without -trimpath these carry the paths of
// the tree, of the standard library and of the modules.
func (r *Road) Recipe(c road.Compilation) []string {
	recipe := []string{"road local", r.Pin.Version, c.Platform.String(), "GOFLAGS=" + c.Options.GoFlags}
	recipe = append(recipe, toolchain.Levels()...)
	recipe = append(recipe, c.BuildFlags()...)
	if c.Options.Debug {
		recipe = append(recipe, c.Root)
		recipe = append(recipe, r.paths()...)
	}
	return recipe
}

// paths are those of the pinned Go. Where there is none yet, it is fetched for them: it is needed anyway. If that fails,
// so will the compile, which says why; no compile that works has such a recipe.
func (r *Road) paths() []string {
	g, err := r.Go(context.Background(), nil)
	if err != nil {
		return []string{"no Go"}
	}
	return []string{"GOROOT=" + g.Root, "GOMODCACHE=" + g.ModCache}
}

// Compile runs go build for all main packages at once, so that the Go tool shares what they have in common
// and links in parallel, then go test -c for the test packages.
//
// The Go tool does not cache links; it skips one only where the output is there already and current. So it
// writes into a private folder in which the previous outputs stand as hard links. It replaces a file there by
// rename, so the previous output itself stays as it is.
func (r *Road) Compile(ctx context.Context, c road.Compilation, rep road.Report) error {
	g, err := r.Go(ctx, func(text string) { rep.Progress(0, 0, text) })
	if err != nil {
		return err
	}
	var mains, tests []road.Target
	for _, t := range c.Targets {
		if t.Test {
			tests = append(tests, t)
		} else {
			mains = append(mains, t)
		}
	}
	run := &run{g: g, c: c, rep: rep}
	for _, part := range []struct {
		targets []road.Target
		verb    []string
	}{{mains, []string{"build"}}, {tests, []string{"test", "-c"}}} {
		if len(part.targets) == 0 {
			continue
		}
		if err := run.build(ctx, part.verb, part.targets); err != nil {
			return err
		}
	}
	return nil
}

// A run is one Compile on its way.
type run struct {
	g        *toolchain.Go
	c        road.Compilation
	rep      road.Report
	packages atomic.Int64 // compiled so far
	total    atomic.Int64 // about as many are to be compiled; 0 if nobody knows
}

func (r *run) build(ctx context.Context, verb []string, targets []road.Target) error {
	bin, err := os.MkdirTemp(r.c.Scratch, "bin")
	if err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(r.c.Scratch, "tmp")
	if err != nil {
		return err
	}
	args := append(append([]string{}, verb...), "-v")
	args = append(args, r.c.BuildFlags()...)
	args = append(args, "-o", bin+string(filepath.Separator))
	for _, t := range targets {
		if t.Previous != "" {
			// It saves a link if there is nothing to do. File systems without hard links (exFAT, some shares) do without.
			_ = os.Link(t.Previous, filepath.Join(bin, r.file(t)))
		}
		args = append(args, t.Package)
	}
	cmd := r.g.Command(ctx, filepath.Join(r.c.Root, filepath.FromSlash(r.c.Module)), r.c.Platform.OS, r.c.Platform.Arch, args...)
	// GOTMPDIR on the file system of the outputs lets the Go tool rename what it has linked.
	cmd.Env = append(cmd.Env, "GOFLAGS="+r.c.Options.GoFlags, "GOTMPDIR="+tmp)
	stopTotal, stopBuilt := r.watchTotal(ctx, targets), r.watchBuilt(bin, targets)
	err = r.stream(cmd)
	stopTotal()
	stopBuilt()
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("go %s: %w", strings.Join(verb, " "), err)
	}
	for _, t := range targets {
		if err := os.Rename(filepath.Join(bin, r.file(t)), t.Output); err != nil {
			return err
		}
	}
	return nil
}

// file is the name that the Go tool gives a target in a folder named by -o.
func (r *run) file(t road.Target) string { return r.c.Platform.Exe(catalog.GoName(t.Package, t.Test)) }

// stream runs the Go tool, and tells its package names (-v) from what is meant for the user.
func (r *run) stream(cmd *exec.Cmd) error {
	pipe, w := io.Pipe()
	cmd.Stdout, cmd.Stderr = w, w
	cmd.Cancel = func() error { return interrupt(cmd.Process) }
	cmd.WaitDelay = 5 * time.Second
	var reading sync.WaitGroup
	reading.Go(func() {
		lines := bufio.NewScanner(pipe)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			r.line(lines.Text())
		}
		_, _ = io.Copy(io.Discard, pipe) // an over-long line must not block the Go tool
	})
	err := start(cmd, func(pid int) (stop func() int64) {
		r.rep.By(fmt.Sprintf("%s, pid %d", strings.Join(cmd.Args[:2], " "), pid))
		return WatchMemory(pid)
	}, r.rep.Memory)
	_ = w.Close()
	reading.Wait()
	return err
}

// line sorts one line of `go build -v`: a line that is nothing but an import path says that the package was
// compiled.
func (r *run) line(text string) {
	switch {
	case strings.HasPrefix(text, "go: downloading "):
		r.rep.Progress(r.packages.Load(), 0, strings.TrimPrefix(text, "go: "))
	case text != "" && !strings.ContainsAny(text, " \t:#") && !strings.HasPrefix(text, "-"):
		done := r.packages.Add(1)
		total := r.total.Load()
		if total > 0 {
			total = max(total, done) // packages that were on their way when they were counted may count twice or not
		}
		r.rep.Progress(done, total, text)
	default:
		r.rep.Output(text)
	}
}

// start runs cmd to its end. On Linux it dies with this process, even by kill -9.
func start(cmd *exec.Cmd, started func(pid int) (stop func() int64), memory func(int64)) error {
	unlock := dieWithParent(cmd)
	defer unlock()
	if err := cmd.Start(); err != nil {
		return err
	}
	stop := started(cmd.Process.Pid)
	err := cmd.Wait()
	memory(stop())
	if exit, ok := err.(*exec.ExitError); ok {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() && status.Signal() == syscall.SIGKILL {
			return fmt.Errorf("%w (killed: out of memory, perhaps)", err)
		}
	}
	return err
}
