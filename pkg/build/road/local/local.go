// Package local is the road over the Go toolchain of this machine: one `go build` per module and platform.
package local

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"slipway.build/pkg/build/road"
	"slipway.build/pkg/build/toolchain"
	"slipway.build/pkg/mechanism/child"
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
	run := &run{g: g, c: c, rep: rep, output: road.GoOutput{Report: rep}}
	for _, command := range c.GoCommands() {
		if err := run.build(ctx, command.Verb, command.Targets); err != nil {
			return err
		}
	}
	return nil
}

// A run is one Compile on its way.
type run struct {
	g      *toolchain.Go
	c      road.Compilation
	rep    road.Report
	output road.GoOutput
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
			_ = os.Link(t.Previous, filepath.Join(bin, r.c.File(t)))
		}
		args = append(args, t.Package)
	}
	cmd := r.g.Command(ctx, filepath.Join(r.c.Root, filepath.FromSlash(r.c.Module)), r.c.Platform.OS, r.c.Platform.Arch, args...)
	// GOTMPDIR on the file system of the outputs lets the Go tool rename what it has linked.
	cmd.Env = append(cmd.Env, "GOFLAGS="+r.c.Options.GoFlags, "GOTMPDIR="+tmp)
	stopTotal, stopBuilt := r.output.WatchTotal(ctx, r.c, targets, r.list), r.watchBuilt(bin, targets)
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
		if err := os.Rename(filepath.Join(bin, r.c.File(t)), t.Output); err != nil {
			return err
		}
	}
	return nil
}

// list runs the Go command for what it writes.
func (r *run) list(ctx context.Context, args []string) ([]byte, error) {
	cmd := r.g.Command(ctx, filepath.Join(r.c.Root, filepath.FromSlash(r.c.Module)), r.c.Platform.OS, r.c.Platform.Arch, args...)
	cmd.Env = append(cmd.Env, "GOFLAGS="+r.c.Options.GoFlags)
	return cmd.Output()
}

// stream runs the Go tool, whose output goes to r.output.
func (r *run) stream(cmd *exec.Cmd) error {
	cmd.Stdout, cmd.Stderr = &r.output, &r.output // one and the same: it is written to by one goroutine
	cmd.Cancel = func() error { return interrupt(cmd.Process) }
	cmd.WaitDelay = 5 * time.Second
	stop := func() int64 { return 0 }
	err := child.Run(cmd, syscall.SIGKILL, func(pid int) {
		r.rep.By(fmt.Sprintf("%s, pid %d", strings.Join(cmd.Args[:2], " "), pid))
		stop = WatchMemory(pid)
	})
	r.rep.Memory(stop())
	r.output.Flush()
	return err
}
