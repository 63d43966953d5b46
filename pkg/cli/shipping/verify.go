package shipping

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/mechanism/signature"
	"slipway.build/pkg/mechanism/timestamp"
	"slipway.build/pkg/release"
	"slipway.build/pkg/ship/bundle"
	"slipway.build/pkg/ship/trust"
	"slipway.build/pkg/ship/verify"
	"slipway.build/pkg/tree/input"
)

func newVerify(o commands) *cobra.Command {
	var by trusted
	var rebuilders []string
	var want verify.Want
	c := &cobra.Command{
		Use:   "verify [folder|file|bundle|URL|oci:LAYOUT[@NAME]|IMAGE]",
		Short: "Check a release or an image of it, and the signatures",
		Long: `verify compares the files in a folder (default: the tree's _output/release-tars) with the release.json there, and what is stated
about them with what follows from it. It lists files that are missing, changed, cut short, or not of this release, such as a
tarball of an earlier request. If there are any, the exit code is 1. Nothing is unpacked or run.

A file is compared with the release.json beside it, a published program, bin/OS/ARCH/NAME, with the one beside bin, and a
kubernetes-inputs.tar without one with the sums in it. An rpm in a repository, core:/stable:/v1.37/rpm/ARCH/NAME, is compared with that
of the release below release/ which it names; the signature in its header, which the release's lacks, is left to rpm. A bundle, which
slipway bundle writes, has its own release.json. A URL is that of a folder, with a final slash, or of a file in one; it is read once and
not kept. An image is in a registry, or in an OCI image layout.

With --key, everything must be signed by that key, which slipway sign does: release.json, SHA256SUMS and each statement, or of an
image its signature and provenance, for the index and for each platform. Of several keys, any is enough, or as many as --threshold
says. Without a key, verify says whether there are signatures, but not whose: then the release is intact, and may be anybody's.

With --trust, the file says whose signatures count, and when: see slipway trust. Then --key names who must have signed that file. The
version of it that was seen is kept in the user's configuration, and an older one is refused.

A signature says nothing of time: --version and --min-version refuse an older release of the same owner. Versions count what is
after the plus: v1.37.1+acme.10 is newer than v1.37.1+acme.9.

--rebuilders 2 wants that two of the owners of the keys that --rebuilder-key names have made the release again, with the same
bytes, and say so: see slipway rebuild. It is for folders and addresses of folders.`,
		Example: "  slipway verify\n  slipway verify --key release.pub _output/release-tars\n" +
			"  slipway verify --key release.pub https://dl.example.com/v1.37.1+acme.1/\n" +
			"  slipway verify --key release.pub registry.example.com/kube-apiserver:v1.37.1_acme.1",
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			var err error
			if want.Trust, err = by.policy(c.Context()); err != nil {
				return err
			}
			if err := askRebuilders(c.Context(), rebuilders, &want); err != nil {
				return err
			}
			reports, err := o.verify(c.Context(), args, want)
			if err != nil {
				return err
			}
			return o.verified(reports)
		},
	}
	by.flags(c)
	c.Flags().IntVar(&want.Rebuilders, "rebuilders", 0, "how many owners of the keys of --rebuilder-key must have made the release again")
	c.Flags().StringArrayVar(&rebuilders, "rebuilder-key", nil,
		"the public key of somebody who makes releases again, as for --key; may be repeated")
	c.Flags().StringVar(&want.Version, "version", "", "the version that it must have")
	c.Flags().StringVar(&want.AtLeast, "min-version", "", "a version that it must not be older than")
	return c
}

// A trusted says whose signatures count, as users say it.
type trusted struct {
	keys, roots []string
	threshold   int
	file        string
}

func (t *trusted) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringArrayVar(&t.keys, "key", nil,
		"the public key that must have signed: a `file`, env://VARIABLE, or NAME://ID of a plugin; may be repeated")
	f.IntVar(&t.threshold, "threshold", 1, "how many of the owners of the keys of --key must have signed")
	f.StringVar(&t.file, "trust", "", "a `file` that says whose signatures count, and when; --key names who must have signed it")
	f.StringArrayVar(&t.roots, "timestamp-root", nil,
		"a `file` with the root certificate of a timestamp server that is believed, besides those in --trust; may be repeated")
}

// policy returns whose signatures count, or nil if nobody asks.
func (t *trusted) policy(ctx context.Context) (*trust.Policy, error) {
	switch {
	case len(t.keys) == 0 && t.file != "":
		return nil, badrequest.Mark(fmt.Errorf("--trust %s: anybody could have written it: name the public key that must have signed it by --key",
			t.file))
	case len(t.keys) == 0 && t.threshold != 1:
		return nil, badrequest.Mark(errors.New("--threshold: name the keys by --key"))
	case len(t.roots) > 0 && t.file == "":
		return nil, badrequest.Mark(errors.New("--timestamp-root: keys alone are valid at any time; a file for --trust says when"))
	case len(t.keys) == 0:
		return nil, nil
	}
	var keys []signature.PublicKey
	for _, name := range t.keys {
		public, err := signature.ReadPublic(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("read the key: %w", err)
		}
		keys = append(keys, public)
	}
	policy := trust.Of(keys...)
	policy.Threshold = t.threshold
	if err := policy.Check(); err != nil || t.file == "" {
		return policy, err
	}
	kept, err := os.UserConfigDir()
	if err != nil {
		return nil, fmt.Errorf("there is no place to keep which version of %s was seen: %w", t.file, err)
	}
	if policy, err = verify.Trusted(ctx, t.file, policy, filepath.Join(kept, "slipway", "trust")); err != nil {
		return nil, err
	}
	for _, name := range t.roots {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		roots, err := timestamp.ParseRoots(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		policy.Authorities = append(policy.Authorities, roots...)
	}
	return policy, nil
}

// askRebuilders reads the keys of those who must have made a release again.
func askRebuilders(ctx context.Context, names []string, want *verify.Want) error {
	for _, name := range names {
		public, err := signature.ReadPublic(ctx, name)
		if err != nil {
			return fmt.Errorf("read the key: %w", err)
		}
		want.RebuilderKeys = append(want.RebuilderKeys, public)
	}
	return nil
}

// verify checks what is named: a folder or file, a web server's, or images.
func (o commands) verify(ctx context.Context, args []string, want verify.Want) ([]*verify.Report, error) {
	one := func(r *verify.Report, err error) ([]*verify.Report, error) { return []*verify.Report{r}, err }
	if len(args) > 0 {
		if strings.HasPrefix(args[0], "http://") || strings.HasPrefix(args[0], "https://") {
			return one(verify.URL(ctx, args[0], want))
		}
		if at, ok := strings.CutPrefix(args[0], "oci:"); ok {
			dir, name, _ := strings.Cut(at, "@")
			return verify.Layout(ctx, dir, name, want)
		}
		_, err := os.Lstat(args[0])
		if errors.Is(err, fs.ErrNotExist) && strings.Contains(args[0], "/") && strings.ContainsAny(filepath.Base(args[0]), ":@") {
			return one(verify.Image(ctx, args[0], want))
		}
		if _, err := os.Stat(filepath.Join(args[0], "oci-layout")); err == nil {
			return verify.Layout(ctx, args[0], "", want)
		}
	}
	dir, err := o.releaseFolder(args)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(dir); err != nil || !info.Mode().IsRegular() {
		report, err := verify.Folder(ctx, dir, want)
		if err != nil {
			err = noRelease(err, dir, len(args) == 0)
		}
		return []*verify.Report{report}, err
	}
	if bundle.Is(dir) {
		b, err := bundle.Open(dir)
		if err != nil {
			return nil, err
		}
		defer b.Close()
		return one(b.Verify(ctx, want))
	}
	home, name := verify.Split(filepath.ToSlash(dir))
	if verify.InRepository(name) {
		return one(verify.One(ctx, dir, want))
	}
	described, err := release.Read(filepath.FromSlash(home))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err == nil {
		if _, ok := described.Artifact(name); ok || name != path.Base(name) || verify.IsPackage(name) {
			return one(verify.One(ctx, dir, want))
		}
	}
	switch {
	case !strings.HasSuffix(dir, path.Ext(input.Tarball)):
		return nil, badrequest.Mark(fmt.Errorf("%s is in no %s beside it, so nothing says what it should be: fetch that of its "+
			"release, too", dir, release.File))
	case !want.Nothing():
		return nil, badrequest.Mark(errors.New("a kubernetes-inputs.tar alone has neither signature nor order: verify the folder of its release"))
	}
	return one(verify.Inputs(ctx, dir))
}

// verified shows reports, and returns an error if something is wrong.
func (o commands) verified(reports []*verify.Report) error {
	if o.JSON {
		var all any = reports
		if len(reports) == 1 {
			all = reports[0]
		}
		if err := o.PrintJSON(all); err != nil {
			return err
		}
	}
	var errs []error
	for _, report := range reports {
		if !o.JSON {
			if err := report.Text(o.Out); err != nil {
				return err
			}
		}
		what := report.Folder
		switch {
		case !report.OK() && report.Signature == verify.NotConvinced:
			errs = append(errs, fmt.Errorf("%s is not to be trusted: a signature is missing or wrong", what))
		case !report.OK() && report.Version == "":
			errs = append(errs, fmt.Errorf("%s is damaged: fetch or make it again", what))
		case report.Problem != "":
			errs = append(errs, fmt.Errorf("%s is release %s: %s", what, report.Version, report.Problem))
		case !report.OK():
			errs = append(errs, fmt.Errorf("%s differs from release %s: fetch or make the files listed above again, and remove those not of "+
				"this release",
				what, report.Version))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if slices.ContainsFunc(reports, func(r *verify.Report) bool { return r.Signature == verify.NotChecked }) {
		o.Say("name the public key by --key to check the signatures")
	}
	return nil
}
