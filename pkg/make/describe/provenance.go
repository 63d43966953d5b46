package describe

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"

	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/release"
	"slipway.build/pkg/release/provenance"
)

// Provenance returns the action that makes the statements about a release, of which the folder has the release.json. The names are those
// of the statements there.
func Provenance(root, folder string, names []string) *action.Action {
	description := folder + "/" + release.File
	outputs := []string{folder + "/" + provenance.File, folder + "/" + provenance.Folder + "/"}
	return &action.Action{
		ID:      "provenance",
		Phase:   "checksums",
		Recipe:  code.Recipe(names),
		Inputs:  []string{description},
		Outputs: outputs,
		Run: func(_ context.Context, t *action.Task) error {
			data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(description)))
			if err != nil {
				return err
			}
			r, err := release.Unmarshal(data)
			if err != nil {
				return err
			}
			statements, err := provenance.Of(r, data)
			if err != nil {
				return err
			}
			for _, s := range statements {
				if !slices.Contains(names, s.File) {
					return fmt.Errorf("the statement %s was not planned", s.File)
				}
				to := filepath.Join(t.Path(outputs[1]), path.Base(s.File))
				if s.File == provenance.File {
					to = t.Path(outputs[0])
				}
				if err := os.WriteFile(to, s.Content, 0o644); err != nil {
					return err
				}
			}
			return nil
		},
	}
}
