package cli

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"slipway.build/pkg/build/plan"
	"slipway.build/pkg/mechanism/checksum"
)

func newVerify(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "verify [folder]",
		Short: "Check release tarballs against their SHA256SUMS and SHA512SUMS",
		Long:  `verify reads the tarballs in a folder (the tree's _output/release-tars, if none is named) and compares them with both files of checksums.`,
		Args:  cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
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
			for _, sums := range []string{"SHA256SUMS", "SHA512SUMS"} {
				file := filepath.Join(dir, sums)
				if err := checksum.Verify(dir, file); err != nil {
					return err
				}
				fmt.Fprintf(o.Out, "%s: OK\n", file)
			}
			return nil
		},
	}
}
