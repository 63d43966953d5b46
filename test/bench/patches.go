package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"slipway.build/pkg/make/road"
	"slipway.build/pkg/tree/catalog"
	"slipway.build/pkg/tree/patch"
)

// patchedFile is the file of Kubernetes' repository that is patched, in the line after the one that begins with patchedLine. Only
// kube-scheduler depends on it.
const (
	patchedFile = "cmd/kube-scheduler/app/server.go"
	patchedLine = "func Run(ctx "
)

// patched measures make after a change of a patch of one file, and go build after the same edit in a folder that replaces the module.
func patched(ctx context.Context, b *bench, row *Row) error {
	f, err := b.newFork(ctx)
	if err != nil {
		return err
	}
	defer os.RemoveAll(filepath.Join(f.ours, patch.Folder))
	platform := catalog.Host()
	c := contest{}
	c.ours = func() (Sample, error) {
		mark := f.mark()
		if err := f.writePatch(benchPatch, f.diff(mark)); err != nil {
			return Sample{}, err
		}
		sample, err := f.command(ctx, "make "+edited+" after a change of a patch", f.make(ctx, edited))
		return sample, errors.Join(err, holds(f.ourBinary(platform, edited), mark))
	}
	c.theirs = func() (Sample, error) {
		mark := f.mark()
		if err := f.edit(mark); err != nil {
			return Sample{}, err
		}
		cmd, err := f.goBuild(ctx, platform)
		if err != nil {
			return Sample{}, err
		}
		sample, err := f.command(ctx, "go build after an edit in a replaced folder", cmd)
		return sample, errors.Join(err, holds(f.theirBinary(platform, edited), mark))
	}
	// Unmeasured first: the first patch makes the tree dirty, and so changes the stamp.
	return c.warmly(b.n, row)
}

// linted measures make lint after a change of a patch of one file, and go vet of the same packages, the components' and the patched one,
// after the same edit in a folder that replaces the module.
func linted(ctx context.Context, b *bench, row *Row) error {
	f, err := b.newFork(ctx)
	if err != nil {
		return err
	}
	defer os.RemoveAll(filepath.Join(f.ours, patch.Folder))
	platform := catalog.Host()
	spec, err := f.spec(ctx, platform)
	if err != nil {
		return err
	}
	spec.ModFile = filepath.ToSlash(f.modFile)
	vet := slices.Concat([]string{"vet"}, spec.BuildFlags(), []string{"./...", patch.Kubernetes + "/" + path.Dir(patchedFile)})
	return contest{
		ours: func() (Sample, error) {
			if err := f.writePatch(benchPatch, f.diff(f.mark())); err != nil {
				return Sample{}, err
			}
			return f.command(ctx, "make lint after a change of a patch", f.make(ctx, "lint", "KUBE_BUILD_PLATFORMS="+platform.String()))
		},
		theirs: func() (Sample, error) {
			if err := f.edit(f.mark()); err != nil {
				return Sample{}, err
			}
			cmd, err := f.goBuild(ctx, platform)
			if err != nil {
				return Sample{}, err
			}
			cmd.Args = append(cmd.Args[:1], vet...)
			return f.command(ctx, "go vet after an edit in a replaced folder", cmd)
		},
	}.warmly(b.n, row)
}

// benchPatch is the patch that changes from round to round.
const benchPatch = "0001-bench.patch"

// edit puts a mark into the patched file.
func (f *fork) edit(mark string) error {
	return os.WriteFile(filepath.Join(f.dir, filepath.FromSlash(patchedFile)), []byte(f.text(mark)), 0o644)
}

// patchesNoop measures a quick release that has nothing to do in a tree with ten patches.
func patchesNoop(ctx context.Context, b *bench, row *Row) error {
	s, err := b.warmed(ctx)
	if err != nil {
		return err
	}
	defer os.RemoveAll(filepath.Join(s.ours, patch.Folder))
	for i := range 10 {
		name := fmt.Sprintf("cmd/kube-scheduler/app/bench%d.go", i)
		text := fmt.Sprintf("diff --git a/%[1]s b/%[1]s\nnew file mode 100644\n--- /dev/null\n+++ b/%[1]s\n@@ -0,0 +1 @@\n+package app\n", name)
		if err := s.writePatch(fmt.Sprintf("%04d-bench.patch", i), text); err != nil {
			return err
		}
	}
	if err := execute(ctx, s.make(ctx, "quick-release"), nil); err != nil {
		return err
	}
	return noop(ctx, b, row)
}

func (s *sides) writePatch(name, text string) error {
	dir := filepath.Join(s.ours, patch.Folder)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644)
}

// A fork is a copy of k8s.io/kubernetes that replaces it in the other clone.
type fork struct {
	*sides
	dir     string
	modFile string
	lines   []string // of the patched file, as upstream has it
	at      int      // index of the line to insert after
}

// newFork makes a fork of the warmed sides, with a go.mod beside it.
func (b *bench) newFork(ctx context.Context) (*fork, error) {
	s, err := b.warmed(ctx)
	if err != nil {
		return nil, err
	}
	p, err := s.project(ctx)
	if err != nil {
		return nil, err
	}
	module := filepath.Join(s.theirs, p.Catalog.Module)
	from, err := s.tool.ModuleDir(ctx, module, patch.Kubernetes, "")
	if err != nil {
		return nil, err
	}
	top := filepath.Join(filepath.Dir(s.bin), "fork")
	f := &fork{sides: s, dir: filepath.Join(top, "kubernetes"), modFile: filepath.Join(top, "go.mod")}
	if err := os.MkdirAll(top, 0o777); err != nil {
		return nil, err
	}
	for _, args := range [][]string{{"cp", "-r", from, f.dir}, {"chmod", "-R", "u+w", f.dir}} {
		if err := execute(ctx, exec.CommandContext(ctx, args[0], args[1:]...), nil); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		data, err := os.ReadFile(filepath.Join(module, name))
		if err != nil {
			return nil, err
		}
		if name == "go.mod" {
			data = fmt.Appendf(data, "\nreplace %s => %s\n", patch.Kubernetes, f.dir)
		}
		if err := os.WriteFile(filepath.Join(top, name), data, 0o644); err != nil {
			return nil, err
		}
	}
	data, err := os.ReadFile(filepath.Join(f.dir, filepath.FromSlash(patchedFile)))
	if err != nil {
		return nil, err
	}
	f.lines = strings.SplitAfter(string(data), "\n")
	f.at = slices.IndexFunc(f.lines, func(l string) bool { return strings.HasPrefix(l, patchedLine) })
	if f.at < 0 {
		return nil, fmt.Errorf("%s has no line %q", patchedFile, patchedLine)
	}
	return f, nil
}

// mark returns a text that was never in a binary before.
func (f *fork) mark() string {
	f.edits++
	return fmt.Sprintf("bench-%d-%06d", time.Now().UnixNano(), f.edits)
}

// statement returns a line with a mark. The compiler cannot know that it never runs.
func (f *fork) statement(mark string) string {
	return fmt.Sprintf("\tif recover() != nil { println(%q) }\n", mark)
}

// text returns the file with a mark.
func (f *fork) text(mark string) string {
	return strings.Join(slices.Insert(slices.Clone(f.lines), f.at+1, f.statement(mark)), "")
}

// diff returns a patch that makes the same file.
func (f *fork) diff(mark string) string {
	var b strings.Builder
	from := f.at - 2 // three lines of context before and after the new one
	fmt.Fprintf(&b, "diff --git a/%[1]s b/%[1]s\n--- a/%[1]s\n+++ b/%[1]s\n@@ -%[2]d,6 +%[2]d,7 @@\n", patchedFile, from+1)
	for i, l := range f.lines[from : f.at+4] {
		b.WriteString(" " + l)
		if from+i == f.at {
			b.WriteString("+" + f.statement(mark))
		}
	}
	return b.String()
}

// goBuild prepares the go build of the edited component with the fork.
func (f *fork) goBuild(ctx context.Context, platform catalog.Platform) (*exec.Cmd, error) {
	i := slices.IndexFunc(f.binaries, func(b catalog.Binary) bool { return b.Name == edited })
	cmd, err := f.sides.goBuild(ctx, platform, f.binaries[i])
	if err == nil {
		cmd.Args = slices.Insert(cmd.Args, 2, road.Spec{ModFile: filepath.ToSlash(f.modFile)}.ModFlag())
	}
	return cmd, err
}
