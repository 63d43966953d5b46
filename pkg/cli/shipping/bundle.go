package shipping

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"slipway.build/pkg/cli/console"
	"slipway.build/pkg/cli/session"
	"slipway.build/pkg/make/project"
	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/release"
	"slipway.build/pkg/ship/bundle"
	"slipway.build/pkg/ship/publish"
	"slipway.build/pkg/ship/verify"
)

func newBundle(o commands) *cobra.Command {
	var by trusted
	var platform, layout, output string
	var sets []string
	var tarballs bool
	c := &cobra.Command{
		Use:   "bundle [folder]",
		Short: "Put a signed release into one file, to carry it where there is no network",
		Long: `bundle verifies the signed release in a folder (default: the tree's _output/release-tars), and writes what machines of a
platform need of it into one tar: the images with signatures, provenance and bills of materials, the packages, the server tarball, and
release.json with its signatures. docker load, podman load, ctr images import and skopeo read the images. slipway verify checks a bundle,
slipway publish pushes its images to a registry, and slipway cluster up --from boots it. Nothing is built.

It has every image that the release's own kubeadm asks for, which is run to find out, or no bundle is written. They are read from
--layout (default: the tree's _output/release-images/oci). --set server,addons takes the images of addons, too. --tarballs=false leaves
out the server tarball, which is most of a bundle: then no cluster boots from it.

With --platform linux/amd64, the names of images are those of that platform's manifests. With --platform all, there is everything of all
platforms that have servers. The bytes depend on the release and these flags alone.

What slipway verify does not accept with the same --key, --threshold and --trust is not put into a bundle, nor a release of a tree with
changes that are in no commit, nor one under embargo.`,
		Example: "  slipway bundle --key ~/release.pub --platform linux/amd64 --output ~/acme.tar\n" +
			"  slipway publish ~/acme.tar --key ~/release.pub --registry inside.example.com/k8s",
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case platform == "":
				return badrequest.Mark(errors.New("name the platform: --platform linux/amd64, or --platform all"))
			case output == "":
				return badrequest.Mark(errors.New("name the bundle: --output acme.tar"))
			}
			if root, err := project.FindRoot(filepath.Dir(output)); err == nil && !isBelow(output, filepath.Join(root, project.Output)) {
				return badrequest.Mark(fmt.Errorf("%s would be one of the sources of %s: name a file outside of the tree", output, root))
			}
			want, err := by.want(c.Context())
			if err != nil {
				return err
			}
			dir, err := o.releaseFolder(args)
			if err != nil {
				return err
			}
			accepted, err := publish.Accept(c.Context(), dir, want, "", o.Now())
			if err != nil {
				return noRelease(o.refused(err), dir, len(args) == 0)
			}
			r, err := release.Read(dir)
			if err != nil {
				return err
			}
			q, err := bundle.Of(r, platform, sets, tarballs)
			if err != nil {
				return err
			}
			waiting := func() { o.Say("waiting for somebody else who writes " + output) }
			made, err := accepted.Bundle(c.Context(), q, layoutFor(dir, layout), output, waiting)
			if err != nil {
				return fmt.Errorf("%s is not written: %w", output, err)
			}
			return o.Answer(made, func(w io.Writer) error { return writeSummary(w, made) })
		},
	}
	by.flags(c)
	c.Flags().StringVar(&platform, "platform", "", "the `platform` of the machines, such as linux/amd64, or all")
	c.Flags().StringVar(&output, "output", "", "the `file` to write, such as acme.tar")
	c.Flags().StringVar(&layout, "layout", "", "the OCI image layout of the release's images, in a `folder`")
	c.Flags().StringSliceVar(&sets, "set", []string{bundle.Server}, "which `sets` of images: server, test, addons")
	c.Flags().BoolVar(&tarballs, "tarballs", true, "with the server tarball, from which a cluster boots")
	return c
}

// want returns what is wanted of a release that is sent somewhere: that somebody has signed it.
func (t *trusted) want(ctx context.Context) (verify.Want, error) {
	policy, err := t.policy(ctx)
	if err == nil && policy == nil {
		err = badrequest.Mark(errors.New("name the public key that must have signed the release: --key ~/release.pub"))
	}
	return verify.Want{Trust: policy}, err
}

// refused shows what is wrong with a release that is not accepted, and returns the error.
func (o commands) refused(err error) error {
	if refused, ok := errors.AsType[*publish.RefusedError](err); ok {
		return errors.Join(refused.Report.Text(o.Err), err)
	}
	return err
}

// layoutFor returns the layout of the images of the release in a folder: the named one, or that of its tree.
func layoutFor(dir, named string) string {
	return cmp.Or(named, filepath.Join(filepath.Dir(filepath.Dir(dir)), filepath.FromSlash(project.Layout)))
}

// isBelow reports whether a file is in a folder, or below.
func isBelow(file, dir string) bool {
	abs, err := filepath.Abs(file)
	rel, noRel := filepath.Rel(dir, abs)
	return err == nil && noRel == nil && filepath.IsLocal(rel)
}

// isFile reports whether the only argument is a file and no folder.
func isFile(args []string) bool {
	if len(args) == 0 {
		return false
	}
	info, err := os.Stat(args[0])
	return err == nil && info.Mode().IsRegular()
}

// writeSummary shows to people what a bundle has.
func writeSummary(w io.Writer, s *bundle.Summary) error {
	has := []string{session.Count(len(s.Images), "name") + " of images", session.Count(s.Packages, "package")}
	if len(s.Tarballs) > 0 {
		has = append(has, strings.Join(s.Tarballs, ", "))
	}
	_, err := fmt.Fprintf(w, "%s: release %s for %s, %s: %s\n", s.File, s.Request.Version, s.Request.Platform, console.Size(s.Size),
		strings.Join(has, ", "))
	return err
}
