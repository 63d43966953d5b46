package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"slipway.build/pkg/make/project"
	"slipway.build/pkg/make/road"
	"slipway.build/pkg/make/roads"
	"slipway.build/pkg/make/toolchain"
	"slipway.build/pkg/tree/catalog"
)

// edited is the component whose source is edited, of medium size.
const edited = "kube-scheduler"

// sides are the two clones that are compared: slipway works in one, and go build in the other.
type sides struct {
	*bench
	ours, theirs string // folders of the clones
	bin          string // results of go build: a folder for each platform, of its name
	env          []string
	platform     catalog.Platform // of a quick release
	binaries     []catalog.Binary // of a quick release
	tool         *toolchain.Go
	cache        string // GOCACHE of go build; "" is the user's
	edits        int
}

// newSides clones the tree twice. With cold, each side has an empty Go cache.
func (b *bench) newSides(ctx context.Context, name string, isCold bool) (*sides, error) {
	s := &sides{
		bench:    b,
		ours:     filepath.Join(b.dir, name, "slipway"),
		theirs:   filepath.Join(b.dir, name, "go"),
		bin:      filepath.Join(b.dir, name, "bin"),
		env:      environment(os.Environ()),
		platform: catalog.Platform{OS: "linux", Arch: catalog.Host().Arch},
	}
	if isCold {
		s.env = append(s.env, "GOCACHE="+filepath.Join(b.dir, name, "cache-slipway"))
		s.cache = filepath.Join(b.dir, name, "cache-go")
	}
	if err := s.clone(ctx); err != nil {
		return nil, err
	}
	p, err := s.project(ctx)
	if err != nil {
		return nil, err
	}
	for _, set := range []catalog.Set{catalog.Server, catalog.Node, catalog.Client} {
		for _, bin := range p.Catalog.BinariesFor(set, s.platform) {
			if p.Catalog.IsComponent(bin) && !slices.ContainsFunc(s.binaries, func(known catalog.Binary) bool { return known.Name == bin.Name }) {
				s.binaries = append(s.binaries, bin)
			}
		}
	}
	s.tool, err = p.Go(ctx, nil)
	return s, err
}

// environment drops variables that would change a build: those of make, mage, Kubernetes, git and shared caches.
func environment(all []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		for _, prefix := range []string{"MAKE", "MFLAGS", "MAGEFILE", "KUBE_", "GIT_", "SLIPWAY_CACHE"} {
			if strings.HasPrefix(name, prefix) {
				return true
			}
		}
		return slices.Contains([]string{"WHAT", "DBG", "ROAD", "GOFLAGS", "GOLDFLAGS", "GOGCFLAGS", "SOURCE_DATE_EPOCH"}, name)
	})
}

// clone makes both clones. Their last commit is the working tree, with all changes and new files.
func (s *sides) clone(ctx context.Context) error {
	if err := s.git(ctx, s.root, "clone", "--quiet", ".", s.ours); err != nil {
		return err
	}
	if err := s.git(ctx, s.root, "--git-dir="+filepath.Join(s.ours, ".git"), "--work-tree=.", "add", "--all"); err != nil {
		return err
	}
	if err := s.git(ctx, s.ours, "commit", "--quiet", "--allow-empty", "-m", "The working tree"); err != nil {
		return err
	}
	if err := s.git(ctx, s.ours, "reset", "--quiet", "--hard"); err != nil {
		return err
	}
	return s.git(ctx, s.root, "clone", "--quiet", s.ours, s.theirs)
}

func (s *sides) git(ctx context.Context, dir string, args ...string) error {
	own := []string{"-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "commit.gpgsign=false", "-c",
		"core.hooksPath=/dev/null"}
	cmd := exec.CommandContext(ctx, "git", append(own, args...)...)
	cmd.Dir, cmd.Env = dir, s.env
	return execute(ctx, cmd, nil)
}

// project returns slipway's clone as it is now. Both sides build with its stamp.
func (s *sides) project(ctx context.Context) (*project.Project, error) {
	return open(ctx, s.ours, s.env)
}

// open opens a clone in an environment.
func open(ctx context.Context, dir string, env []string) (*project.Project, error) {
	getenv := func(key string) string {
		for _, kv := range env {
			if value, ok := strings.CutPrefix(kv, key+"="); ok {
				return value
			}
		}
		return ""
	}
	settings, err := project.SettingsFrom(getenv)
	if err != nil {
		return nil, err
	}
	return project.Open(ctx, dir, settings, getenv)
}

// make prepares a run of make in slipway's clone.
func (s *sides) make(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "make", args...)
	cmd.Dir, cmd.Env = s.ours, s.env
	return cmd
}

// spec returns what decides the binaries of slipway's clone as it is now.
func (s *sides) spec(ctx context.Context, platform catalog.Platform) (road.Spec, error) {
	p, err := s.project(ctx)
	if err != nil {
		return road.Spec{}, err
	}
	return road.Spec{Module: p.Catalog.Module, Platform: platform, Tags: p.Catalog.Tags, LDFlags: p.Stamp.LDFlags(),
		Options: p.Settings.Build}, nil
}

// goBuild prepares the go build of some binaries in the other clone, with the flags and the environment that slipway
// would use for them.
func (s *sides) goBuild(ctx context.Context, platform catalog.Platform, binaries ...catalog.Binary) (*exec.Cmd, error) {
	c, err := s.spec(ctx, platform)
	if err != nil {
		return nil, err
	}
	bin := filepath.Join(s.bin, platform.Dash()) + string(filepath.Separator)
	args := append(append([]string{"build"}, c.BuildFlags()...), "-o", bin)
	for _, b := range binaries {
		args = append(args, b.Package)
	}
	cmd := s.tool.Command(ctx, filepath.Join(s.theirs, c.Module), platform.OS, platform.Arch, args...)
	if s.cache != "" {
		cmd.Env = append(cmd.Env, "GOCACHE="+s.cache)
	}
	return cmd, os.MkdirAll(bin, 0o777)
}

// edit puts a line into the edited component's main.go that was never there before, and returns what a binary with
// that edit must contain.
func (s *sides) edit(clone string) (mark string, err error) {
	s.edits++
	mark = fmt.Sprintf("bench-%d-%06d", time.Now().UnixNano(), s.edits)
	name := filepath.Join(clone, "cmd", edited, "main.go")
	data, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	const begin = "\nfunc init() { if recover() != nil { println(" // the compiler cannot know that it never runs
	source, _, _ := bytes.Cut(data, []byte(begin))
	return mark, os.WriteFile(name, fmt.Appendf(source, "%s%q) } }\n", begin, mark), 0o644)
}

// commit commits all of slipway's clone, and a new line in a document.
func (s *sides) commit(ctx context.Context) error {
	s.edits++
	f, err := os.OpenFile(filepath.Join(s.ours, "README.md"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := fmt.Fprintln(f, "Commit", s.edits); err != nil {
		return err
	}
	return s.git(ctx, s.ours, "commit", "--quiet", "--all", "-m", fmt.Sprint("Commit ", s.edits))
}

// even copies the edited file from slipway's clone to the other one.
func (s *sides) even() error {
	name := filepath.Join("cmd", edited, "main.go")
	data, err := os.ReadFile(filepath.Join(s.ours, name))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.theirs, name), data, 0o644)
}

// ourBinary and theirBinary return the path of a side's binary.
func (s *sides) ourBinary(p catalog.Platform, name string) string {
	return filepath.Join(s.ours, filepath.FromSlash(roads.Output("local")), p.OS, p.Arch, p.Exe(name))
}

func (s *sides) theirBinary(p catalog.Platform, name string) string {
	return filepath.Join(s.bin, p.Dash(), p.Exe(name))
}

// same checks that both sides have made the same binaries.
func (s *sides) same() error {
	for _, b := range s.binaries {
		ours, err := sum(s.ourBinary(s.platform, b.Name))
		if err != nil {
			return err
		}
		theirs, err := sum(s.theirBinary(s.platform, b.Name))
		if err != nil {
			return err
		}
		if ours != theirs {
			return fmt.Errorf("%s: slipway made another one than go build: %s, not %s", b.Name, ours, theirs)
		}
	}
	return nil
}

// holds checks that a binary has an edit.
func holds(binary, mark string) error {
	data, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	if !bytes.Contains(data, []byte(mark)) {
		return fmt.Errorf("%s: %w", binary, errors.New("the edit is not in it"))
	}
	return nil
}

// sum returns a file's SHA-256 in hex.
func sum(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", h.Sum(nil)), nil
}
