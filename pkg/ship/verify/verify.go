// Package verify checks a release against its description, release.json.
//
// [Folder] checks everything in a folder: files that the description names must exist, complete and unchanged, the statements about
// them must be those that follow from it, and there must be nothing else, such as a tarball of an earlier request. [URL] does the same
// with what a web server has, and [One] looks at a single file. With a public key, what is signed must be signed by it, see package sign.
// The [Report] is a value; text and JSON are views of it.
//
// What must never be in here: how a release is made, and which files it should have.
package verify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
	"golang.org/x/sync/errgroup"

	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/mechanism/checksum"
	"slipway.build/pkg/mechanism/ctxio"
	"slipway.build/pkg/mechanism/signature"
	"slipway.build/pkg/release"
	"slipway.build/pkg/release/provenance"
	"slipway.build/pkg/ship/sign"
	"slipway.build/pkg/ship/site"
	"slipway.build/pkg/ship/trust"
	"slipway.build/pkg/tree/input"
	"slipway.build/pkg/tree/stamp"
)

// A Want is what a user requires of a release. The zero value requires nothing.
type Want struct {
	Trust   *trust.Policy // who has signed it
	Version string        // that it has
	AtLeast string        // a version that it is not older than

	Rebuilders    int                   // how many of the owners of RebuilderKeys have made it again, at least
	RebuilderKeys []signature.PublicKey // a key counts once
}

// check returns an error if what is required of rebuilders is impossible, or proves nothing.
func (w Want) check() error {
	if w.Trust != nil {
		if err := w.Trust.Check(); err != nil {
			return err
		}
	}
	keys := map[string]bool{}
	for _, key := range w.RebuilderKeys {
		if w.Trust.Has(key) {
			return errOwnKey(key)
		}
		keys[key.Hint()] = true
	}
	switch {
	case w.Rebuilders < 0 || w.Rebuilders == 0 && len(keys) > 0:
		return badrequest.Mark(fmt.Errorf("%d rebuilders are wanted: say how many of the owners of their keys, 1 or more", w.Rebuilders))
	case w.Rebuilders > len(keys):
		return badrequest.Mark(fmt.Errorf("%d rebuilders are wanted, but there are keys of %d", w.Rebuilders, len(keys)))
	}
	return nil
}

func errOwnKey(key signature.PublicKey) error {
	return badrequest.Mark(fmt.Errorf("the key %s is that of the release: whoever made it proves nothing by making it again", key.Hint()))
}

// rebuilt reports whether rebuilders are asked for.
func (w Want) rebuilt() bool { return w.Rebuilders != 0 || len(w.RebuilderKeys) > 0 }

// Nothing reports whether nothing is asked for.
func (w Want) Nothing() bool {
	return w.Trust == nil && w.Version == "" && w.AtLeast == "" && !w.rebuilt()
}

// Folder compares the files in dir with the description there, and with what is wanted. It returns an error if it cannot read the
// description or a file, or if a wanted version is not one; the report says what is wrong with files.
func Folder(ctx context.Context, dir string, want Want) (*Report, error) {
	return whole(ctx, folder(dir), want)
}

// Contents is like Folder, but does not look at signatures.
func Contents(ctx context.Context, dir string) (*Report, error) {
	c, err := open(ctx, folder(dir))
	if err != nil {
		return nil, err
	}
	return c.contents(ctx, nil)
}

// One is like Folder, but checks a single file of a release, by its path. Others need not be there, except for the description.
func One(ctx context.Context, file string, want Want) (*Report, error) {
	dir, name := Split(filepath.ToSlash(file))
	if InRepository(name) {
		home, err := releaseOf(ctx, folder(filepath.FromSlash(dir)), name)
		if err != nil {
			return nil, err
		}
		dir, name = path.Join(dir, home), "../../"+name
	}
	return one(ctx, folder(filepath.FromSlash(dir)), name, want)
}

// A content is a place with its release.json.
type content struct {
	place       place
	description []byte
	release     *release.Release
	paged       bool // the page about the release was looked for
}

func open(ctx context.Context, at place) (*content, error) {
	data, err := readSmall(ctx, at, release.File, maxDescription)
	if err != nil {
		return nil, err
	}
	described, err := release.Unmarshal(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", at.name(release.File), err)
	}
	return &content{place: at, description: data, release: described}, nil
}

func whole(ctx context.Context, at place, want Want) (*Report, error) {
	if err := want.check(); err != nil {
		return nil, err
	}
	c, err := open(ctx, at)
	if err != nil {
		return nil, err
	}
	report, err := c.contents(ctx, nil)
	if err != nil {
		return nil, err
	}
	if err := report.compare(want); err != nil {
		return nil, err
	}
	if err := c.signatures(ctx, report, nil, want); err != nil {
		return nil, err
	}
	return report, report.rebuilds(ctx, c, want)
}

// signatures adds the results of checking signatures: of files, and of the statements about all of the release or some of its artifacts.
func (c *content) signatures(ctx context.Context, report *Report, about func(release.Artifact) bool, want Want) error {
	signed := map[string][]byte{release.File: c.description} // as it was read before
	for _, name := range release.Signed() {
		if signed[name] != nil {
			continue
		}
		data, err := readSmall(ctx, c.place, name, maxDescription)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, sign.ErrIrregular) {
			return err
		}
		signed[name] = data
	}
	// A document that is missing or changed is reported as such: its statement cannot be checked.
	statements, err := sign.StatementsAbout(c.release, c.description, about, func(name string) ([]byte, error) {
		return readSmall(ctx, c.place, name, maxDescription)
	})
	if err != nil && report.OK() {
		return err
	}
	return report.signatures(ctx, c.place, signed, statements, want.Trust)
}

// errPart says that rebuilders are required of a part of a release.
var errPart = badrequest.Mark(errors.New("rebuilders state something about a whole release: verify its folder"))

func one(ctx context.Context, at place, name string, want Want) (*Report, error) {
	if want.rebuilt() {
		return nil, errPart
	}
	c, err := open(ctx, at)
	if err != nil {
		return nil, err
	}
	if len(c.artifacts([]string{name})) == 0 {
		return nil, fmt.Errorf("%s is not a file of release %s, which %s describes", at.name(name), c.release.Version, at.name(release.File))
	}
	report, err := c.contents(ctx, []string{name})
	if err != nil {
		return nil, err
	}
	if a := c.artifacts([]string{name})[0]; a.Kind == release.RPM && report.bad() && report.Files[0].Status != Missing {
		if report.Files[0], err = signedCopy(ctx, at, a, report.Files[0]); err != nil {
			return nil, err
		}
		report.finish()
	}
	if InRepository(name) {
		report.Files[0].Path = path.Base(name)
	}
	if err := report.compare(want); err != nil {
		return nil, err
	}
	return report, report.signatures(ctx, at, map[string][]byte{release.File: c.description}, nil, want.Trust)
}

// compare adds what is wrong with the version.
func (r *Report) compare(want Want) error {
	if want.Version != "" && r.Version != want.Version {
		r.problem("it is not " + want.Version)
	}
	if want.AtLeast != "" {
		for _, v := range []string{r.Version, want.AtLeast} {
			if !semver.IsValid(v) {
				return badrequest.Mark(fmt.Errorf("%q is not a version like v1.37.1+acme.2", v))
			}
		}
		if err := stamp.CheckCandidate(want.AtLeast); err != nil {
			return badrequest.Mark(err)
		}
		if stamp.Compare(r.Version, want.AtLeast) < 0 {
			r.problem("it is older than " + want.AtLeast)
		}
	}
	return nil
}

// signatures adds the results of checking signatures: of files, by their contents, and of statements.
func (r *Report) signatures(ctx context.Context, at place, signed map[string][]byte, statements []sign.Statement,
	wanted *trust.Policy) error {
	check := &sign.Check{Signed: signed, Statements: statements, Policy: wanted, Read: func(name string) ([]byte, error) {
		return readSmall(ctx, at, name, signature.MaxBundle)
	}}
	if in := listed(at); in != nil {
		var err error
		if check.Added, err = sign.Added(in); err != nil {
			return err
		}
	}
	found, err := check.Run()
	if err != nil {
		return err
	}
	r.Signature = Unsigned
	if wanted != nil {
		r.Signature = Good
		for _, key := range found.Signers {
			r.Keys = append(r.Keys, key.Hint())
		}
		if !found.OK(wanted) {
			r.Signature = NotConvinced
			if wanted.Threshold > 1 {
				r.problem(tooFew(len(found.Signers), wanted))
			}
		}
	}
	for _, f := range found.Files {
		file := File{f.Name, OK, f.Problem}
		switch {
		case f.Missing:
			file.Status, r.Signature = Missing, NotConvinced
		case f.Problem != "" && !f.Unchecked:
			file.Status, r.Signature = BadSigned, NotConvinced
		case f.Name == release.RootFile:
		case f.Unchecked:
			file.Status = Unchecked
			if r.Signature == Unsigned {
				r.Signature = NotChecked
			}
		}
		r.Files = append(r.Files, file)
	}
	if !r.bad() && r.Signature == NotConvinced && r.Problem == "" {
		r.problem(tooFew(len(found.Signers), wanted))
	}
	r.finish()
	return nil
}

func tooFew(have int, wanted *trust.Policy) string {
	return fmt.Sprintf("%d of the wanted %d keys have signed it", have, wanted.Threshold)
}

// contents checks the named artifacts. Without names, it checks all of them and the statements, and that there are no other files.
func (c *content) contents(ctx context.Context, names []string) (*Report, error) {
	report := &Report{Folder: c.place.String(), Version: c.release.Version, Commit: c.release.Commit}
	checks := c.artifacts(names)
	if len(checks) == 0 {
		return nil, fmt.Errorf("%s: names no files", c.place.name(release.File))
	}
	if len(names) == 0 {
		made, err := provenance.Of(c.release, c.description)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.place.name(release.File), err)
		}
		for _, m := range made {
			sum, size, _ := checksum.Of(bytes.NewReader(m.Content)) // which cannot fail
			checks = append(checks, release.Artifact{Path: m.File, Size: size, SHA256: sum.SHA256, SHA512: sum.SHA512})
		}
	}
	report.Files = make([]File, len(checks))
	g, within := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, a := range checks {
		g.Go(func() (err error) {
			report.Files[i], err = check(within, c.place, a)
			dir, isFolder := c.place.(folder)
			if err == nil && report.Files[i].Status != OK && report.Files[i].Status != Missing && a.Kind == release.Inputs && isFolder {
				_, err = members(within, string(dir), &report.Files[i])
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	if len(names) == 0 {
		published, err := c.published(ctx, report)
		if err != nil {
			return nil, err
		}
		report.Files = append(report.Files, published...)
	}
	if dir, ok := c.place.(folder); ok && len(names) == 0 {
		strangers, err := c.strangers(string(dir), report.Files)
		if err != nil {
			return nil, err
		}
		for i, f := range strangers {
			if f.Path == input.Tarball {
				if strangers[i], err = beside(ctx, string(dir), c.release); err != nil {
					return nil, err
				}
			}
		}
		if c.paged && slices.ContainsFunc(strangers, func(f File) bool { return f.Path == site.Index || f.Path == site.Withdrawn }) {
			pages, err := c.pages(ctx, report) // one may have appeared since
			if err != nil {
				return nil, err
			}
			again := func(f File) bool { return slices.ContainsFunc(pages, func(p File) bool { return p.Path == f.Path }) }
			report.Files, strangers = append(slices.DeleteFunc(report.Files, again), pages...), slices.DeleteFunc(strangers, again)
		}
		report.Files = append(report.Files, strangers...)
	}
	report.finish()
	return report, nil
}

// artifacts returns those that are files of the release, of some names or all.
func (c *content) artifacts(names []string) []release.Artifact {
	var files []release.Artifact
	for _, a := range c.release.Artifacts {
		if a.Path != "" && (len(names) == 0 || slices.Contains(names, a.Name)) {
			files = append(files, a)
		}
	}
	if len(files) < len(names) {
		files = slices.Concat(files, c.programs(names), c.packages(names))
	}
	return files
}

// check compares a file with the artifact that it should be.
func check(ctx context.Context, at place, a release.Artifact) (File, error) {
	f, size, err := at.open(ctx, a.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return File{a.Path, Missing, ""}, nil
	case errors.Is(err, sign.ErrIrregular):
		return File{a.Path, Changed, "is not a regular file"}, nil
	case err != nil:
		return File{}, err
	}
	defer f.Close()
	if size >= 0 && size != a.Size {
		return differs(a, size), nil
	}
	sum, n, err := checksum.Of(io.LimitReader(ctxio.Reader(ctx, f), a.Size+1))
	switch {
	case err != nil:
		return File{}, fmt.Errorf("read %s: %w", at.name(a.Path), err)
	case n != a.Size:
		return differs(a, n), nil
	case sum.SHA256 != a.SHA256:
		return File{a.Path, Changed, fmt.Sprintf("its SHA-256 is %s, want %s", sum.SHA256, a.SHA256)}, nil
	case sum.SHA512 != a.SHA512:
		return File{a.Path, Changed, fmt.Sprintf("its SHA-512 is %s, want %s", sum.SHA512, a.SHA512)}, nil
	}
	return File{a.Path, OK, ""}, nil
}

// differs returns the status of a file with a wrong size.
func differs(a release.Artifact, size int64) File {
	if size < a.Size {
		return File{a.Path, Short, fmt.Sprintf("has %d bytes of %d", size, a.Size)}
	}
	return File{a.Path, Changed, fmt.Sprintf("has %d bytes, want %d", size, a.Size)}
}

// strangers returns the files in the folder that are neither checked, nor the description, nor signatures.
func (c *content) strangers(dir string, checked []File) ([]File, error) {
	known := map[string]bool{release.File: true}
	for _, name := range release.Signatures() {
		known[name] = true
	}
	for _, name := range sign.Names(c.release) {
		known[name] = true
	}
	for _, f := range checked {
		known[f.Path] = true
	}
	var found []File
	rebuilds := 0
	err := fs.WalkDir(os.DirFS(dir), ".", func(rel string, d fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
		switch {
		case d.IsDir() || known[rel]:
		case isAdded(c.release, rel):
		case path.Dir(rel) == release.Rebuilds && strings.HasSuffix(rel, release.BundleSuffix):
			if rebuilds++; rebuilds > maxRebuilds {
				return fmt.Errorf("%s has more than %d files", filepath.Join(dir, release.Rebuilds), maxRebuilds)
			}
			f, err := unchecked(rel, d)
			if err != nil {
				return err
			}
			found = append(found, f)
		default:
			found = append(found, File{rel, Stranger, ""})
		}
		return nil
	})
	return found, err
}

// isAdded reports whether a file has the name of a signature that somebody has added.
func isAdded(r *release.Release, file string) bool {
	rest, ok := strings.CutPrefix(file, release.Added+"/")
	_, name, below := strings.Cut(rest, "/")
	return ok && below && name != release.RootFile && (slices.Contains(release.Signatures(), name) || slices.Contains(sign.Names(r), name))
}
