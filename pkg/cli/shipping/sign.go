package shipping

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"slipway.build/pkg/cli/session"
	"slipway.build/pkg/make/project"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/mechanism/signature"
	"slipway.build/pkg/mechanism/suggest"
	"slipway.build/pkg/mechanism/timestamp"
	"slipway.build/pkg/release"
	"slipway.build/pkg/ship/sign"
	"slipway.build/pkg/ship/verify"
	"slipway.build/pkg/tree/folder"
)

func newSign(o commands) *cobra.Command {
	var key, layout, server string
	var fromCache bool
	var options sign.Options
	c := &cobra.Command{
		Use:   "sign [folder]",
		Short: "Sign a release",
		Long: `sign signs the release in a folder (default: the tree's _output/release-tars). It first compares the folder with release.json,
as verify does, and signs nothing that differs, nor a release whose kubernetes-src.tar.gz is not what it was made of.

Signed are release.json and SHA256SUMS, which name all other files by digest: each gets a sigstore bundle, NAME.sigstore.json, and
the signature alone, NAME.sig. The provenance of the release, of each tarball, package and image, and the images' bills of materials are
signed as attestations, in bundles of the folder attestations.

With --layout, the OCI image layout of the release's images is put together once more as DIR-signed, with the bundles of images as
referrers of each index and each platform's image. It is the default for the tree's release: _output/release-images/oci.

The key is a file as slipway keys new, cosign or openssl make it, of ECDSA on the curves P-256 and P-384 or of Ed25519, or
env://VARIABLE. The password of an encrypted key comes from COSIGN_PASSWORD, or is asked for. A key NAME://ID stays where it is, such as
in a key management service: the program sigstore-kms-NAME in PATH signs, as for cosign.

A release that another key has signed is signed with --add, which leaves its signatures and puts those of this key below the
folder signatures, or with --replace, which removes them.

With --timestamp, a server for timestamps of RFC 3161 states when each signature was made. It sees nothing but digests of signatures.
So the signatures still count when the key has expired: see slipway trust.

A release in a tree whose release.yaml says so (vulnerabilities: {failOn: high, …}) is not signed if it has such vulnerabilities: see
slipway vulns. The tree's release is not signed, either, if a shared cache had results that it was made of: see --no-cache of
"slipway release".`,
		Example: "  slipway keys new ~/release\n  slipway sign --key ~/release.key\n  slipway verify --key ~/release.pub",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if key == "" {
				return badrequest.Mark(errors.New("name a private key: --key ~/release.key; slipway keys new makes one"))
			}
			if options.Add && options.Replace {
				return badrequest.Mark(errors.New("say either --add or --replace"))
			}
			if server != "" {
				options.Timestamp = timestampBy(server)
			}
			dir, err := o.releaseFolder(args)
			if err != nil {
				return err
			}
			own := len(args) == 0
			if tars, err := o.releaseFolder(nil); err == nil && !own && sameFolder(tars, dir) {
				dir, own = tars, true
			}
			if r, err := release.Read(dir); err == nil { // what else is wrong with the folder is found below
				if err := r.CheckEmbargo(o.Now()); err != nil {
					return fmt.Errorf("%w: it is not signed", err)
				}
			}
			if !fromCache {
				if err := ownRelease(dir); err != nil {
					return err
				}
			}
			private, err := signature.ReadPrivate(c.Context(), key, o.Password("Password of "+key))
			if err != nil {
				return fmt.Errorf("read the key: %w", err)
			}
			if err := sign.Sweep(dir); err != nil {
				return err
			}
			report, err := verify.Contents(c.Context(), dir)
			if err != nil {
				return noRelease(err, dir, own)
			}
			if !report.OK() {
				if err := report.Text(o.Err); err != nil {
					return err
				}
				return fmt.Errorf("%s is not signed: it differs from its %s", dir, release.File)
			}
			if err := verify.Sources(c.Context(), dir); err != nil {
				return fmt.Errorf("%s is not signed: %w; make it again of a clean tree, or by a version that ends in .dirty", dir, err)
			}
			if err := o.stopVulnerable(c.Context(), dir); err != nil {
				return fmt.Errorf("%s is not signed: %w", dir, err)
			}
			if layout == "" && own {
				layout = filepath.Join(filepath.Dir(filepath.Dir(dir)), filepath.FromSlash(project.Layout))
				if _, err := os.Stat(layout); errors.Is(err, fs.ErrNotExist) { // a release of platforms that have no images
					layout = ""
				}
			}
			if layout != "" {
				if err := sign.HasImages(dir, layout); err != nil {
					return fmt.Errorf("%s is not signed: %s: %w", dir, layout, err)
				}
			}
			names, err := sign.Folder(c.Context(), dir, private, options)
			if err != nil {
				return err
			}
			images := ""
			if layout != "" {
				images = filepath.Clean(layout) + project.SignedSuffix
				if err := sign.Layout(c.Context(), dir, layout, images); err != nil {
					return fmt.Errorf("%s: %w", layout, err)
				}
			}
			if o.JSON {
				return o.PrintJSON(map[string]any{"folder": dir, "version": report.Version, "key": private.Public().Hint(),
					"files": names, "layout": images})
			}
			attestations := map[string]int{}
			for _, name := range names {
				if path.Base(path.Dir(name)) == release.Attestations {
					attestations[path.Dir(name)]++
					continue
				}
				fmt.Fprintln(o.Out, filepath.Join(dir, name))
			}
			for below, n := range attestations { // which is one
				fmt.Fprintf(o.Out, "%s/ (%s)\n", filepath.Join(dir, below), session.Count(n, "bundle"))
			}
			if images != "" {
				fmt.Fprintln(o.Out, images)
			}
			fmt.Fprintf(o.Out, "release %s is signed by the key %s\n", report.Version, private.Public().Hint())
			return nil
		},
	}
	c.Flags().StringVar(&layout, "layout", "", "the OCI image layout of the release's images, in a `folder`")
	c.Flags().BoolVar(&fromCache, "from-cache", false, "also sign the tree's release if it holds results that a shared cache had")
	c.Flags().BoolVar(&options.Add, "add", false, "also sign a release that another key has signed, beside the signatures by that key")
	c.Flags().BoolVar(&options.Replace, "replace", false,
		"also sign a release that other keys have signed, and remove the signatures by those keys")
	c.Flags().StringVar(&server, "timestamp", "", "the `address` of a server that timestamps each signature")
	c.Flags().StringVar(&key, "key", "", "the private key: a `file`, env://VARIABLE, or NAME://ID of a plugin")
	return c
}

// timestampBy asks a server for timestamps.
func timestampBy(server string) func(context.Context, []byte) ([]byte, error) {
	return func(ctx context.Context, signature []byte) ([]byte, error) {
		return timestamp.Fetch(ctx, server, signature)
	}
}

// sameFolder reports whether two names are of one folder.
func sameFolder(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

// ownRelease returns an error if the release in a tree was made of results that a cache had: a signature says that its owner made it.
// It looks for the tree's records beside the folder itself: the folder may be that of another tree, and may be named by a link.
func ownRelease(dir string) error {
	tars, err := folder.Resolve(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the caller finds no release there
	}
	if err != nil || filepath.Base(tars) != path.Base(project.Tars) {
		return err
	}
	files, err := os.ReadDir(tars)
	if err != nil {
		return err
	}
	var outputs []string
	for _, f := range files {
		outputs = append(outputs, path.Join(project.Tars, f.Name()))
	}
	taken, err := (&action.Graph{Root: filepath.Dir(tars), State: path.Base(project.State)}).Taken(outputs)
	if err != nil || len(taken) == 0 {
		return err
	}
	return fmt.Errorf("%s is not signed: a shared cache had %s of it, such as %q: make it with --no-cache first, or sign it with --from-cache",
		dir, session.Count(len(taken), "result"), taken[0])
}

// releaseFolder returns the folder that is named, or else that of the tree's release.
func (o commands) releaseFolder(args []string) (string, error) {
	if len(args) == 0 {
		root, err := project.FindRoot(o.Dir)
		return filepath.Join(root, filepath.FromSlash(project.Tars)), err
	}
	if _, err := os.Stat(args[0]); errors.Is(err, fs.ErrNotExist) {
		return "", badrequest.Mark(fmt.Errorf("%w: name the folder of a release, or a kubernetes-inputs.tar", err))
	}
	return args[0], nil
}

// noRelease explains an error of reading a folder's release.json.
func noRelease(err error, dir string, own bool) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err = fmt.Errorf("%w: %s is not the folder of a release, which has %s beside the tarballs", err, dir, release.File)
	if own {
		err = fmt.Errorf("%w: make quick-release makes one", err)
	}
	return err
}

func newKeys(o commands) *cobra.Command {
	c := &cobra.Command{
		Use:   "keys",
		Short: "Make and check keys for signatures",
		Args:  session.OnlySubcommands,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	kind, user := string(signature.P256), ""
	var lifetime time.Duration
	made := &cobra.Command{
		Use:   "new name",
		Short: "Make a pair of keys: NAME.key and NAME.pub",
		Long: `new makes a private key, NAME.key, and its public key, NAME.pub, by default of ECDSA on the curve P-256. The private key is
encrypted by a password, from COSIGN_PASSWORD or asked for twice, in the form that cosign reads. An empty password protects nothing. Files
that exist are left alone, and a tree gets no keys, since a release holds all files of its tree.

With --openpgp, the key is one of OpenPGP, of RSA with 3072 bits, without a password. It signs repositories of debs and rpms: see
--packages-key of slipway publish.`,
		Example: "  slipway keys new ~/release\n  slipway keys new --openpgp \"Acme <k8s@acme.example>\" ~/packages",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if user != "" {
				return o.newPackageKey(user, args[0], lifetime)
			}
			return o.newKeys(args[0], signature.Type(kind))
		},
	}
	made.Flags().DurationVar(&lifetime, "lifetime", 0, "with --openpgp, how long the key is good, such as 17520h (default forever)")
	made.Flags().StringVar(&user, "openpgp", "",
		"make a key of OpenPGP for repositories of packages, NAME.key and NAME.asc, of a `user`: \"Acme <k8s@acme.example>\"")
	made.Flags().StringVar(&kind, "type", kind, "the type of the keys: "+suggest.Enumerate(signature.Types(), "or"))
	c.AddCommand(
		made,
		&cobra.Command{
			Use:   "show key",
			Short: "Print the public key of a public or private key",
			Args:  cobra.ExactArgs(1),
			RunE: func(c *cobra.Command, args []string) error {
				public, err := signature.ReadPublic(c.Context(), args[0])
				if err != nil {
					private, other := signature.ReadPrivate(c.Context(), args[0], o.Password("Password of "+args[0]))
					if other != nil {
						return fmt.Errorf("read the key: %w", other)
					}
					public = private.Public()
				}
				if o.JSON {
					return o.PrintJSON(map[string]string{"key": public.Hint(), "pem": string(public.PEM())})
				}
				fmt.Fprintf(o.Out, "key %s\n%s", public.Hint(), public.PEM())
				return nil
			},
		},
		&cobra.Command{
			Use:   "check private public",
			Short: "Check that a private key can be used, and that a public key is its other half",
			Args:  cobra.ExactArgs(2),
			RunE: func(c *cobra.Command, args []string) error {
				public, err := signature.ReadPublic(c.Context(), args[1])
				if err != nil {
					return fmt.Errorf("read the key: %w", err)
				}
				private, err := signature.ReadPrivate(c.Context(), args[0], o.Password("Password of "+args[0]))
				if err != nil {
					return fmt.Errorf("read the key: %w", err)
				}
				b, err := signature.Sign(c.Context(), private, []byte(args[1]))
				if err == nil {
					err = b.Verify(public, []byte(args[1]))
				}
				if err != nil {
					return fmt.Errorf("what %s signs, %s does not verify: %w", args[0], args[1], err)
				}
				fmt.Fprintf(o.Out, "%s signs what %s verifies: key %s\n", args[0], args[1], public.Hint())
				return nil
			},
		},
	)
	return c
}

// newKeys writes a pair of keys.
func (o commands) newKeys(name string, kind signature.Type) error {
	if !slices.Contains(signature.Types(), string(kind)) {
		return suggest.Unknown("type of keys", string(kind), signature.Types())
	}
	files := []string{name + ".key", name + ".pub"}
	if root, err := project.FindRoot(filepath.Dir(name)); err == nil {
		return badrequest.Mark(fmt.Errorf("%s would be one of the sources of %s, which every release holds: name a folder outside of "+
			"the tree", files[0], root))
	}
	for _, file := range files {
		if _, err := os.Lstat(file); err == nil {
			return fmt.Errorf("%s exists: choose another name, or move it away", file)
		}
	}
	secret, err := o.Password("Password of " + files[0])()
	if err != nil {
		return err
	}
	if _, ok := os.LookupEnv(session.PasswordVariable); !ok {
		again, err := o.Password("Again")()
		if err != nil {
			return err
		}
		if subtle.ConstantTimeCompare(secret, again) == 0 {
			return errors.New("the passwords differ")
		}
	}
	key, err := signature.NewOf(kind)
	if err != nil {
		return err
	}
	private, err := key.Encrypted(secret)
	if err != nil {
		return err
	}
	for i, data := range [][]byte{private, key.Public().PEM()} {
		perm := []os.FileMode{0o600, 0o644}[i]
		if err := create(files[i], data, perm); err != nil {
			return err
		}
		fmt.Fprintln(o.Out, files[i])
	}
	fmt.Fprintf(o.Out, "key %s\n", key.Public().Hint())
	return nil
}

// create writes a file that does not exist.
func create(name string, data []byte, perm os.FileMode) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, perm)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(name))
	}
	return nil
}
