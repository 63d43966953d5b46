package container

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"slipway.build/pkg/make/kubecross"
	"slipway.build/pkg/make/road"
	"slipway.build/pkg/make/road/prebuilt"
	"slipway.build/pkg/make/toolchain"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/engine"
	"slipway.build/pkg/mechanism/transfer"
	"slipway.build/pkg/tree/catalog"
)

// Info describes the container road. Kubernetes has the binaries of its own container builds in the same place.
var Info = road.Info{Name: "container", Output: "_output/dockerized/bin", Label: "by container"}

// A Road is the container road.
type Road struct {
	Root    string   // of the tree, absolute
	Modules []string // folders of the modules whose packages are compiled, relative to Root
	Pin     toolchain.Pin
	Image   kubecross.Image
	Go      func(ctx context.Context, progress func(string)) (*toolchain.Go, error) // of this machine, for downloads
	Sources func(ctx context.Context) ([]string, error)                             // the tree's files, relative to Root

	Work bool // for user commands, which get a copy of the sources that they may change

	// Used, if not nil, is called before anything is made in an engine.
	Used func() error

	mu      sync.Mutex
	session *session    // of this run, once it is open
	slow    atomic.Bool // fetching compiled packages takes longer than compiling them
}

// Info returns the package's Info.
func (*Road) Info() road.Info { return Info }

// Recipe holds nothing of the engine and the image but the Go version: nothing else reaches the bytes. Debug builds contain paths,
// which are the same in every container.
func (r *Road) Recipe(spec road.Spec, bin road.Binary) []string {
	return road.Recipe(r.Pin.Version, spec, bin)
}

// Ready looks for rsync here, for an engine, and for the build image or what it would be built from.
func (r *Road) Ready(ctx context.Context) error {
	e, err := dial(ctx)
	if err != nil {
		return err
	}
	defer e.Close()
	return e.Lost(r.Image.Ready(ctx, e, engine.OwnerOf(r.Root)))
}

// Commands shows the transfers with a port that stands for the tunnel through the engine, and the Go command without the script
// that runs it.
func (r *Road) Commands(c road.Compilation) []string {
	const port = 873
	owner := engine.OwnerOf(r.Root)
	image, err := r.Image.Ref(owner, catalog.Platform{OS: "linux", Arch: runtime.GOARCH})
	if err != nil {
		image = kubecross.Repository
	}
	remote := &transfer.Remote{}
	rsync := func(args []string) []string { return append([]string{"rsync"}, args...) }
	lines := []string{
		`cd "$(go env GOMODCACHE)/cache/download" && ` + road.ShellCommand("", nil, rsync(remote.AddArgs(port, "modules"))...),
		road.ShellCommand(r.Root, nil, rsync(remote.MirrorArgs(port, r.sourceModule()))...),
	}
	if g, err := r.generatedFor(c.Spec); err == nil && g != nil {
		c.ModFile = g.modFile()
	}
	for _, command := range c.GoCommands() {
		spec := buildContainer(image, c.Spec, ownPlace(c.Spec))
		spec.Command = append([]string{"go"}, command.Args(c.Spec, outFolder(c.Spec)+"/bin/")...)
		lines = append(lines, road.ShellCommand("", nil, spec.DockerRun(owner)...))
	}
	fetch := rsync(remote.FetchArgs(port, "out"))
	return append(lines, road.ShellCommand(filepath.Dir(c.Targets[0].Output), nil, fetch...))
}

// Compile runs go build for all main packages at once, then go test -c for the test packages, and fetches the results.
func (r *Road) Compile(ctx context.Context, c road.Compilation, rep action.Report) (err error) {
	var later errgroup.Group // such as removing a container while the next one starts
	defer func() { err = errors.Join(err, later.Wait()) }()
	s, first, err := r.open(ctx, rep)
	if err != nil {
		return err
	}
	ctx, stop := s.engine.Watch(ctx)
	defer stop()
	packages := &prebuilt.Packages{Root: r.Root, Go: r.Pin.Version, CPUs: s.engine.CPUs, Compilation: c, Report: rep, Slow: &r.slow}
	if c.Spec, err = r.generate(ctx, s, first, c.Spec, rep); err != nil {
		return errors.Join(s.cause(ctx, err), first.remove())
	}
	commands := c.GoCommands()
	places := make([]workplace, len(commands))
	for i, command := range commands {
		if places[i], first, err = s.share(ctx, first, packages, command); err != nil {
			return errors.Join(err, first.remove())
		}
	}
	over := make(chan struct{})
	defer close(over)
	host := s.hostBeside(ctx, first, &later, over)
	output := &road.GoOutput{Report: rep}
	for i, command := range commands {
		if err := s.compile(ctx, c, command, places[i], output, rep, &later); err != nil {
			return err
		}
	}
	h, err := host()
	if err != nil {
		return s.cause(ctx, err)
	}
	for i, command := range commands {
		if err := fetch(ctx, h, c, command, places[i], rep); err != nil {
			return s.cause(ctx, err)
		}
	}
	return nil
}

// generate sends the go.mod that a spec names instead of the module's own, once in a run, and returns the spec as it is in containers.
// First may be nil.
func (r *Road) generate(ctx context.Context, s *session, first *host, spec road.Spec, rep action.Report) (inside road.Spec, err error) {
	g, err := r.generatedFor(spec)
	if g == nil || err != nil {
		return spec, err
	}
	inside = spec
	inside.ModFile = g.modFile()
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Contains(s.generated, g.folder) {
		return inside, nil
	}
	h := first
	if h == nil {
		if h, err = s.host(ctx); err != nil {
			return inside, err
		}
		defer func() { err = errors.Join(err, h.remove()) }()
	}
	err = step(rep, "sending patched modules", func() (string, error) {
		stats, err := g.send(ctx, h)
		return sent("patched modules", stats), err
	})
	if err == nil {
		s.generated = append(s.generated, g.folder)
	}
	return inside, err
}

// hostBeside returns a function that waits for the rsync container for the results: the first one, which received the sources, or
// one that starts during the compile, so that nothing waits for it afterwards. It is removed when over is closed.
func (s *session) hostBeside(ctx context.Context, first *host, later *errgroup.Group, over <-chan struct{}) func() (*host, error) {
	type started struct {
		h   *host
		err error
	}
	result := make(chan started, 1)
	later.Go(func() error {
		h, err := first, error(nil)
		if h == nil {
			h, err = s.host(ctx)
		}
		result <- started{h, err}
		if err != nil {
			return nil // it is returned to the caller of the function
		}
		<-over
		return h.remove()
	})
	return func() (*host, error) {
		got := <-result
		return got.h, got.err
	}
}

// buildContainer returns a container for Go commands that compile spec, without its command.
func buildContainer(image string, spec road.Spec, at workplace) engine.Spec {
	env := append(environment(spec.Options.GoFlags, at.cache),
		"GOOS="+spec.Platform.OS, "GOARCH="+spec.Platform.Arch, "CGO_ENABLED=0", "GOTMPDIR="+at.out+"/tmp", road.CollectLess)
	if fips := toolchain.FIPSEnv(spec.Options.FIPS); len(fips) > 0 { // an engine does not say which of two values counts
		env = append(slices.DeleteFunc(env, func(kv string) bool { return strings.HasPrefix(kv, "GOFIPS140=") }), fips...)
	}
	return engine.Spec{
		Role:    roleBuild,
		Image:   image,
		Env:     env,
		Dir:     path.Join(treeFolder, filepath.ToSlash(spec.Module)),
		Volumes: volumes(treeVolume.reading(), modulesVolume.reading(), goVolume(image).reading(), cacheVolume, outVolume),
		Scratch: scratch,
	}
}

// compile runs the Go command in a build container. The binaries stay in a folder of the volume, so that the Go command, which
// does not cache links, can skip those that would make the same again. A binary whose output is missing here, or was changed, is
// linked again.
func (s *session) compile(ctx context.Context, c road.Compilation, command road.GoCommand, at workplace, output *road.GoOutput,
	rep action.Report, later *errgroup.Group) error {
	folder := at.out
	var again []string
	for _, t := range command.Targets {
		if t.Previous == "" {
			again = append(again, folder+"/bin/"+c.File(t.Binary))
		}
	}
	spec := buildContainer(s.image, c.Spec, at)
	spec.Command = append([]string{attended, "/bin/sh", "-euc", prepare, folder, fmt.Sprint(len(again))}, again...)
	spec.Command = append(append(spec.Command, "go"), command.Args(c.Spec, folder+"/bin/")...)
	build, err := s.engine.Start(ctx, s.owner, spec, engine.Streams{Out: output, Err: output})
	if err != nil {
		return s.cause(ctx, err)
	}
	rep.SetWorker(fmt.Sprintf("container %s of %s: go %s", build.Name, s.image, command.Verb[0]))
	stopTotal := output.WatchTotal(ctx, c, command.Targets, func(ctx context.Context, args []string) ([]byte, error) {
		return build.Run(ctx, append([]string{"go"}, args...)...)
	})
	memory := build.WatchMemory()
	err = build.Wait(ctx)
	rep.Memory(memory())
	stopTotal()
	later.Go(build.Remove)
	var exit engine.Exit
	ended := errors.As(err, &exit)
	if err == nil || ended { // its output is complete
		output.Flush()
	}
	if ended {
		err = fmt.Errorf("container %s: go %s: %w", build.Name, strings.Join(command.Verb, " "), exit)
	}
	return s.cause(ctx, err)
}

// prepare is a script that runs before the Go command. $0 is the folder, $1 the number of files to remove, which follow, and then
// the command. It also removes temporary files that a killed build left.
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

// fetch fetches the binaries of a command from the engine.
func fetch(ctx context.Context, h *host, c road.Compilation, command road.GoCommand, at workplace, rep action.Report) error {
	to, err := os.MkdirTemp(c.Scratch, "bin")
	if err != nil {
		return err
	}
	var names []string
	previous := ""
	for _, t := range command.Targets {
		names = append(names, c.File(t.Binary))
		if t.Previous != "" {
			previous = filepath.Dir(t.Previous)
		}
	}
	from := path.Join(strings.TrimPrefix(at.out, outFolderRoot+"/"), "bin")
	if err := h.fetchFrom(ctx, rep, "out", from, names, to, previous); err != nil {
		return err
	}
	for _, t := range command.Targets {
		if err := os.Rename(filepath.Join(to, c.File(t.Binary)), t.Output); err != nil {
			return err
		}
	}
	return nil
}

// outFolder returns the folder of a platform's binaries in build containers. Debug builds have one of their own, so that changing
// between the two is cheap.
func outFolder(spec road.Spec) string {
	name := spec.Platform.Dash()
	if spec.Options.Debug {
		name += "-debug"
	}
	return outFolderRoot + "/" + name
}
