package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	tarballs "slipway.build/pkg/make/pack"
	"slipway.build/pkg/make/project"
	"slipway.build/pkg/mechanism/deb"
	"slipway.build/pkg/release"
)

// A packaged is a copy of slipway's clone whose releases have debs and rpms.
type packaged struct {
	*sides
	dir string
}

// packages returns the copy, with a release.
func (b *bench) packages(ctx context.Context) (*packaged, error) {
	s, err := b.warmed(ctx)
	if err != nil {
		return nil, err
	}
	p := &packaged{s, filepath.Join(b.dir, "packages")}
	if err := os.RemoveAll(p.dir); err != nil {
		return nil, err
	}
	b.say("  building debs and rpms once")
	if err := execute(ctx, s.make(ctx, "quick-release"), nil); err != nil {
		return nil, err
	}
	if err := execute(ctx, exec.CommandContext(ctx, "cp", "-a", "--reflink=auto", s.ours, p.dir), nil); err != nil {
		return nil, err
	}
	return p, execute(ctx, p.make(ctx), nil)
}

// make prepares a quick release with packages.
func (p *packaged) make(ctx context.Context) *exec.Cmd {
	cmd := p.sides.make(ctx, "quick-release", "SLIPWAY_PACKAGES=true")
	cmd.Dir = p.dir
	return cmd
}

// contest compares quick releases with and without packages.
func (p *packaged) contest(ctx context.Context, when string) contest {
	return contest{
		ours: func() (Sample, error) { return p.command(ctx, "make quick-release with packages, "+when, p.make(ctx)) },
		theirs: func() (Sample, error) {
			return p.command(ctx, "make quick-release, "+when, p.sides.make(ctx, "quick-release"))
		},
	}
}

func packagesNoop(ctx context.Context, b *bench, row *Row) error {
	p, err := b.packages(ctx)
	if err != nil {
		return err
	}
	return p.contest(ctx, "nothing to do").warmly(b.n, row)
}

func packagesCommit(ctx context.Context, b *bench, row *Row) error {
	p, err := b.packages(ctx)
	if err != nil {
		return err
	}
	c := p.contest(ctx, "a new commit")
	c.before = func() error {
		if err := p.commit(ctx); err != nil {
			return err
		}
		return p.git(ctx, p.dir, "pull", "--quiet", "--ff-only", p.ours, "HEAD")
	}
	return c.warmly(b.n, row) // the first commit makes a clean tree of one with edits
}

// debs measures how long the debs of a release take, when tarballs have their programs, too. Row says whether their size is measured
// instead.
func debs(size bool) func(context.Context, *bench, *Row) error {
	return func(ctx context.Context, b *bench, row *Row) error {
		if _, err := exec.LookPath("dpkg-deb"); err != nil {
			return &missing{err}
		}
		p, err := b.packages(ctx)
		if err != nil {
			return err
		}
		opened, err := open(ctx, p.dir, p.env)
		if err != nil {
			return err
		}
		files, err := filepath.Glob(filepath.Join(p.dir, filepath.FromSlash(project.Tars), release.PackageFolder, "*.deb"))
		if err != nil {
			return err
		}
		var trees []string // unpacked, with the folder DEBIAN
		var made []deb.Package
		for _, file := range files {
			tree := filepath.Join(b.dir, row.Name, strings.TrimSuffix(filepath.Base(file), ".deb"))
			if err := os.MkdirAll(filepath.Dir(tree), 0o755); err != nil {
				return err
			}
			if err := execute(ctx, exec.CommandContext(ctx, "dpkg-deb", "--raw-extract", file, tree), nil); err != nil {
				return err
			}
			// The release knows the sums of programs, too, as inputs of its actions.
			entries, err := tarballs.Folder(tree, "", func(rel string) string {
				sum, err := sum(filepath.Join(tree, filepath.FromSlash(rel)))
				if err != nil {
					return ""
				}
				return sum
			})
			if err != nil {
				return err
			}
			m := deb.Package{Name: "measured", Version: "1", Arch: "amd64", Maintainer: "nobody", Summary: "Measured",
				Time: opened.Stamp.Date}
			for _, e := range entries {
				if !strings.HasPrefix(e.Name, "DEBIAN/") {
					m.Files = append(m.Files, e)
				}
			}
			trees, made = append(trees, tree), append(made, m)
		}
		ours, theirs := filepath.Join(b.dir, "ours.deb"), filepath.Join(b.dir, "theirs.deb")
		var ourSize, theirSize int64
		each := func(file string, total *int64, one func(i int) error) func() error {
			return func() error {
				*total = 0
				for i := range trees {
					if err := one(i); err != nil {
						return err
					}
					bytes, err := fileSize(file)
					if err != nil {
						return err
					}
					*total += bytes
				}
				return nil
			}
		}
		c := contest{}
		c.ours = func() (Sample, error) {
			return b.time(ctx, "debs", each(ours, &ourSize, func(i int) error {
				f, err := os.Create(ours)
				if err != nil {
					return err
				}
				defer f.Close()
				return made[i].Write(ctx, f, opened.ArchiveCache())
			}))
		}
		c.theirs = func() (Sample, error) {
			return b.time(ctx, "dpkg-deb -Zgzip", each(theirs, &theirSize, func(i int) error {
				return execute(ctx, exec.CommandContext(ctx, "dpkg-deb", "-Zgzip", "--root-owner-group", "--build", trees[i], theirs), nil)
			}))
		}
		if err := c.rounds(b.n, row); err != nil || !size {
			return err
		}
		row.Ours, row.Theirs = []Sample{{Value: float64(ourSize)}}, []Sample{{Value: float64(theirSize)}}
		return nil
	}
}
