package bazel

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"slipway.build/pkg/build/toolchain"
	"slipway.build/pkg/mechanism/suggest"
)

// Options say for what a Bazel is wanted.
type Options struct {
	Root     string                  // of the tree, absolute
	Go       *toolchain.Go           // the pinned one
	Status   string                  // the workspace status, for --config=release
	Mirror   string                  // SLIPWAY_DEBIAN_MIRROR: where Debian packages come from if this machine does not say
	Deps     Deps                    // "" is Offline in a root of its own, and Registry otherwise
	Getenv   func(key string) string // the user's environment
	Progress func(string)            // may be nil
}

// String says where it is from.
func (b *Bazel) String() string { return b.How }

// Deps says where rules_go, gazelle and the rule sets that these need come from.
type Deps string

// The Deps there are. All but Registry are a --config.
const (
	Registry  Deps = "registry"  // Bazel's registry, by MODULE.bazel
	Offline   Deps = "offline"   // Debian's packages and Go modules, by WORKSPACE
	Overrides Deps = "overrides" // Debian's packages and Go modules, by MODULE.bazel
)

// A Bazel is ready to run in a tree.
type Bazel struct {
	How string // where it is from, for people

	options Options
	deps    Deps
	program string // on PATH
	system  string // root file system that the program is in; "" is this machine's
	config  []string
}

// Find finds the Bazel of a tree, or makes a root that has it, which takes minutes.
func Find(ctx context.Context, o Options) (*Bazel, error) {
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	want, err := pinned(o.Root)
	if err != nil {
		return nil, err
	}
	b := &Bazel{options: o}
	var unlike []string
	for _, name := range []string{"bazel", "bazelisk"} {
		program, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		how, err := installed(ctx, program, o.Root, want)
		if err == nil {
			b.program, b.How = program, how
			break
		}
		unlike = append(unlike, err.Error())
	}
	if b.program == "" {
		if len(unlike) == 0 {
			unlike = []string{"neither bazel nor bazelisk is on PATH"}
		}
		why := strings.Join(unlike, "; ")
		if b.system, err = ensureSystem(ctx, o, want, why); err != nil {
			return nil, fmt.Errorf("%s: install Bazelisk or Bazel %s; the other way, a root of Debian packages, is not open: %w", why, want, err)
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
	case Overrides:
		if err := b.override(ctx); err != nil {
			return nil, err
		}
		b.config = []string{"--config=overrides"}
	default:
		return nil, suggest.Unknown("source of rule sets", string(o.Deps), []string{string(Registry), string(Offline), string(Overrides)})
	}
	return b, b.remember()
}

// pinned reads .bazelversion.
func pinned(root string) (string, error) {
	data, err := os.ReadFile(filepath.Join(root, ".bazelversion"))
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(data)), nil
}

// installed looks whether a program is the wanted Bazel, and says how it knows.
func installed(ctx context.Context, program, root, want string) (how string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute) // Bazelisk may have to download it
	defer cancel()
	c := exec.CommandContext(ctx, program, "--version")
	c.Dir = root
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("%s --version: %w", program, err)
	}
	said := strings.TrimSpace(string(out))
	version, ok := strings.CutPrefix(said, "bazel ")
	if ok && version == want {
		return fmt.Sprintf("%s, which says it is %s", program, want), nil
	}
	if ok && version[0] >= '0' && version[0] <= '9' {
		return "", fmt.Errorf("%s is %s, and .bazelversion pins %s", program, version, want)
	}
	pkg, version := debianPackage(ctx, program)
	if upstream(version) == want {
		return fmt.Sprintf("%s, which says no version, by its Debian package %s %s", program, pkg, version), nil
	}
	return "", fmt.Errorf("%s says %q and not a version, and its Debian package is %q %q, not of %s", program, said, pkg, version, want)
}

// debianPackage asks dpkg which package a program is in. Where there is no dpkg, it is in none.
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

// upstream is 7.7.1 for Debian's 7.7.1+ds-8+b1.
func upstream(version string) string {
	if i := strings.IndexAny(version, "+-~"); i >= 0 {
		version = version[:i]
	}
	return version
}

// Command prepares a run of Bazel at the top of the tree. The arguments are a user's: a command such as build, with startup
// options before and options behind it.
func (b *Bazel) Command(ctx context.Context, args ...string) *exec.Cmd {
	args = b.withConfig(args)
	if b.system == "" {
		c := exec.CommandContext(ctx, b.program, args...)
		c.Dir = b.options.Root
		c.Env = append(b.environment(), "PATH="+b.options.Getenv("PATH"))
		return c
	}
	binds := b.binds()
	c := enter(ctx, b.system, b.options.Root, binds, command(b.program, binds, args))
	c.Env = append(b.environment(), "PATH="+filepath.Join(b.options.Go.Root, "bin")+":/usr/sbin:/usr/bin:/sbin:/bin")
	return c
}

// withConfig adds what every command has in this tree, behind the command's name.
func (b *Bazel) withConfig(args []string) []string {
	i := slices.IndexFunc(args, func(arg string) bool { return !strings.HasPrefix(arg, "-") })
	if i < 0 || args[i] == "help" || args[i] == "version" || args[i] == "license" {
		return args
	}
	args = slices.Clone(args)
	return slices.Insert(args, i+1, append(slices.Clone(b.config), "--repo_env=SLIPWAY_GOROOT="+b.options.Go.Root)...)
}

// environment is the user's, with the Go settings of the other roads and without those that only the user has. Nothing of it gets
// into a compile (--incompatible_strict_action_env): repository rules and the stamp have it.
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
