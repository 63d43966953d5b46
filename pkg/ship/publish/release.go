package publish

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"golang.org/x/mod/semver"

	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/mechanism/checksum"
	"slipway.build/pkg/mechanism/imagename"
	"slipway.build/pkg/mechanism/suggest"
	"slipway.build/pkg/release"
	"slipway.build/pkg/ship/bundle"
	"slipway.build/pkg/ship/sign"
	"slipway.build/pkg/ship/site"
	"slipway.build/pkg/ship/verify"
	"slipway.build/pkg/tree/stamp"
)

// A Release is a release in a folder that may be published, or the images of one in a bundle.
type Release struct {
	described *release.Release
	objects   []Object
	dir       string
	want      verify.Want
	bundle    *bundle.Bundle // nil if it is in a folder
	packages  Repositories   // of its packages
}

// A RefusedError says that a release is not what it should be, or not signed as it should be.
type RefusedError struct{ Report *verify.Report }

func (e *RefusedError) Error() string {
	why := "it differs from its " + release.File
	switch {
	case e.Report.Signature == verify.NotConvinced:
		why = "a signature is missing or wrong"
	case e.Report.Problem != "":
		why = e.Report.Problem
	}
	return fmt.Sprintf("%s is not published: %s", e.Report.Folder, why)
}

// Accept verifies the release in a folder. Want must say who has signed it. Repository has its images, or is "" if they are where
// release.json says. It returns an error if the release must not be published now: a [*RefusedError] if it is not as wanted, and a
// [*release.EmbargoError].
func Accept(ctx context.Context, dir string, want verify.Want, repository string, now time.Time) (*Release, error) {
	if repository != "" {
		if err := imagename.RegistryHost(repository); err != nil {
			return nil, badrequest.Mark(fmt.Errorf("%q is no repository for images, such as registry.example.com/k8s: %w", repository, err))
		}
	}
	description, err := os.ReadFile(filepath.Join(dir, release.File))
	if err != nil {
		return nil, err
	}
	r, err := release.Unmarshal(description)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, release.File), err)
	}
	err = accept(dir, r, want, now, func() (*verify.Report, error) { return verify.Folder(ctx, dir, want) })
	if err != nil {
		return nil, err
	}
	objects, err := objects(dir, r, repository)
	return &Release{described: r, objects: objects, dir: dir, want: want}, err
}

// AcceptBundle is like Accept for a bundle, which the caller closes. Only the images of the release can be published.
func AcceptBundle(ctx context.Context, b *bundle.Bundle, want verify.Want, now time.Time) (*Release, error) {
	verified := func() (*verify.Report, error) { return b.Verify(ctx, want) }
	return &Release{described: b.Release, want: want, bundle: b}, accept(b.String(), b.Release, want, now, verified)
}

// accept returns an error if a release must not be published now. Place is where it is.
func accept(place string, r *release.Release, want verify.Want, now time.Time, verified func() (*verify.Report, error)) error {
	if want.Trust == nil {
		return badrequest.Mark(errors.New("nobody says who must have signed the release"))
	}
	if err := r.CheckEmbargo(now); err != nil {
		return fmt.Errorf("%w: it is not published", err)
	}
	if err := checkVersion(r); err != nil {
		return fmt.Errorf("%s is not published: %w", place, err)
	}
	report, err := verified()
	if err != nil {
		return err
	}
	if !report.OK() || report.Signature != verify.Good {
		return &RefusedError{report}
	}
	if report.Withdrawn != "" {
		return fmt.Errorf("%s is not published: %s was withdrawn: %s", place, r.Version, report.Withdrawn)
	}
	return nil
}

// Bundle makes a bundle of the release, as package bundle does. The error is a [*bundle.IncompleteError] if it would lack an image that
// kubeadm asks for.
func (r *Release) Bundle(ctx context.Context, q bundle.Request, layoutDir, output string, waiting func()) (*bundle.Summary, error) {
	if err := sign.HasImages(r.dir, layoutDir); err != nil {
		return nil, fmt.Errorf("%s: %w", layoutDir, err)
	}
	if err := q.Complete(ctx, r.dir, r.described); err != nil {
		return nil, err
	}
	return q.Write(ctx, r.dir, layoutDir, output, waiting)
}

// SignPackages has the release's debs and rpms published, too, in signed repositories, which Check has accepted. It returns an error if
// there are none, or if nobody has given the version a name.
func (r *Release) SignPackages(q Repositories) error {
	switch {
	case !hasPackages(r.described):
		return fmt.Errorf("release %s has no packages: it was made without them", r.described.Version)
	case stamp.IsUntagged(r.described.Version):
		return fmt.Errorf("packages of %s are not published: it has no tag, so nothing says which version is newer", r.described.Version)
	}
	q.URL = strings.TrimRight(q.URL, "/")
	r.packages = q
	return nil
}

// checkVersion returns an error if no release with a version may be published.
func checkVersion(r *release.Release) error {
	v := r.Version
	switch {
	case !semver.IsValid(v) || semver.Canonical(v)+semver.Build(v) != v:
		return fmt.Errorf("its version is %q, and not one like v1.37.1+acme.2", v)
	case strings.HasSuffix(v, ".dirty") || r.TreeState == "dirty":
		return fmt.Errorf("%s was made of a tree with changes that are in no commit: commit them, and make it again", v)
	}
	return stamp.CheckCandidate(v)
}

// objects returns what a release consists of at a target, release.json last.
func objects(dir string, r *release.Release, repository string) ([]Object, error) {
	derived, err := site.Files(r, repository)
	if err != nil {
		return nil, err
	}
	folder := site.Folder(r.Version)
	var all []Object
	known := map[string]bool{site.Index: true}
	for _, f := range derived {
		known[f.Path] = true
		o := Object{Path: path.Join(folder, f.Path), Size: f.Size, SHA256: f.Digest.SHA256}
		if f.Content != nil {
			o.open = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(f.Content)), nil }
		} else {
			o.tarball, o.member = holder(r, f.Program.Name)
			o.tarball = filepath.Join(dir, filepath.FromSlash(o.tarball))
		}
		all = append(all, o)
	}
	described := map[string]release.Artifact{}
	for _, a := range r.Artifacts {
		described[a.Path] = a
	}
	err = fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || known[name] { // a folder that was published before has what follows from its release.json
			return err
		}
		file := filepath.Join(dir, filepath.FromSlash(name))
		o := Object{Path: path.Join(folder, name), open: func() (io.ReadCloser, error) { return os.Open(file) }}
		if a, ok := described[name]; ok {
			o.Size, o.SHA256 = a.Size, a.SHA256
		} else if o.SHA256, o.Size, err = sum(file); err != nil {
			return err
		}
		all = append(all, o)
		return nil
	})
	slices.SortStableFunc(all, func(a, b Object) int {
		return cmp.Or(rank(a.Path)-rank(b.Path), cmp.Compare(a.Path, b.Path))
	})
	return all, err
}

func rank(name string) int {
	if path.Base(name) == release.File {
		return 1
	}
	return 0
}

func sum(file string) (string, int64, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	return checksum.SHA256(f)
}

// holder returns the path and the member of a tarball with a program: of that which has the most programs, so that few tarballs are read.
func holder(r *release.Release, program string) (tarball, member string) {
	most := 0 // members
	for _, a := range r.Artifacts {
		for _, m := range a.Members {
			if n := len(a.Members); a.Kind == release.Tarball && m.Artifact == program && n > most {
				tarball, member, most = a.Path, path.Clean(m.Path), n
			}
		}
	}
	return tarball, member
}

// Plan returns what a target gets of the release. It writes nothing. The error is a [*ConflictError] if the target has other files of the
// same version.
func (r *Release) Plan(ctx context.Context, c Channel) (*Publication, error) {
	version := r.described.Version
	p := &Publication{Target: c.String(), Version: version, URLPath: site.URLPath(site.Folder(version)) + "/", channel: c,
		release: r.described, Objects: slices.Clone(r.objects)}
	var rs *packages
	if r.packages.Keys != nil {
		var err error
		if rs, err = newPackages(ctx, r.dir, r.described, r.packages, c); err != nil {
			return nil, err
		}
		p.has(rs)
		p.ForUsers = rs.usersFiles()
	}
	p.pages = func(ctx context.Context) (_ []Page, err error) {
		if p.Withdrawn, err = reason(ctx, c, version); err != nil {
			return nil, err
		}
		index, err := p.indexPage(ctx)
		if err != nil || rs == nil {
			return index, err
		}
		pages, err := rs.pages(ctx, "")
		return append(index, pages...), err
	}
	return p, p.look(ctx)
}

// has adds packages to the publication.
func (p *Publication) has(rs *packages) {
	p.Packages, p.Objects = rs.folder, append(rs.objects, p.Objects...)
	p.sign = func(ctx context.Context) (err error) {
		p.OtherKey, err = rs.signRPMs(ctx, p.Objects)
		return err
	}
}

// indexPage returns the page about the release.
func (p *Publication) indexPage(ctx context.Context) ([]Page, error) {
	html, err := site.IndexPage(p.release, p.Withdrawn)
	if err != nil {
		return nil, err
	}
	index, err := page(ctx, p.channel, path.Join(site.Folder(p.Version), site.Index), html)
	return []Page{index}, err
}

// ErrNoKey says that a target has repositories of packages, and nobody named the key that signs them.
var ErrNoKey = errors.New("there are packages of it in repositories, which a key must sign again")

// Withdraw returns what changes at a target if nobody should use a version any more: its files stay, say why, and no marker names it. It
// writes nothing. Its packages go from the repositories.
func Withdraw(ctx context.Context, c Channel, version, why string, q Repositories) (*Publication, error) {
	why = strings.TrimSpace(why)
	if why == "" || len(why) >= site.MaxReason || strings.ContainsFunc(why, unicode.IsControl) {
		return nil, badrequest.Mark(fmt.Errorf("say why %s is withdrawn, in one line", version))
	}
	all, err := standing(ctx, c)
	if err != nil {
		return nil, err
	}
	if _, ok := all[version]; !ok {
		var names []string
		for v := range all {
			names = append(names, v)
		}
		slices.SortFunc(names, stamp.Compare)
		return nil, fmt.Errorf("%s: %w", c, suggest.Unknown("version", version, names))
	}
	r, err := published(ctx, c, version)
	if err != nil {
		return nil, err
	}
	if r.Version != version {
		return nil, fmt.Errorf("%s: %s is of release %s", c, path.Join(site.Folder(version), release.File), r.Version)
	}
	p := &Publication{Target: c.String(), Version: version, URLPath: site.URLPath(site.Folder(version)) + "/", Withdrawn: why, channel: c,
		release: r}
	rs := &packages{Repositories: q, channel: c, folder: repositoryFolder(version), version: version}
	if q.Keys != nil {
		if err := rs.addKeyring(ctx); err != nil { // it is there, unless the keys have changed
			return nil, err
		}
		p.has(rs)
	}
	p.pages = func(ctx context.Context) ([]Page, error) {
		notice, err := page(ctx, c, path.Join(site.Folder(version), site.Withdrawn), []byte(why+"\n"))
		if err != nil {
			return nil, err
		}
		index, err := p.indexPage(ctx)
		pages := append([]Page{notice}, index...) // the notice first: readers of the page find it
		if err != nil || q.Keys == nil {
			return pages, err
		}
		more, err := rs.pages(ctx, version)
		return append(pages, more...), err
	}
	if q.Keys == nil && hasPackages(r) {
		_, err := c.Head(ctx, path.Join(repositoryFolder(version), "deb/InRelease"), -1, "")
		if err == nil {
			return nil, ErrNoKey
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return p, p.look(ctx)
}
