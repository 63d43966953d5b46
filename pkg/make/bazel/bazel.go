package bazel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"slipway.build/pkg/make/toolchain"
	"slipway.build/pkg/mechanism/suggest"
)

// Options describe the Bazel to find.
type Options struct {
	Root     string                  // of the tree, absolute
	Go       *toolchain.Go           // the pinned one
	Status   string                  // the workspace status, for --config=release
	Mirror   string                  // of Debian packages, if this machine has none configured
	Alone    bool                    // uploads nothing to a remote cache, executes nothing elsewhere, and sends nobody events
	Deps     Deps                    // "" means Offline for a Bazel in a root of Debian packages, or else Registry
	Getenv   func(key string) string // the user's environment
	Progress func(string)            // may be nil
}

// Deps names a source of rules_go, gazelle and the rule sets that they need.
type Deps string

// The sources.
const (
	Registry      Deps = "registry"       // Bazel's registry, by MODULE.bazel
	Offline       Deps = "offline"        // Debian's packages and Go modules, by WORKSPACE
	LocalRegistry Deps = "local-registry" // Debian's packages and Go modules, as a registry in a folder, by MODULE.bazel
)

// A Bazel is ready to run in a tree.
type Bazel struct {
	How string // where it comes from, for messages

	options Options
	dir     string // of the workspace
	deps    Deps
	program string // on PATH
	system  string // root file system of the program; "" means this machine's
	config  []string
}

// String returns How.
func (b *Bazel) String() string { return b.How }

// Find finds the Bazel of a tree, or makes a root with it, which takes minutes.
func Find(ctx context.Context, o Options) (*Bazel, error) {
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	b := &Bazel{options: o, dir: Workspace(o.Root)}
	want, err := pinned(b.dir)
	if err != nil {
		return nil, err
	}
	var missing error
	if b.program, b.How, missing = onPath(ctx, b.dir, want); missing != nil {
		why := missing.Error()
		if b.system, err = ensureSystem(ctx, o, want, why); err != nil {
			return nil, noBazel(missing, want, err)
		}
		b.program, b.How = "/usr/bin/bazel", fmt.Sprintf("bazel %s of Debian's %s, in %s (%s)", want, suite, b.system, why)
	}
	b.deps = o.Deps
	if b.deps == "" && b.system != "" {
		b.deps = Offline
	}
	switch b.deps = cmp.Or(b.deps, Registry); b.deps {
	case Registry:
	case Offline:
		b.config = []string{"--config=offline"}
	case LocalRegistry:
		address, err := b.localRegistry(ctx)
		if err != nil {
			return nil, err
		}
		b.config = []string{"--registry=" + address}
	default:
		return nil, suggest.Unknown("source of rule sets", string(o.Deps), []string{string(Registry), string(Offline), string(LocalRegistry)})
	}
	return b, b.remember()
}

// Ready looks whether Find can succeed on this machine, without making a root. It knows nothing of a workspace that is not made yet.
func Ready(ctx context.Context, o Options) error {
	dir := Workspace(o.Root)
	want, err := pinned(dir)
	if dir != o.Root && errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	_, _, missing := onPath(ctx, dir, want)
	if missing == nil {
		return nil
	}
	if err := systemReady(ctx, o, want); err != nil {
		return noBazel(missing, want, err)
	}
	return nil
}

func noBazel(missing error, want string, err error) error {
	return fmt.Errorf("%w: install Bazelisk or Bazel %s; a root of Debian packages cannot be made: %w", missing, want, err)
}

// onPath finds the wanted Bazel on PATH. The error says what is there instead.
func onPath(ctx context.Context, root, want string) (program, how string, err error) {
	var problems []string // with the programs on PATH
	for _, name := range []string{"bazel", "bazelisk"} {
		program, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		how, err := installed(ctx, program, root, want)
		if err == nil {
			return program, how, nil
		}
		problems = append(problems, err.Error())
	}
	if len(problems) == 0 {
		problems = []string{"neither bazel nor bazelisk is on PATH"}
	}
	return "", "", errors.New(strings.Join(problems, "; "))
}

// pinned reads .bazelversion.
func pinned(dir string) (string, error) {
	data, err := os.ReadFile(filepath.Join(dir, pinFile))
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(data)), nil
}

// installed checks that a program is the wanted Bazel, and returns how that is known.
func installed(ctx context.Context, program, root, want string) (how string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute) // Bazelisk may have to download it
	defer cancel()
	c := exec.CommandContext(ctx, program, "--version")
	c.Dir = root
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("%s --version: %w", program, err)
	}
	output := strings.TrimSpace(string(out))
	version, ok := strings.CutPrefix(output, "bazel ")
	if ok && version == want {
		return fmt.Sprintf("%s, by its version %s", program, want), nil
	}
	if ok && version[0] >= '0' && version[0] <= '9' {
		return "", fmt.Errorf("%s is %s, and .bazelversion pins %s", program, version, want)
	}
	pkg, version := debianPackage(ctx, program)
	if upstream(version) == want {
		return fmt.Sprintf("%s, by its Debian package %s %s", program, pkg, version), nil
	}
	return "", fmt.Errorf("%s --version prints %q, and its Debian package is %q %q, not of %s", program, output, pkg, version, want)
}

// debianPackage returns the Debian package of a program. Without dpkg, it has none.
func debianPackage(ctx context.Context, program string) (name, version string) {
	if file, err := filepath.EvalSymlinks(program); err == nil {
		program = file
	}
	out, err := exec.CommandContext(ctx, "dpkg-query", "--search", program).Output()
	if err != nil {
		return "", ""
	}
	name, _, _ = strings.Cut(string(out), ":")
	out, err = exec.CommandContext(ctx, "dpkg-query", "--show", "--showformat=${Version}", name).Output()
	if err != nil {
		return name, ""
	}
	return name, string(out)
}

// upstream returns 7.7.1 for Debian's 7.7.1+ds-8+b1.
func upstream(version string) string {
	if i := strings.IndexAny(version, "+-~"); i >= 0 {
		version = version[:i]
	}
	return version
}

// Command prepares a run of Bazel in the workspace. The arguments are those of a user: a command such as build, with
// startup options before it and other options after it.
func (b *Bazel) Command(ctx context.Context, args ...string) *exec.Cmd {
	args = b.withConfig(args)
	if b.system == "" {
		c := exec.CommandContext(ctx, b.program, args...)
		c.Dir = b.dir
		c.Env = append(b.environment(), "PATH="+b.options.Getenv("PATH"))
		return c
	}
	binds := b.binds()
	c := enter(ctx, b.system, b.dir, binds, command(b.program, binds, args))
	c.Env = append(b.environment(), "PATH="+filepath.Join(b.options.Go.Root, "bin")+":/usr/sbin:/usr/bin:/sbin:/bin")
	return c
}

// withConfig adds the options of every command in this tree, after the command's name.
func (b *Bazel) withConfig(args []string) []string {
	i := slices.IndexFunc(args, func(arg string) bool { return !strings.HasPrefix(arg, "-") })
	if i < 0 || args[i] == "help" || args[i] == "version" || args[i] == "license" {
		return args
	}
	config := append(slices.Clone(b.config), "--repo_env=SLIPWAY_GOROOT="+b.options.Go.Root)
	if b.options.Alone && slices.Contains([]string{"build", "run", "test", "coverage"}, args[i]) {
		config = append(config, "--noremote_upload_local_results", "--remote_executor=", "--bes_backend=")
	}
	return slices.Insert(slices.Clone(args), i+1, config...)
}

// environment returns the user's environment, but with the Go settings of the other roads. Repository rules and the stamp get
// it; compiles do not (--incompatible_strict_action_env).
func (b *Bazel) environment() []string {
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool {
		return strings.HasPrefix(kv, "GO") || strings.HasPrefix(kv, "CGO_") || strings.HasPrefix(kv, "PATH=")
	})
	for _, kv := range b.options.Go.Command(context.Background(), "", "", "").Env {
		if strings.HasPrefix(kv, "GO") && !strings.HasPrefix(kv, "GOROOT=") {
			env = append(env, kv)
		}
	}
	return append(env,
		"GOMODCACHE="+b.options.Go.ModCache,
		"SLIPWAY_GOROOT="+b.options.Go.Root,
		"SLIPWAY_WORKSPACE_STATUS="+strings.TrimSpace(b.options.Status))
}
