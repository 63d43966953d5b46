// Package site is the layout of published releases, as upstream's download server has it: release/VERSION/ holds a release's folder
// unchanged, and beside its files what people fetch alone or read.
//
// All of that follows from release.json. So a release.json that is trusted is enough to check the rest, which is not signed. This is why
// the content of these files must not change with versions of slipway; the page has a number for its form.
//
//	bin/OS/ARCH/NAME             a program that tarballs hold
//	NAME.sha256, NAME.sha512     digests of programs and tarballs, in hex and without a newline
//	kubeadm.yaml                 a ClusterConfiguration with the version and the release's images
//	images.txt                   a line for each image, with its digest
//	index.html                   a page about the release
//	withdrawn.txt                why nobody should use the release any more; absent unless it was withdrawn
//
// Images may be in another repository than those that release.json names. That is a site's own statement, see [Repository].
//
// What must never be in here: where a site is, and how files get there.
package site

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io/fs"
	"net/url"
	"path"
	"slices"
	"strings"

	"slipway.build/pkg/mechanism/checksum"
	"slipway.build/pkg/release"
)

// Root is the folder of all releases and markers, in a site.
const Root = "release"

// Names of files in a release's folder.
const (
	Kubeadm   = "kubeadm.yaml"
	Images    = "images.txt"
	Index     = "index.html"
	Withdrawn = "withdrawn.txt"
	Programs  = "bin" // a folder
)

// MaxReason is the size, in bytes, of the largest withdrawn.txt.
const MaxReason = 4 << 10

// KeyringSuffix ends the names of packages with the keys that sign repositories, as Debian has it. They are of no release.
const KeyringSuffix = "-archive-keyring"

// Folder returns the folder of a version.
func Folder(version string) string { return path.Join(Root, version) }

// URLPath returns a file's path as URLs have it: a plus is a space to some servers.
func URLPath(file string) string {
	return strings.ReplaceAll((&url.URL{Path: file}).EscapedPath(), "+", "%2B")
}

// A File is a file in a release's folder that follows from its release.json.
type File struct {
	Path   string
	Size   int64           // bytes
	Digest checksum.Digest // of its content

	Content []byte           // of a small file
	Program release.Artifact // of another: it is a program that tarballs hold
	Names   bool             // it names images
}

// Files returns the programs, the digests, kubeadm.yaml and images.txt of a release, by path. Repository has its images, or "" if they are
// where release.json says. It returns an error if one of them would be outside of the folder, or in the place of a file of the release.
func Files(r *release.Release, repository string) ([]File, error) {
	var files []File
	seen := map[string]bool{}
	add := func(f File) error {
		isBelow := f.Content != nil || strings.HasPrefix(f.Path, Programs+"/")
		if !isBelow || !fs.ValidPath(f.Path) || strings.Contains(f.Path, `\`) {
			return fmt.Errorf("release %s: %q leads out of its folder", r.Version, f.Path)
		}
		if seen[f.Path] {
			return errTaken(r, f.Path)
		}
		seen[f.Path] = true
		files = append(files, f)
		return nil
	}
	text := func(name string, content []byte) error {
		sum, size, _ := checksum.Of(bytes.NewReader(content)) // which cannot fail
		return add(File{Path: name, Size: size, Digest: sum, Content: content, Names: name == Kubeadm || name == Images})
	}
	digests := func(name string, a release.Artifact) error {
		if err := text(name+".sha256", []byte(a.SHA256)); err != nil {
			return err
		}
		return text(name+".sha512", []byte(a.SHA512))
	}
	for _, name := range []string{Index, Withdrawn} {
		seen[name] = true
	}
	held := map[string]bool{}
	for _, a := range r.Artifacts {
		if a.Path != "" {
			if seen[a.Path] {
				return nil, errTaken(r, a.Path)
			}
			seen[a.Path] = true
		}
		for _, m := range a.Members {
			held[m.Artifact] = held[m.Artifact] || a.Kind == release.Tarball
		}
	}
	for _, a := range r.Artifacts {
		var err error
		switch {
		case a.Path != "" && (a.Kind == release.Tarball || a.Kind == release.Inputs):
			err = digests(a.Path, a)
		case isProgram(a) && held[a.Name]:
			name := path.Join(Programs, a.Name)
			if err = add(File{Path: name, Size: a.Size, Digest: checksum.Digest{SHA256: a.SHA256, SHA512: a.SHA512}, Program: a}); err == nil {
				err = digests(name, a)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	if err := text(Kubeadm, kubeadm(r, repository)); err != nil {
		return nil, err
	}
	if list := images(r, repository); len(list) > 0 {
		if err := text(Images, list); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(files, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
	return files, nil
}

func errTaken(r *release.Release, name string) error {
	return fmt.Errorf("release %s has a file %s of its own, which a site has for something else", r.Version, name)
}

// isProgram reports whether an artifact is a program that people run, and no compiled tests.
func isProgram(a release.Artifact) bool {
	return a.Kind == release.Binary && !strings.HasSuffix(a.Package, ".test")
}

//go:embed index.html.tmpl
var page string

var index = template.Must(template.New(Index).Parse(page))

// Generator is an element of each page, which says that it is one, and of which form. AnyGenerator is how it begins in pages of all forms.
const (
	Generator    = AnyGenerator + `1">`
	AnyGenerator = `<meta name="generator" content="slipway page `
)

// IndexPage returns the page about a release. Reason says why it was withdrawn, or is "".
func IndexPage(r *release.Release, reason string) ([]byte, error) {
	files, err := Files(r, "")
	if err != nil {
		return nil, err
	}
	type row struct {
		Path string
		Link string
		Size int64
		SHA  string
	}
	page := struct {
		*release.Release
		Reason          string
		Released        string
		Files, Programs []row
		HasImages       bool
	}{Release: r, Reason: reason, Released: r.Date.UTC().Format("2006-01-02")}
	for _, a := range r.Artifacts {
		if a.Path != "" {
			page.Files = append(page.Files, row{a.Path, URLPath(a.Path), a.Size, a.SHA256})
		}
	}
	for _, f := range files {
		switch {
		case f.Content == nil:
			page.Programs = append(page.Programs, row{f.Path, URLPath(f.Path), f.Size, f.Digest.SHA256})
		case f.Path == Images:
			page.HasImages = true
		}
	}
	var b bytes.Buffer
	err = index.Execute(&b, page)
	return b.Bytes(), err
}
