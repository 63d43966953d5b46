package cli

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/mechanism/signature"
	"slipway.build/pkg/ship/verify"
)

func newVerify(o *options) *cobra.Command {
	var key string
	var want verify.Want
	c := &cobra.Command{
		Use:   "verify [folder|kubernetes-inputs.tar]",
		Short: "Check a release against its release.json, and its signatures",
		Long: `verify compares the files in a folder (default: the tree's _output/release-tars) with the release.json there. It lists files
that are missing, changed, cut short, or not of this release, such as a tarball of an earlier request. If there are any, the
exit code is 1. A kubernetes-inputs.tar that is beside a release, or that is named, is compared with the sums in it.

With --key, release.json and SHA256SUMS must be signed by that key, which slipway sign does. Without it, verify says whether
there are signatures, but not whose: then the folder is intact, and may be anybody's.

A signature says nothing of time: --version and --min-version refuse an older release of the same owner. Versions count what is
after the plus: v1.37.1+acme.10 is newer than v1.37.1+acme.9.`,
		Example: "  slipway verify\n  slipway verify --key release.pub _output/release-tars",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			dir, err := o.releaseFolder(args)
			if err != nil {
				return err
			}
			if key != "" {
				public, err := signature.ReadPublic(c.Context(), key)
				if err != nil {
					return fmt.Errorf("read the key: %w", err)
				}
				want.Key = &public
			}
			var report *verify.Report
			if info, statErr := os.Stat(dir); statErr == nil && info.Mode().IsRegular() {
				if want != (verify.Want{}) {
					return badrequest.Mark(errors.New("a kubernetes-inputs.tar alone has neither signature nor order: verify the folder of its release"))
				}
				report, err = verify.Inputs(c.Context(), dir)
			} else {
				report, err = verify.Folder(c.Context(), dir, want)
			}
			if err != nil {
				return noRelease(err, dir, len(args) == 0)
			}
			show := report.Text
			if o.json {
				show = report.JSON
			}
			if err := show(o.Out); err != nil {
				return err
			}
			switch {
			case !report.OK() && report.Version == "":
				return fmt.Errorf("%s is damaged: fetch or make it again", dir)
			case !report.OK() && report.Signature == verify.NotConvinced:
				return fmt.Errorf("%s is not to be trusted: a signature is missing or wrong", dir)
			case report.Problem != "":
				return fmt.Errorf("%s is release %s: %s", dir, report.Version, report.Problem)
			case !report.OK():
				return fmt.Errorf("%s differs from release %s: fetch or make the files listed above again, and remove those not of this release",
					dir, report.Version)
			case report.Signature == verify.NotChecked:
				o.say("name the public key by --key to check the signatures")
			}
			return nil
		},
	}
	c.Flags().StringVar(&key, "key", "", "the public key that must have signed: a `file`, env://VARIABLE, or NAME://ID of a plugin")
	c.Flags().StringVar(&want.Version, "version", "", "the version that it must have")
	c.Flags().StringVar(&want.AtLeast, "min-version", "", "a version that it must not be older than")
	return c
}
