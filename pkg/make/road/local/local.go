// Package local is the road that runs the Go command on this machine: one `go build` per module and platform.
package local

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"slipway.build/pkg/make/relink"
	"slipway.build/pkg/make/road"
	"slipway.build/pkg/make/road/prebuilt"
	"slipway.build/pkg/make/toolchain"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/child"
)

// Info describes the local road, the default.
var Info = road.Info{Name: "local", Output: "_output/local/bin", Linked: true}

// A Road is the local road.
type Road struct {
	Root string // of the tree, absolute
	Pin  toolchain.Pin
	Go   func(ctx context.Context, progress func(string)) (*toolchain.Go, error) // finds the pinned Go, once

	slow atomic.Bool // fetching compiled packages takes longer than compiling them
}

// Info returns the package's Info.
func (*Road) Info() road.Info { return Info }

// Recipe holds no path and nothing of the machine, except for debug builds: without -trimpath their binaries contain the paths
// of the tree, of the standard library and of the modules.
func (r *Road) Recipe(spec road.Spec, bin road.Binary) []string {
	var paths []string
	if spec.Options.Debug {
		paths = append([]string{r.Root}, r.paths()...)
	}
	return road.Recipe(r.Pin.Version, spec, bin, paths...)
}

// paths returns the paths of the pinned Go. It fetches a missing Go, which the compile needs anyway. If that fails, the compile fails,
// too, and reports why; no compile that succeeds has such a recipe.
func (r *Road) paths() []string {
	g, err := r.Go(context.Background(), nil)
	if err != nil {
		return []string{"no Go"}
	}
	return []string{"GOROOT=" + g.Root, "GOMODCACHE=" + g.ModCache}
}

// Commands returns a go build for all main packages and a go test -c for each test package. They have their whole environment,
// except for what the pinned Go takes over from the user's settings (GOPROXY, caches).
func (r *Road) Commands(c road.Compilation) []string {
	var lines []string
	for _, command := range c.GoCommands() {
		env := slices.DeleteFunc(toolchain.Constructed(), func(kv string) bool { return strings.HasPrefix(kv, "GOTOOLCHAIN=") })
		env = append(env, "GOTOOLCHAIN="+r.Pin.Version, "GOOS="+c.Platform.OS, "GOARCH="+c.Platform.Arch, "GOFLAGS="+c.Options.GoFlags)
		env = append(env, toolchain.FIPSEnv(c.Options.FIPS)...)
		folder := filepath.Dir(command.Targets[0].Output) + string(filepath.Separator)
		lines = append(lines, road.ShellCommand(r.dir(c.Spec), env, append([]string{"go"}, command.Args(c.Spec, folder)...)...))
	}
	return lines
}

// dir returns the folder of the module.
func (r *Road) dir(spec road.Spec) string {
	return filepath.Join(r.Root, filepath.FromSlash(spec.Module))
}

// Compile runs go build for all main packages at once, so that the Go command shares what they have in common and links in
// parallel, then go test -c for the test packages.
//
// The Go command does not cache links; it skips one only if the output exists and is current. So it writes into a private
// folder that holds hard links to the previous outputs. It replaces a file there by rename, so the previous output itself does
// not change.
func (r *Road) Compile(ctx context.Context, c road.Compilation, rep action.Report) error {
	g, err := r.Go(ctx, rep.Progress)
	if err != nil {
		return err
	}
	if g.Setting("GOCACHEPROG") != "" {
		c.Shared = nil // the user's program decides what is compiled
	}
	run := &run{
		g: g, c: c, dir: r.dir(c.Spec), own: g.Setting("GOCACHE"), rep: rep, output: road.GoOutput{Report: rep},
		packages: &prebuilt.Packages{Root: r.Root, Go: g.Version, CPUs: runtime.NumCPU(), Compilation: c, Report: rep, Slow: &r.slow},
	}
	for _, command := range c.GoCommands() {
		if err := run.build(ctx, command); err != nil {
			return err
		}
	}
	return nil
}

// A run is one call of Compile.
type run struct {
	g          *toolchain.Go
	c          road.Compilation
	dir        string // of the module
	own, cache string // GOCACHE of the user, and the one in use
	packages   *prebuilt.Packages
	rep        action.Report
	output     road.GoOutput
}

func (r *run) build(ctx context.Context, command road.GoCommand) error {
	r.share(ctx, command)
	bin, err := os.MkdirTemp(r.c.Scratch, "bin")
	if err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(r.c.Scratch, "tmp")
	if err != nil {
		return err
	}
	for _, t := range command.Targets {
		if t.Previous != "" {
			// This saves a link if nothing changed. It fails on file systems without hard links (exFAT, some shares).
			_ = os.Link(t.Previous, filepath.Join(bin, r.c.File(t.Binary)))
		}
	}
	args := command.Args(r.c.Spec, bin+string(filepath.Separator))
	records, flag := r.records(command)
	if flag != "" {
		args = slices.Insert(args, len(command.Verb), flag)
	}
	cmd := r.g.Command(ctx, r.dir, r.c.Platform.OS, r.c.Platform.Arch, args...)
	// GOTMPDIR on the file system of the outputs lets the Go command rename what it has linked.
	cmd.Env = append(cmd.Env, "GOFLAGS="+r.c.Options.GoFlags, "GOTMPDIR="+tmp, "GOCACHE="+r.cache, road.CollectLess)
	cmd.Env = append(cmd.Env, toolchain.FIPSEnv(r.c.Options.FIPS)...)
	stopTotal, stopBuilt := r.output.WatchTotal(ctx, r.c, command.Targets, r.list), r.watchBuilt(bin, command.Targets)
	err = r.stream(cmd)
	stopTotal()
	stopBuilt()
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("go %s: %w", strings.Join(command.Verb, " "), err)
	}
	for _, t := range command.Targets {
		if err := os.Rename(filepath.Join(bin, r.c.File(t.Binary)), t.Output); err != nil {
			return err
		}
	}
	if flag != "" {
		r.record(records, command)
	}
	if r.c.Shared != nil {
		r.keep(ctx, command)
	}
	return nil
}

// records returns a folder for records of links, and the flag of the go command that has them written, or "" if nobody wants them or there
// can be none.
func (r *run) records(command road.GoCommand) (folder, flag string) {
	if !slices.ContainsFunc(command.Targets, func(t road.Target) bool { return t.Record != "" }) {
		return "", ""
	}
	folder, err := os.MkdirTemp(r.c.Scratch, "records")
	if err != nil {
		return "", ""
	}
	if flag, err = relink.Flag(folder); err != nil {
		return "", ""
	}
	return folder, flag
}

// record moves records of links to where they are wanted. Binaries are whole without them.
func (r *run) record(folder string, command road.GoCommand) {
	if why := relink.Unknown(folder); why != "" {
		r.rep.Output(why)
	}
	for importPath, record := range relink.Records(folder) {
		for _, t := range command.Targets {
			if t.Record != "" && r.c.File(t.Binary) == r.c.File(road.Binary{Package: importPath}) {
				_ = os.Rename(record, t.Record)
			}
		}
	}
}

// list runs the Go command and returns its output.
func (r *run) list(ctx context.Context, args []string) ([]byte, error) {
	cmd := r.g.Command(ctx, r.dir, r.c.Platform.OS, r.c.Platform.Arch, args...)
	cmd.Env = append(cmd.Env, "GOFLAGS="+r.c.Options.GoFlags, "GOCACHE="+r.cache)
	cmd.Env = append(cmd.Env, toolchain.FIPSEnv(r.c.Options.FIPS)...)
	return cmd.Output()
}

// stream runs the Go command, whose output goes to r.output.
func (r *run) stream(cmd *exec.Cmd) error {
	cmd.Stdout, cmd.Stderr = &r.output, &r.output // the same value, so that one goroutine writes to it
	cmd.Cancel = func() error { return interrupt(cmd.Process) }
	cmd.WaitDelay = 5 * time.Second
	stop := func() int64 { return 0 }
	err := child.Run(cmd, syscall.SIGKILL, func(pid int) {
		r.rep.SetWorker(fmt.Sprintf("%s, pid %d", strings.Join(cmd.Args[:2], " "), pid))
		stop = WatchMemory(pid)
	})
	r.rep.Memory(stop())
	r.output.Flush()
	return err
}
