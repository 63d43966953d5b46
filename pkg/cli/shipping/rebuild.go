package shipping

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"slipway.build/pkg/make/project"
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
	maxOriginal  = 16 << 30
	maxSources   = 1 << 30
	maxStatement = 32 << 20
)

// A rebuilding is what a user says about a rebuild.
type rebuilding struct{ inputs, repository, folder, key, sign string }

func newRebuild(o commands) *cobra.Command {
	var r rebuilding
	c := &cobra.Command{
		Use:   "rebuild folder|provenance.json|URL",
		Short: "Make a release again from its provenance, and compare",
		Long: `rebuild makes a release again, from what its provenance says that it was made of, in a folder of its own, and compares every file
and every image by digest. If something differs, slipway diff explains it, and the exit code is 1.

With --inputs, everything comes from a kubernetes-inputs.tar, and no network is needed. Without it, the sources are the
kubernetes-src.tar.gz beside the provenance, or the commit in a git repository, and modules, Go and packages are fetched. Either way
they are compared with the provenance before anything is built: what is missing or another one is named.

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
	c.Flags().StringVar(&r.repository, "repository", "", "the git repository that has the commit, as for git fetch (default the tree)")
	c.Flags().StringVar(&r.folder, "folder", "", "where to make it (default _output/rebuild/VERSION in a tree, else rebuild-VERSION)")
	c.Flags().StringVar(&r.key, "key", "", "the public key that must have signed the provenance, as for slipway verify")
	c.Flags().StringVar(&r.sign, "sign", "", "the private key to state the result by, as for slipway sign --key")
	return c
}

func (o commands) rebuild(ctx context.Context, from string, r rebuilding) error {
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
		key, err := signature.ReadPrivate(ctx, r.sign, o.Password("Password of "+r.sign))
		if err != nil {
			return fmt.Errorf("read the key: %w", err)
		}
		private = &key
	}
	if r.inputs != "" && r.repository != "" {
		return badrequest.Mark(errors.New("--inputs has the sources: say either --inputs or --repository"))
	}
	at, err := newOriginal(ctx, from, r)
	if err != nil {
		return err
	}
	defer at.done()
	s, err := rebuild.Open(at.file, public)
	if err != nil {
		return err
	}
	r.folder = cmp.Or(r.folder, o.rebuildFolder(s.Predicate.Definition.Parameters.Version))
	if r.folder, err = filepath.Abs(r.folder); err != nil {
		return err
	}
	sources, done, err := o.rebuildSources(ctx, s, r)
	if err != nil {
		return err
	}
	defer done()
	o.Say("reading what the release is made of into " + r.folder)
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
	if err := o.Answer(report, report.Text); err != nil {
		return err
	}
	if !report.Same {
		err := fmt.Errorf("release %s was not made again: what differs is listed above", report.Version)
		return errors.Join(o.explainRebuild(ctx, at, s.Folder, report), err)
	}
	if private == nil {
		return nil
	}
	name, err := tree.Sign(ctx, report, *private)
	if err == nil && !o.JSON {
		fmt.Fprintf(o.Out, "%s says so, signed by the key %s\n", name, private.Public().Hint())
	}
	return err
}

// rebuildFolder is where a release is made again if nobody says where.
func (o commands) rebuildFolder(version string) string {
	version = path.Base(path.Clean("/" + version))
	if root, err := project.FindRoot(o.Dir); err == nil {
		return filepath.Join(root, filepath.FromSlash(project.Output), "rebuild", version)
	}
	return filepath.Join(o.Dir, "rebuild-"+version)
}

// rebuildSources returns the tarball of the sources, which need not exist beside inputs. The caller calls done at the end.
func (o commands) rebuildSources(ctx context.Context, s *rebuild.Statement, r rebuilding) (file string, done func(), err error) {
	file = filepath.Join(s.Folder, catalog.SourceTarball)
	if _, err := os.Stat(file); r.repository == "" && (err == nil || r.inputs != "") {
		return file, func() {}, nil
	}
	if r.repository == "" {
		if r.repository, err = project.FindRoot(o.Dir); err != nil {
			return "", nil, badrequest.Mark(fmt.Errorf("no %s is beside the provenance, so nothing has the sources: "+
				"name the inputs by --inputs, or the git repository by --repository", catalog.SourceTarball))
		}
	}
	dir, err := os.MkdirTemp("", "slipway-rebuild-")
	if err != nil {
		return "", nil, err
	}
	file = filepath.Join(dir, catalog.SourceTarball)
	done = func() { _ = os.RemoveAll(dir) }
	if err := s.Export(ctx, r.repository, file); err != nil {
		done()
		return "", nil, err
	}
	return file, done, nil
}

// An original is the release that is made again, as far as it is known.
type original struct {
	file string // the provenance
	url  string // of the folder with the release; "" if it is on this machine
	done func() // removes what was fetched
}

// newOriginal finds the provenance that is named. It fetches it, and what belongs to it, if it is on a web server.
func newOriginal(ctx context.Context, from string, r rebuilding) (*original, error) {
	if !strings.HasPrefix(from, "http://") && !strings.HasPrefix(from, "https://") {
		if info, err := os.Stat(from); err == nil && info.IsDir() {
			from = filepath.Join(from, provenance.File)
		}
		if _, err := os.Stat(from); errors.Is(err, fs.ErrNotExist) {
			return nil, badrequest.Mark(fmt.Errorf("%w: name the folder of a release, or the %s in it", err, provenance.File))
		}
		return &original{from, "", func() {}}, nil
	}
	url := strings.TrimSuffix(from, provenance.File)
	if !strings.HasSuffix(url, "/") {
		return nil, badrequest.Mark(fmt.Errorf("%s: want the address of a release's folder, with a final slash, or of the %s in it",
			from, provenance.File))
	}
	dir, err := os.MkdirTemp("", "slipway-rebuild-")
	if err != nil {
		return nil, err
	}
	o := &original{filepath.Join(dir, provenance.File), url, func() { _ = os.RemoveAll(dir) }}
	wanted := map[string]int64{provenance.File: maxStatement}
	if r.key != "" {
		wanted[rebuild.Attestation] = signature.MaxBundle
	}
	if r.repository == "" {
		wanted[catalog.SourceTarball] = maxSources
	}
	for name, limit := range wanted {
		to := filepath.Join(dir, filepath.FromSlash(name))
		err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), verify.Fetch(ctx, o.url, name, to, limit))
		if err != nil && !(name == catalog.SourceTarball && errors.Is(err, fs.ErrNotExist)) { // others may have the sources
			o.done()
			return nil, err
		}
	}
	return o, nil
}

// subject returns the file that a subject is, in the release, or "" if it is not at hand.
func (o *original) subject(ctx context.Context, folder string, s rebuild.Subject) (string, error) {
	file := filepath.Join(folder, filepath.FromSlash(s.Name))
	if !filepath.IsLocal(filepath.FromSlash(s.Name)) {
		return "", nil
	}
	if _, err := os.Stat(file); err == nil || o.url == "" {
		if err != nil {
			file = ""
		}
		return file, nil
	}
	err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), verify.Fetch(ctx, o.url, s.Name, file, maxOriginal))
	if errors.Is(err, fs.ErrNotExist) { // an image
		return "", nil
	}
	return file, err
}

// explainRebuild prints how the files that differ do so, if those of the release are at hand.
func (o commands) explainRebuild(ctx context.Context, at *original, folder string, report *rebuild.Report) error {
	for _, s := range report.Subjects {
		made := filepath.Join(report.Made, filepath.FromSlash(s.Name))
		if _, err := os.Stat(made); s.Same() || s.Got == "" || err != nil {
			continue
		}
		file, err := at.subject(ctx, folder, s)
		if err != nil {
			return err
		}
		if file == "" {
			continue
		}
		d, err := diff.Compare(ctx, file, made)
		if err != nil {
			return err
		}
		if err := d.Text(o.Err); err != nil {
			return err
		}
	}
	return nil
}
