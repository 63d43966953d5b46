package container

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"slipway.build/pkg/build/kubecross"
	"slipway.build/pkg/build/road"
	"slipway.build/pkg/build/toolchain"
	"slipway.build/pkg/mechanism/engine"
)

// A Road is the container road.
type Road struct {
	Root    string   // of the tree, absolute
	Modules []string // folders of the modules whose packages are compiled, relative to Root
	Pin     toolchain.Pin
	Image   kubecross.Image
	Go      func(ctx context.Context, progress func(string)) (*toolchain.Go, error) // of this machine, for downloads
	Sources func(ctx context.Context) ([]string, error)                             // the tree's files, relative to Root

	Work bool // the sources are for somebody's own commands, which have a copy of their own

	// Used, if not nil, is called before anything is made in an engine.
	Used func() error

	mu      sync.Mutex
	session *session // of this run, once it is open
}

func (*Road) Name() string { return "container" }

// Recipe holds nothing of the engine and the image but the Go in it: the rest does not reach the bytes. Debug builds carry
// paths, and these are the same in every container.
func (r *Road) Recipe(c road.Compilation) []string {
	recipe := []string{"road container", r.Pin.Version, c.Platform.String(), "GOFLAGS=" + c.Options.GoFlags}
	recipe = append(recipe, toolchain.Levels()...)
	return append(recipe, c.BuildFlags()...)
}

// Compile runs go build for all main packages at once, then go test -c for the test packages, and fetches the results.
func (r *Road) Compile(ctx context.Context, c road.Compilation, rep road.Report) (err error) {
	var later chores
	defer func() { err = errors.Join(err, later.wait()) }()
	s, first, err := r.open(ctx, rep)
	if err != nil {
		return err
	}
	ctx, stop := s.engine.Watch(ctx)
	defer stop()
	over := make(chan struct{})
	defer close(over)
	host := s.hostBeside(ctx, first, &later, over)
	output := &road.GoOutput{Report: rep}
	for _, command := range c.GoCommands() {
		if err := s.compile(ctx, c, command.Verb, command.Targets, output, rep, &later); err != nil {
			return err
		}
	}
	h, err := host()
	if err != nil {
		return s.said(ctx, err)
	}
	return s.said(ctx, fetch(ctx, h, c, rep))
}

// hostBeside gets the rsync container for the results: the one that has brought the sources, or one that is started beside the
// compile, so that nobody has to wait for it afterwards. It is removed when all is over.
func (s *session) hostBeside(ctx context.Context, first *host, later *chores, over <-chan struct{}) func() (*host, error) {
	type started struct {
		h   *host
		err error
	}
	result := make(chan started, 1)
	later.do(func() error {
		h, err := first, error(nil)
		if h == nil {
			h, err = s.host(ctx)
		}
		result <- started{h, err}
		if err != nil {
			return nil // it is told to who asks for the container
		}
		<-over
		return h.remove()
	})
	return func() (*host, error) {
		got := <-result
		return got.h, got.err
	}
}

// compile runs the Go command in a build container. What it makes stays in a folder of the volume, so that the Go tool, which
// does not cache links, can skip those that would make the same again. A binary that this machine does not have, or no
// longer has as it was made, is made again.
func (s *session) compile(ctx context.Context, c road.Compilation, verb []string, targets []road.Target, output *road.GoOutput, rep road.Report, later *chores) error {
	folder := outFolder(c)
	args := append([]string{"go"}, verb...)
	args = append(args, "-v")
	args = append(args, c.BuildFlags()...)
	args = append(args, "-o", folder+"/bin/")
	var again []string
	for _, t := range targets {
		args = append(args, t.Package)
		if t.Previous == "" {
			again = append(again, folder+"/bin/"+c.File(t))
		}
	}
	env := append(environment(c.Options.GoFlags), "GOOS="+c.Platform.OS, "GOARCH="+c.Platform.Arch, "CGO_ENABLED=0", "GOTMPDIR="+folder+"/tmp")
	build, err := s.engine.Start(ctx, s.owner, engine.Spec{
		Role:    roleBuild,
		Image:   s.image,
		Command: append([]string{attended, "/bin/sh", "-euc", prepare, folder, fmt.Sprint(len(again))}, append(again, args...)...),
		Env:     env,
		Dir:     path.Join(treeFolder, filepath.ToSlash(c.Module)),
		Volumes: volumes(treeVolume.reading(), modulesVolume.reading(), goVolume(s.image).reading(), cacheVolume, outVolume),
		Scratch: scratch,
	}, engine.Streams{Out: output, Err: output})
	if err != nil {
		return s.said(ctx, err)
	}
	rep.By(fmt.Sprintf("container %s of %s: %s", build.Name, s.image, strings.Join(args[:2], " ")))
	stopTotal := output.WatchTotal(ctx, c, targets, func(ctx context.Context, args []string) ([]byte, error) {
		return build.Run(ctx, append([]string{"go"}, args...)...)
	})
	memory := build.WatchMemory()
	err = build.Wait(ctx)
	rep.Memory(memory())
	stopTotal()
	later.do(build.Remove)
	var exit engine.Exit
	ended := errors.As(err, &exit)
	if err == nil || ended { // all that it said is here
		output.Flush()
	}
	if ended {
		err = fmt.Errorf("container %s: go %s: %w", build.Name, strings.Join(verb, " "), exit)
	}
	return s.said(ctx, err)
}

// prepare is what runs before the Go command: $0 is the folder, $1 how many files are to go, which follow, and then the
// command. What a build that was killed left in the folder for temporary files goes, too.
const prepare = `rm -rf "$0/tmp"
mkdir -p "$0/tmp" "$0/bin"
n=$1
shift
while [ "$n" -gt 0 ]; do
	rm -f "$1"
	shift
	n=$((n - 1))
done
exec "$@"`

// fetch gets the targets' binaries out of the engine.
func fetch(ctx context.Context, h *host, c road.Compilation, rep road.Report) error {
	to, err := os.MkdirTemp(c.Scratch, "bin")
	if err != nil {
		return err
	}
	var names []string
	previous := ""
	for _, t := range c.Targets {
		names = append(names, c.File(t))
		if t.Previous != "" {
			previous = filepath.Dir(t.Previous)
		}
	}
	from := path.Join(strings.TrimPrefix(outFolder(c), outFolderRoot+"/"), "bin")
	if err := h.fetchFrom(ctx, rep, "out", from, names, to, previous); err != nil {
		return err
	}
	for _, t := range c.Targets {
		if err := os.Rename(filepath.Join(to, c.File(t)), t.Output); err != nil {
			return err
		}
	}
	return nil
}

// outFolder is where the binaries of a platform are in build containers. Those of debug builds stand apart, so that changing
// between the two is cheap.
func outFolder(c road.Compilation) string {
	name := c.Platform.Dash()
	if c.Options.Debug {
		name += "-debug"
	}
	return outFolderRoot + "/" + name
}
