package bump

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"slipway.build/pkg/tree/patch"
)

// A Patch says what becomes of a patch of the tree in another version.
type Patch struct {
	Name    string `json:"name"`    // relative to the root, with slashes
	Project string `json:"project"` // as patch.Series.Name says it: "" is Kubernetes
	Verdict string `json:"verdict"` // as patch.Verdict says it
	Offset  int    `json:"offset,omitempty"`
	Why     string `json:"why,omitempty"` // it conflicts, or has no effect

	Unusable bool `json:"-"` // builds stop at it: it does not apply, or has no effect
}

// patched reports whether the tree has patches for the project whose module is in a folder.
func (p *preparation) patched(folder string) bool {
	return slices.ContainsFunc(p.patches, func(s patch.Series) bool { return s.Project != "" && "images/"+s.Project == folder })
}

// addPatch adds Options.Patch to the copy. What moves before that is tidied without it: go mod tidy knows nothing of patches.
func (p *preparation) addPatch() (err error) {
	if p.Patch == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(p.file(p.Patch)), 0o777); err != nil {
		return err
	}
	if err := p.write(p.Patch, p.PatchData); err != nil {
		return err
	}
	p.patches, err = patch.Load(copyDir(p.Root))
	return err
}

// checkPatches reports what becomes of the tree's patches in the copy's versions. A conflict is no error: the patch stays, and waits to be
// resolved.
func (p *preparation) checkPatches(ctx context.Context) error {
	for _, s := range p.patches {
		if slices.Contains(p.leftOut, "images/"+s.Project) {
			continue
		}
		repo, err := patch.RepositoryOf(copyDir(p.Root), p.catalog.Module, s)
		if err != nil {
			return err
		}
		modules := patch.Modules{Repository: repo, Dir: func(at patch.Place) (string, error) {
			m, err := p.proxy.fetch(ctx, requirement{Path: at.Module, Version: at.Version})
			if err != nil {
				return "", err
			}
			return m[0].Dir, nil
		}}
		reports, err := patch.NewOverlay(repo, modules).Check(s.Patches)
		if err != nil {
			return err
		}
		for _, r := range reports {
			state := Patch{Name: r.Patch.Name, Project: patch.SeriesOf(r.Patch.Name).Name(), Verdict: r.Verdict.String(), Offset: r.Offset()}
			if err := r.Err(); err != nil {
				if r.Patch.Name == p.Patch {
					return err
				}
				state.Unusable = true
				why := strings.TrimPrefix(err.Error(), "patch "+r.Patch.Name+" ")
				why = strings.TrimPrefix(strings.TrimPrefix(why, "does not apply"), "has no effect on what is compiled")
				state.Why = strings.TrimLeft(strings.ReplaceAll(why, "\n\t", "; "), ":; ")
			}
			p.Patches = append(p.Patches, state)
		}
	}
	return nil
}

// withoutConflicts calls f while the folders of unusable patches are out of the copy: what is generated from patched code can
// be generated only when they are resolved.
func (p *preparation) withoutConflicts(ctx context.Context, f func() error) error {
	args := []string{"restore", "--worktree", "--"}
	for _, state := range p.Patches {
		if folder := patch.SeriesNamed(state.Project).Dir(); state.Unusable && !slices.Contains(args, folder) {
			args = append(args, folder)
			if err := os.RemoveAll(p.file(folder)); err != nil {
				return err
			}
		}
	}
	if err := f(); err != nil || len(args) == 3 {
		return err
	}
	_, err := p.copied.Run(ctx, nil, args...)
	return err
}
