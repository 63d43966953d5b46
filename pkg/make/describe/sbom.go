package describe

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/release"
	"slipway.build/pkg/release/sbom"
)

// An SBOMSpec describes the bills of materials of a release. Paths are relative to the tree's root and separated by slashes.
type SBOMSpec struct {
	Draft     string             // of the description
	Source    string             // the source tarball
	Artifacts []release.Artifact // to be made
	Folder    string             // of the release
}

// SBOMAction is the ID of the action that makes the bills of materials.
const SBOMAction = "sbom"

// SBOMs returns the action that makes the bills of materials.
func SBOMs(root string, s SBOMSpec) *action.Action {
	var outputs []string
	images := s.Folder + "/" + sbom.Folder + "/"
	for _, a := range s.Artifacts {
		out := s.Folder + "/" + a.Path
		if strings.HasPrefix(out, images) {
			out = images // so that those of images which are no longer made do not stay
		}
		if len(outputs) == 0 || outputs[len(outputs)-1] != out {
			outputs = append(outputs, out)
		}
	}
	return &action.Action{
		ID:      SBOMAction,
		Phase:   "checksums",
		Recipe:  code.Recipe(s),
		Inputs:  []string{s.Draft, s.Source},
		Outputs: outputs,
		Run: func(ctx context.Context, t *action.Task) error {
			r, err := readDraft(root, s.Draft)
			if err != nil {
				return err
			}
			members := sync.OnceValues(func() ([]sbom.File, error) {
				f, err := os.Open(filepath.Join(root, filepath.FromSlash(s.Source)))
				if err != nil {
					return nil, err
				}
				defer f.Close()
				return sbom.Members(f)
			})
			g, ctx := errgroup.WithContext(ctx)
			g.SetLimit(runtime.GOMAXPROCS(0))
			for _, a := range s.Artifacts {
				to := s.Folder + "/" + a.Path
				if path.Dir(a.Path) == sbom.Folder {
					to = filepath.Join(t.Path(images), path.Base(a.Path))
				} else {
					to = t.Path(to)
				}
				g.Go(func() error {
					if err := ctx.Err(); err != nil {
						return err
					}
					data, err := sbom.Make(r, a, members)
					if err != nil {
						return err
					}
					return os.WriteFile(to, data, 0o644)
				})
			}
			return g.Wait()
		},
	}
}
