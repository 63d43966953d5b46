package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"slipway.build/pkg/build/plan"
	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/mechanism/signature"
	"slipway.build/pkg/prove/diff"
	"slipway.build/pkg/prove/rebuild"
	"slipway.build/pkg/release/provenance"
	"slipway.build/pkg/ship/verify"
	"slipway.build/pkg/tree/catalog"
)

// Bounds of what a rebuild fetches, in bytes.
const (
	maxSources   = 1 << 30
	maxStatement = 32 << 20
)

// A rebuilding is what a user says about a rebuild.
type rebuilding struct{ inputs, folder, key, sign string }

func newRebuild(o *options) *cobra.Command {
	var r rebuilding
	c := &cobra.Command{
		Use:   "rebuild folder|provenance.json|URL",
		Short: "Make a release again from its provenance, and compare",
		Long: `rebuild makes a release again, from what its provenance says that it was made of, in a folder of its own, and compares every file
and every image by digest. If something differs, slipway diff explains it, and the exit code is 1.

With --inputs, everything comes from a kubernetes-inputs.tar, and no network is needed. Without it, the sources are the
kubernetes-src.tar.gz beside the provenance, and modules, Go and packages are fetched. Either way they are compared with the
provenance before anything is built: what is missing or another one is named.

The tree in the sources makes the release, by the toolchain in it. An interrupted rebuild goes on where it was, with the same
command.

With --sign, whoever owns the key states that the same came out: a verification summary, in the folder rebuilds/ of what was made.
Send it to whoever publishes the release; slipway verify --rebuilders counts such files.`,
		Example: "  slipway rebuild v1.37.1/provenance.json --inputs kubernetes-inputs.tar\n" +
			"  slipway rebuild https://dl.example.com/v1.37.1/ --sign ~/mine.key",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return o.rebuild(c.Context(), args[0], r) },
	}
	c.Flags().StringVar(&r.inputs, "inputs", "", "the `file` kubernetes-inputs.tar of the release")
	c.Flags().StringVar(&r.folder, "folder", "", "where to make it (default _output/rebuild/VERSION in a tree, else rebuild-VERSION)")
	c.Flags().StringVar(&r.key, "key", "", "the public key that must have signed the provenance, as for slipway verify")
	c.Flags().StringVar(&r.sign, "sign", "", "the private key to state the result by, as for slipway sign --key")
	return c
}

func (o *options) rebuild(ctx context.Context, from string, r rebuilding) error {
	var public *signature.PublicKey
	if r.key != "" {
		key, err := signature.ReadPublic(ctx, r.key)
		if err != nil {
			return fmt.Errorf("read the key: %w", err)
		}
		public = &key
	}
	var private *signature.PrivateKey
	if r.sign != "" {
		key, err := signature.ReadPrivate(ctx, r.sign, o.password("Password of "+r.sign))
		if err != nil {
			return fmt.Errorf("read the key: %w", err)
		}
		private = &key
	}
	file, done, err := provenanceFile(ctx, from, r)
	if err != nil {
		return err
	}
	defer done()
	s, err := rebuild.Open(file, public)
	if err != nil {
		return err
	}
	if r.folder == "" {
		r.folder = o.rebuildFolder(s.Predicate.Definition.Parameters.Version)
	}
	if r.folder, err = filepath.Abs(r.folder); err != nil {
		return err
	}
	sources := filepath.Join(filepath.Dir(file), catalog.SourceTarball)
	if _, err := os.Stat(sources); err != nil && r.inputs == "" {
		return badrequest.Mark(fmt.Errorf("%w: without the sources beside it, name the inputs: --inputs kubernetes-inputs.tar", err))
	}
	o.say("reading what the release is made of into " + r.folder)
	tree, err := rebuild.Prepare(ctx, s, r.folder, r.inputs, sources)
	if err != nil {
		return err
	}
	if err := tree.Build(ctx, o.Err); err != nil {
		return fmt.Errorf("make the release again: %w", err)
	}
	report, err := tree.Compare()
	if err != nil {
		return err
	}
	if o.json {
		err = o.printJSON(report)
	} else {
		err = report.Text(o.Out)
	}
	if err != nil {
		return err
	}
	if !report.Same {
		return errors.Join(o.explainRebuild(ctx, filepath.Dir(file), report), fmt.Errorf("release %s was not made again: what differs is listed above", report.Version))
	}
	if private == nil {
		return nil
	}
	name, err := tree.Sign(ctx, report, *private)
	if err == nil && !o.json {
		fmt.Fprintf(o.Out, "%s says so, signed by the key %s\n", name, private.Public().Hint())
	}
	return err
}

// rebuildFolder is where a release is made again if nobody says where.
func (o *options) rebuildFolder(version string) string {
	version = path.Base(path.Clean("/" + version))
	if root, err := plan.FindRoot(o.dir); err == nil {
		return filepath.Join(root, filepath.FromSlash(plan.Output), "rebuild", version)
	}
	return filepath.Join(o.dir, "rebuild-"+version)
}

// provenanceFile returns the file with the provenance that is named, which is fetched with what belongs to it if it is on a web server. The
// caller calls done at the end.
func provenanceFile(ctx context.Context, from string, r rebuilding) (file string, done func(), err error) {
	done = func() {}
	if !strings.HasPrefix(from, "http://") && !strings.HasPrefix(from, "https://") {
		if info, err := os.Stat(from); err == nil && info.IsDir() {
			from = filepath.Join(from, provenance.File)
		}
		if _, err := os.Stat(from); errors.Is(err, fs.ErrNotExist) {
			return "", done, badrequest.Mark(fmt.Errorf("%w: name the folder of a release, or the %s in it", err, provenance.File))
		}
		return from, done, nil
	}
	from = strings.TrimSuffix(from, provenance.File)
	dir, err := os.MkdirTemp("", "slipway-rebuild-")
	if err != nil {
		return "", done, err
	}
	done = func() { _ = os.RemoveAll(dir) }
	wanted := map[string]int64{provenance.File: maxStatement}
	if r.key != "" {
		wanted[rebuild.Attestation] = signature.MaxBundle
	}
	if r.inputs == "" {
		wanted[catalog.SourceTarball] = maxSources
	}
	for name, limit := range wanted {
		to := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), verify.Fetch(ctx, from, name, to, limit)); err != nil {
			done()
			return "", func() {}, err
		}
	}
	return filepath.Join(dir, provenance.File), done, nil
}

// explainRebuild prints how the files that differ do so, if those of the release are here.
func (o *options) explainRebuild(ctx context.Context, dir string, report *rebuild.Report) error {
	for _, s := range report.Subjects {
		a, b := filepath.Join(dir, filepath.FromSlash(s.Name)), filepath.Join(report.Made, filepath.FromSlash(s.Name))
		if _, err := os.Stat(a); s.Same() || s.Got == "" || err != nil || !filepath.IsLocal(filepath.FromSlash(s.Name)) {
			continue
		}
		d, err := diff.Compare(ctx, a, b)
		if err != nil {
			return err
		}
		if err := d.Text(o.Err); err != nil {
			return err
		}
	}
	return nil
}
