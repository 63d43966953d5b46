package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"slipway.build/pkg/build/plan"
	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/release"
	"slipway.build/pkg/ship/verify"
)

func newVerify(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "verify [folder|kubernetes-inputs.tar]",
		Short: "Check a release against its release.json",
		Long: `verify compares the files in a folder (default: the tree's _output/release-tars) with the release.json there. It lists files
that are missing, changed, cut short, or not of this release, such as a tarball of an earlier request. If there are any, the
exit code is 1. A kubernetes-inputs.tar that is beside a release, or that is named, is compared with the sums in it.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			var dir string
			missing := fmt.Sprintf("is not the folder of a release, which has %s beside the tarballs", release.File)
			if len(args) == 1 {
				dir = args[0]
				if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
					return badrequest.Mark(fmt.Errorf("%w: name the folder of a release, or a kubernetes-inputs.tar", err))
				}
			} else {
				missing += ": make quick-release makes one"
				root, err := plan.FindRoot(o.dir)
				if err != nil {
					return err
				}
				dir = filepath.Join(root, filepath.FromSlash(plan.Tars))
			}
			check := verify.Folder
			if info, err := os.Stat(dir); err == nil && info.Mode().IsRegular() {
				check = verify.Inputs
			}
			report, err := check(c.Context(), dir)
			if errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("%w: %s %s", err, dir, missing)
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
			if report.Version == "" {
				return fmt.Errorf("%s is damaged: fetch or make it again", dir)
			}
			return fmt.Errorf("%s differs from release %s: fetch or make the files listed above again, and remove those not of this release",
				dir, report.Version)
		},
	}
}
