package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/spf13/cobra"

	"slipway.build/pkg/build/plan"
	"slipway.build/pkg/release"
	"slipway.build/pkg/ship/verify"
)

func newVerify(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "verify [folder]",
		Short: "Check a release against its release.json",
		Long: `verify compares the files in a folder (default: the tree's _output/release-tars) with the release.json there. It lists files
that are missing, changed, cut short, or not of this release, such as a tarball of an earlier request. If there are any, the
exit code is 1.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			var dir string
			if len(args) == 1 {
				dir = args[0]
			} else {
				root, err := plan.FindRoot(o.dir)
				if err != nil {
					return err
				}
				dir = filepath.Join(root, filepath.FromSlash(plan.Tars))
			}
			report, err := verify.Folder(c.Context(), dir)
			if errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("%w: %s is not the folder of a release: make quick-release makes one, with %s beside the tarballs",
					err, dir, release.File)
			}
			if err != nil {
				return err
			}
			show := report.Text
			if o.json {
				show = report.JSON
			}
			if err := show(o.Out); err != nil || report.OK() {
				return err
			}
			return fmt.Errorf("%s differs from release %s: fetch or make the files listed above again, and remove those not of this release",
				dir, report.Version)
		},
	}
}
