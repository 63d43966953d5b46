package bazel

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"slipway.build/pkg/make/buildid"
	"slipway.build/pkg/make/road"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/atomicfile"
	"slipway.build/pkg/mechanism/checksum"
	"slipway.build/pkg/mechanism/child"
	"slipway.build/pkg/mechanism/recipe"
	"slipway.build/pkg/mechanism/tail"
	"slipway.build/pkg/tree/catalog"
	"slipway.build/pkg/tree/module"
)

// Info describes the Bazel road.
var Info = road.Info{Name: "bazel", Output: "_output/bazel/bin", Label: "by bazel"}

// A Road is the Bazel road.
type Road struct {
	traits
	Root    string // of the tree, absolute
	Version string // of the Go that release.yaml pins, as runtime.Version has it
	Bazel   func(ctx context.Context, progress func(string)) (Bazel, error)
	Check   func(ctx context.Context) error // returns what Bazel would fail for on this machine

	// Stale describes what is not up to date of the files that Bazel reads, or is empty. No key has these files.
	Stale func(ctx context.Context) (string, error)

	mu sync.Mutex // Bazel runs one command at a time in a tree
}

// A Bazel runs commands in the tree.
type Bazel interface {
	// Command prepares a run; args begin with the command, such as build.
	Command(ctx context.Context, args ...string) *exec.Cmd
	// String describes the program and where it is from.
	String() string
}

// Recipe names no file of Bazel's configuration: Compile refuses files that `make update` would change, and binaries that differ from
// those of go build by how they were made. Only if the build IDs of the Go are not known, binaries may have other bytes, which depend on
// all of it.
func (r *Road) Recipe(spec road.Spec, bin road.Binary) []string {
	of := road.Recipe(r.Version, spec, bin)
	if !buildid.Known(r.Version) {
		of = append(of, "by rules_go "+r.configuration())
	}
	return of
}

// configuration returns a digest of the files that configure Bazel: those of the tree, or of the program.
func (r *Road) configuration() string {
	h := sha256.New()
	if _, err := os.Stat(filepath.Join(r.Root, ".bazelversion")); err != nil {
		program, err := os.Executable()
		if err == nil {
			program, err = checksum.File(program)
		}
		fmt.Fprintf(h, "%q %v\n", program, err)
	}
	for _, name := range []string{
		".bazelrc", ".bazelversion", ".bazelignore", "user.bazelrc", "WORKSPACE", "MODULE.bazel", "go.sum", "build/bazel",
	} {
		_ = filepath.WalkDir(filepath.Join(r.Root, filepath.FromSlash(name)), func(file string, e fs.DirEntry, err error) error {
			if err == nil && e.Type().IsRegular() {
				data, err := os.ReadFile(file)
				fmt.Fprintf(h, "%q %q %v\n", name, data, err)
			}
			return nil // what is missing is one state of it
		})
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Borrows reports whether a compile may take results of other machines, which is so if the user has settings for Bazel. They are not read.
func (r *Road) Borrows() bool {
	settings := []string{filepath.Join(r.Root, "user.bazelrc"), "/etc/bazel.bazelrc"}
	if home, err := os.UserHomeDir(); err == nil {
		settings = append(settings, filepath.Join(home, ".bazelrc"))
	}
	return slices.ContainsFunc(settings, func(file string) bool { _, err := os.Stat(file); return err == nil })
}

// Ready looks for Bazel, or what it would be made from.
func (r *Road) Ready(ctx context.Context) error { return r.Check(ctx) }

// Commands returns the one bazel build of a compilation.
func (r *Road) Commands(c road.Compilation) []string {
	args := append(append([]string{"bazel"}, buildArgs(c.Platform)...), "--")
	return []string{road.ShellCommand(r.Root, nil, append(args, labels(c)...)...)}
}

// traits are common to the roads of this package.
type traits struct{}

// Info returns the package's Info.
func (traits) Info() road.Info { return Info }

// CheckOptions refuses all options: they are flags of the Go command, and Bazel takes its own from .bazelrc and user.bazelrc.
func (traits) CheckOptions(o road.Options) error {
	var what string
	switch {
	case o.FIPS != "":
		return &road.UnsupportedError{Road: Info.Name, What: "fips: " + o.FIPS + " in " + catalog.File, Why: "rules_go does not know GOFIPS140"}
	case o.Debug:
		what = "DBG=1"
	case o.GoFlags != "":
		what = "GOFLAGS=" + o.GoFlags
	case o.GCFlags != "":
		what = "GOGCFLAGS=" + o.GCFlags
	case o.LDFlags != "":
		what = "GOLDFLAGS=" + o.LDFlags
	default:
		return nil
	}
	return &road.UnsupportedError{Road: Info.Name, What: what, Why: "Bazel takes flags from user.bazelrc"}
}

// CheckBinary refuses test binaries.
func (traits) CheckBinary(bin road.Binary) error {
	if bin.Test {
		return &road.UnsupportedError{
			Road: Info.Name, What: catalog.GoName(bin.Package, true), Why: "Bazel has no target for tests of a package of another module",
		}
	}
	return nil
}

// Label returns Bazel's name of a binary. Main packages of other modules have an alias in the folder of the module.
func Label(module string, bin road.Binary) string {
	if rel, ok := strings.CutPrefix(bin.Package, "./"); ok {
		return fmt.Sprintf("//%s:%s", path.Join(module, rel), path.Base(rel))
	}
	return fmt.Sprintf("//%s:%s", module, path.Base(bin.Package))
}

func labels(c road.Compilation) []string {
	labels := make([]string, len(c.Targets))
	for i, t := range c.Targets {
		labels[i] = Label(c.Module, t.Binary)
	}
	return labels
}

// Compile runs bazel build for all targets, and copies what it made.
func (r *Road) Compile(ctx context.Context, c road.Compilation, rep action.Report) error {
	for _, t := range c.Targets {
		if err := r.CheckBinary(t.Binary); err != nil {
			return err
		}
	}
	if err := CheckConfig(r.Root, c.Spec); err != nil {
		return err
	}
	if stale, err := r.Stale(ctx); err != nil {
		return fmt.Errorf("look whether the files for Bazel are up to date: %w", err)
	} else if stale != "" {
		return fmt.Errorf("%w: %s", ErrStale, stale)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	b, err := r.Bazel(ctx, rep.Progress)
	if err != nil {
		return err
	}
	made, err := build(ctx, b, c, rep)
	if err != nil {
		return err
	}
	return take(r.Root, c, made, r.Version)
}

// A Made is the Bazel road inside of one of Bazel's actions: Bazel has compiled the binaries before.
type Made struct {
	traits
	Root    string            // of the tree, absolute
	Version string            // of the Go that release.yaml pins, as runtime.Version has it
	Files   map[string]string // by label: the binaries for one platform
}

// Recipe holds all files, since all are for one platform. They are no inputs of the compile, for they are not in the tree.
func (m *Made) Recipe(spec road.Spec, bin road.Binary) []string {
	return recipe.Spec(struct{ Files map[string]string }{m.Files}, road.Recipe(m.Version, spec, bin)...)
}

// Compile copies the files, after the same checks as in the Bazel road.
func (m *Made) Compile(_ context.Context, c road.Compilation, _ action.Report) error {
	files := make([]string, len(c.Targets))
	for i, label := range labels(c) {
		if files[i] = m.Files[label]; files[i] == "" {
			return fmt.Errorf("%s: the release holds it, and Bazel did not make it: %w", label, ErrStale)
		}
	}
	return take(m.Root, c, files, m.Version)
}

// take checks the files that Bazel made for the targets, and copies them to the targets' outputs.
func take(root string, c road.Compilation, made []string, goVersion string) error {
	selected, err := load(root, c.Spec)
	if err != nil {
		return err
	}
	labels := labels(c)
	for i, t := range c.Targets {
		binary, err := module.ReadBinary(made[i])
		if err != nil {
			return fmt.Errorf("%s: %w", labels[i], err)
		}
		if err := check(binary, selected, goVersion); err != nil {
			return fmt.Errorf("%s: %w", labels[i], err)
		}
		id, err := buildid.OfProgram(made[i])
		if err != nil {
			return fmt.Errorf("%s: %w", labels[i], err)
		}
		if err := checkBuild(binary, id, c.Tags); err != nil {
			return fmt.Errorf("%s: %w", labels[i], err)
		}
		if err := errors.Join(atomicfile.Copy(made[i], t.Output), os.Chmod(t.Output, 0o755)); err != nil {
			return fmt.Errorf("take %s: %w", labels[i], err)
		}
		if c.Built != nil {
			c.Built(t.Output)
		}
	}
	return nil
}

// load reads the go.mod that decides which modules are linked.
func load(root string, s road.Spec) (*module.Module, error) {
	if s.ModFile == "" {
		return module.Load(root, s.Module)
	}
	dir := path.Dir(s.ModFile)
	if path.IsAbs(dir) {
		return module.Load(dir, ".")
	}
	return module.Load(root, dir)
}

// configFile has the versions of modules for Bazel. `make update` writes it.
const configFile = "build/bazel/generated/config.bzl"

// patchedVersion is a version in configFile that patches have made: see package patched.
var patchedVersion = regexp.MustCompile(`"(v[^"]+-patched\.p[^"]+)"`)

// CheckConfig returns an error if Bazel would link modules with other patches than the tree's. What is linked is checked, too, but a binary
// of Bazel does not have the sum of the module of its main package.
func CheckConfig(root string, s road.Spec) error {
	data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(configFile)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // Bazel says so
	} else if err != nil {
		return err
	}
	selected, err := load(root, s)
	if err != nil {
		return err
	}
	config, wanted := string(data), map[string]bool{}
	for _, m := range selected.Requires {
		version := m.Code().Version
		if !strings.Contains(version, "-patched.p") || !strings.Contains(config, fmt.Sprintf("%q: struct(", m.Path)) {
			continue
		}
		if wanted[version] = true; !strings.Contains(config, fmt.Sprintf("%q", version)) {
			return fmt.Errorf("%s does not have %s as the tree's patches change it: %w", configFile, m.Path, ErrStale)
		}
	}
	for _, found := range patchedVersion.FindAllStringSubmatch(config, -1) {
		if !wanted[found[1]] {
			return fmt.Errorf("%s has %s, of other patches than the tree's: %w", configFile, found[1], ErrStale)
		}
	}
	return nil
}

// buildArgs returns the arguments that decide what bazel build makes.
func buildArgs(platform catalog.Platform) []string {
	return []string{"build", "--config=release", "--platforms=//build/bazel/platforms:" + platform.OS + "_" + platform.Arch}
}

// build builds the targets, and returns the file that was made for each.
func build(ctx context.Context, b Bazel, c road.Compilation, rep action.Report) ([]string, error) {
	labels, events := labels(c), filepath.Join(c.Scratch, "events.json")
	args := append(buildArgs(c.Platform),
		"--color=no", "--curses=no", "--show_progress_rate_limit=1", "--show_result=0", "--noshow_loading_progress")
	args = append(append(args, EventOptions(events)...), "--")
	cmd := b.Command(ctx, append(args, labels...)...)
	output := &tail.Lines{Each: output{rep}.sort}
	cmd.Stdout, cmd.Stderr = output, output // the same value, so that one goroutine writes to it
	child.Interrupt(cmd, time.Minute)       // Bazel's client then makes the server stop the build, which keeps what is done
	rep.SetWorker(fmt.Sprintf("%s: bazel build", b))
	err := child.Run(cmd, syscall.SIGINT, nil)
	output.Flush()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, explain(err)
	}
	f, err := os.Open(events)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	made, err := Outputs(f)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", events, err)
	}
	files := make([]string, len(labels))
	for i, label := range labels {
		if len(made[label]) != 1 {
			return nil, fmt.Errorf("%s: Bazel made %d files for it (%s), not one", label, len(made[label]), strings.Join(made[label], ", "))
		}
		files[i] = made[label][0]
	}
	return files, nil
}

// explain adds the meaning of Bazel's exit code to an error. The numbers are from https://bazel.build/run/scripts#exit-codes.
func explain(err error) error {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return fmt.Errorf("bazel build: %w", err)
	}
	hint := map[int]string{
		2:  "invalid options: look at .bazelrc and user.bazelrc",
		9:  "another command holds the lock: wait for it",
		34: "the remote server failed: run the same command again, or build here, without the configuration remote",
		37: "Bazel itself failed",
		38: "the build events could not be written",
		39: "the remote cache lost results: run the same command again",
	}[exit.ExitCode()]
	if hint == "" {
		return fmt.Errorf("bazel build: %w", err)
	}
	return fmt.Errorf("bazel build: %w: %s", err, hint)
}
