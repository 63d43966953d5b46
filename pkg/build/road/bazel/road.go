package bazel

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"slipway.build/pkg/build/road"
	"slipway.build/pkg/mechanism/child"
)

// A Road is the Bazel road.
type Road struct {
	Version string // of the Go that release.yaml pins, as runtime.Version has it
	Bazel   func(ctx context.Context, progress func(string)) (Bazel, error)

	mu sync.Mutex // Bazel does one command at a time in a tree
}

// A Bazel runs commands in the tree.
type Bazel interface {
	// Command prepares a run; args begin with the command, such as build.
	Command(ctx context.Context, args ...string) *exec.Cmd
	// String says which one it is, and where it is from.
	String() string
}

func (*Road) Name() string { return "bazel" }

// Config are the files of a tree, besides sources, that decide what Bazel makes of them. Those that are not there are missing by
// intent.
func Config() []string {
	return []string{
		".bazelrc", ".bazelversion", ".bazelignore", "user.bazelrc", "WORKSPACE", "MODULE.bazel", "BUILD.bazel", "build/bazel/",
		"go.mod", "go.sum", "cmd/BUILD.bazel",
	}
}

// Recipe names the Go, the platform and the stamp: all else is in files.
func (r *Road) Recipe(c road.Compilation) []string {
	return []string{"road bazel", r.Version, c.Platform.String(), c.LDFlags}
}

// An OptionError says that an option is none of this road.
type OptionError struct{ Option, Instead string }

func (e *OptionError) Error() string {
	return fmt.Sprintf("%s: not on the Bazel road (ROAD=bazel): %s", e.Option, e.Instead)
}

// ExitCode is that of a usage error.
func (*OptionError) ExitCode() int { return 2 }

// Validate says whether Bazel can do what options want.
func Validate(o road.Options) error {
	const instead = "take another road, or set a flag of Bazel in user.bazelrc"
	switch {
	case o.Debug:
		return &OptionError{"DBG=1", instead}
	case o.GoFlags != "":
		return &OptionError{"GOFLAGS=" + o.GoFlags, instead}
	case o.LDFlags != "":
		return &OptionError{"GOLDFLAGS=" + o.LDFlags, instead}
	}
	return nil
}

// Label is what Bazel calls a target. Those that are main packages of other modules have an alias in the components' folder.
func Label(c road.Compilation, t road.Target) string {
	if rel, ok := strings.CutPrefix(t.Package, "./"); ok {
		return fmt.Sprintf("//%s:%s", path.Join(c.Module, rel), path.Base(rel))
	}
	return fmt.Sprintf("//%s:%s", c.Module, path.Base(t.Package))
}

// Compile runs bazel build for all targets, and copies what it made.
func (r *Road) Compile(ctx context.Context, c road.Compilation, rep road.Report) error {
	labels := make([]string, len(c.Targets))
	for i, t := range c.Targets {
		if t.Test {
			return &OptionError{"tests of " + t.Package, "Bazel has no target for them; take another road"}
		}
		labels[i] = Label(c, t)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	b, err := r.Bazel(ctx, func(text string) { rep.Progress(0, 0, text) })
	if err != nil {
		return err
	}
	made, err := build(ctx, b, c, labels, rep)
	if err != nil {
		return err
	}
	return take(c, labels, made, r.Version)
}

// take checks the files that Bazel made of labels, and copies them to where the targets want them.
func take(c road.Compilation, labels, made []string, goVersion string) error {
	pinned, err := selected(filepath.Join(c.Root, filepath.FromSlash(c.Module)))
	if err != nil {
		return err
	}
	for i, t := range c.Targets {
		info, err := buildinfo.ReadFile(made[i])
		if err != nil {
			return fmt.Errorf("%s: %w", labels[i], err)
		}
		if err := pinned.check(info, goVersion); err != nil {
			return fmt.Errorf("%s: %w", labels[i], err)
		}
		if err := copyFile(made[i], t.Output); err != nil {
			return fmt.Errorf("take %s: %w", labels[i], err)
		}
		if c.Built != nil {
			c.Built(t.Output)
		}
	}
	return nil
}

// build builds labels, and returns the file that each is.
func build(ctx context.Context, b Bazel, c road.Compilation, labels []string, rep road.Report) ([]string, error) {
	events := filepath.Join(c.Scratch, "events.json")
	args := append([]string{
		"build", "--config=release", "--platforms=//build/bazel/platforms:" + c.Platform.OS + "_" + c.Platform.Arch,
		"--color=no", "--curses=no", "--show_progress_rate_limit=1", "--show_result=0", "--noshow_loading_progress",
	}, EventOptions(events)...)
	args = append(args, "--")
	cmd := b.Command(ctx, append(args, labels...)...)
	output := &output{report: rep}
	cmd.Stdout, cmd.Stderr = output, output // one and the same: it is written to by one goroutine
	child.Interrupt(cmd, time.Minute)       // Bazel's client then stops the server, which keeps what is done
	rep.By(fmt.Sprintf("%s: bazel build", b))
	err := child.Run(cmd, syscall.SIGINT, nil)
	output.flush()
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
			return nil, fmt.Errorf("%s: Bazel made %d files of it (%s), not one", label, len(made[label]), strings.Join(made[label], ", "))
		}
		files[i] = made[label][0]
	}
	return files, nil
}

// explain says what an exit code of Bazel means and what to do. The numbers are from https://bazel.build/run/scripts#exit-codes.
func explain(err error) error {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return fmt.Errorf("bazel build: %w", err)
	}
	hint := map[int]string{
		2:  "it did not understand its options: look at .bazelrc and user.bazelrc",
		9:  "another command has the lock: wait for it",
		34: "the remote server failed or went away: the same command goes on where it was; without --config=remote it builds here",
		37: "Bazel itself failed",
		38: "the build events could not be written",
		39: "the remote cache lost what it had: run the same command again",
	}[exit.ExitCode()]
	if hint == "" {
		return fmt.Errorf("bazel build: %w", err)
	}
	return fmt.Errorf("bazel build: %w: %s", err, hint)
}

func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o777)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	_, err = io.Copy(out, in)
	return err
}
