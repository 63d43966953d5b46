package debrpm

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"slipway.build/pkg/make/license"
	"slipway.build/pkg/make/pack"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/archive"
	"slipway.build/pkg/mechanism/checksum"
	"slipway.build/pkg/mechanism/deb"
	"slipway.build/pkg/mechanism/recipe"
	"slipway.build/pkg/mechanism/relation"
	"slipway.build/pkg/mechanism/rpm"
)

//go:embed *.go
var sources embed.FS

var code = recipe.Of("make/debrpm", sources)

// A Format is that of a package's file.
type Format string

// The formats.
const (
	Deb Format = "deb"
	RPM Format = "rpm"
)

// Formats returns all formats.
func Formats() []Format { return []Format{Deb, RPM} }

// Revision is that of every package. What changes gets another version.
const Revision = "1"

// A Spec decides a package's bytes, together with the contents of the files that it names. Paths of files are relative to the tree's root
// and separated by slashes; those in packages begin with a slash.
type Spec struct {
	Format      Format
	Name        string
	Version     string // without the revision
	GOARCH      string
	Maintainer  string // "NAME <ADDRESS>"
	Homepage    string // may be empty
	Summary     string
	Description string // may be empty

	Release string    // the version of the release that it is of
	Commit  string    // of that; may be empty
	Time    time.Time // of everything

	Binaries []Binary
	Trees    []string // folders with a final slash, of files as they lie in the root file system
	Folders  []string // that the package makes

	Requires, Recommends, Conflicts []relation.Relation

	Scripts      Scripts
	Licenses     []Texts
	LicenseNames []string // files with the names of licenses

	Output string
	SHA512 string // a file with its SHA-512
}

// A Binary is a program in a package.
type Binary struct{ From, To string }

// Scripts are files with lines for a shell. Empty ones are left out.
type Scripts struct{ PreInstall, PostInstall, PreRemove, PostRemove string }

// Texts is a tar of license texts, see package license, and the programs of the package that it is about.
type Texts struct {
	Tar      string
	Programs []string
}

// Arch returns the name of the package's architecture.
func (s Spec) Arch() (string, error) {
	if s.Format == Deb {
		return deb.Arch(s.GOARCH)
	}
	return rpm.Arch(s.GOARCH)
}

// File returns the name of the package's file. It has a minus in place of each plus, which some servers read as a space in URLs.
func (s Spec) File() (string, error) {
	arch, err := s.Arch()
	if err != nil {
		return "", fmt.Errorf("package %s: %w", s.Name, err)
	}
	version := strings.ReplaceAll(s.Version, "+", "-")
	if s.Format == Deb {
		return fmt.Sprintf("%s_%s-%s_%s.deb", s.Name, version, Revision, arch), nil
	}
	return fmt.Sprintf("%s-%s-%s.%s.rpm", s.Name, version, Revision, arch), nil
}

// ID returns the ID of the action.
func (s Spec) ID() string { return fmt.Sprintf("%s linux/%s %s", s.Format, s.GOARCH, s.Name) }

func (s Spec) inputs() []string {
	var inputs []string
	for _, b := range s.Binaries {
		inputs = append(inputs, b.From)
	}
	for _, name := range []string{s.Scripts.PreInstall, s.Scripts.PostInstall, s.Scripts.PreRemove, s.Scripts.PostRemove} {
		if name != "" {
			inputs = append(inputs, name)
		}
	}
	for _, t := range s.Licenses {
		inputs = append(inputs, t.Tar)
	}
	return slices.Concat(inputs, s.Trees, s.LicenseNames)
}

// Action returns the action that makes the package. Cache is the folder of compressed contents.
func Action(root, cache string, s Spec) *action.Action {
	return &action.Action{
		ID:      s.ID(),
		Phase:   "package",
		Recipe:  code.Recipe(s),
		Inputs:  s.inputs(),
		Outputs: []string{s.Output, s.SHA512},
		Run: func(ctx context.Context, t *action.Task) error {
			made := maker{s, root, t.Sum}
			write, err := made.writer(ctx, cache)
			if err != nil {
				return err
			}
			sum, err := checksum.Create(t.Path(s.Output), write)
			if err != nil {
				return err
			}
			t.SetDigest(s.Output, sum.SHA256)
			return os.WriteFile(t.Path(s.SHA512), []byte(sum.SHA512+"\n"), 0o644)
		},
	}
}

// A maker reads what a spec names.
type maker struct {
	Spec
	root string
	sum  func(input string) string // SHA-256 of an input
}

func (m maker) abs(name string) string { return filepath.Join(m.root, filepath.FromSlash(name)) }

// writer returns the function that writes the package.
func (m maker) writer(ctx context.Context, cache string) (func(io.Writer) error, error) {
	arch, err := m.Arch()
	if err != nil {
		return nil, err
	}
	entries, err := m.entries()
	if err != nil {
		return nil, err
	}
	scripts, err := m.scripts(entries)
	if err != nil {
		return nil, err
	}
	expression, err := license.Expression(m.paths(m.LicenseNames), m.paths(m.programs()))
	if err != nil {
		return nil, err
	}
	documents, err := m.documents(ctx, expression)
	if err != nil {
		return nil, err
	}
	entries = append(entries, documents...)
	if m.Format == Deb {
		p := deb.Package{
			Name: m.Name, Version: m.Version + "-" + Revision, Arch: arch, Maintainer: m.Maintainer, Section: "admin", Homepage: m.Homepage,
			Summary: m.Summary, Description: m.Description, Depends: m.Requires, Recommends: m.Recommends, Conflicts: m.Conflicts,
			Files: entries, Scripts: scripts.deb(), Time: m.Time,
		}
		return func(w io.Writer) error { return p.Write(ctx, w, cache) }, nil
	}
	p := rpm.Package{
		Name: m.Name, Version: m.Version, Release: Revision, Arch: arch, Packager: m.Maintainer, License: expression, URL: m.Homepage,
		Summary: m.Summary, Description: m.Description, Requires: m.Requires, Recommends: m.Recommends, Conflicts: m.Conflicts,
		Files: entries, Scripts: scripts.rpm(), Changes: "- Release " + m.Release + ".", Time: m.Time,
	}
	return func(w io.Writer) error { return p.Write(ctx, w, cache) }, nil
}

func (m maker) programs() []string {
	var names []string
	for _, b := range m.Binaries {
		names = append(names, b.From)
	}
	return names
}

func (m maker) paths(names []string) []string {
	var all []string
	for _, name := range names {
		all = append(all, m.abs(name))
	}
	return all
}

// entries returns the programs, the tree's files and the folders.
func (m maker) entries() ([]archive.Entry, error) {
	var entries []archive.Entry
	for _, b := range m.Binaries {
		entries = append(entries, archive.Entry{Name: within(b.To), Mode: 0o755, Path: m.abs(b.From), Sum: m.sum(b.From)})
	}
	for _, tree := range m.Trees {
		files, err := pack.Folder(m.abs(tree), "", func(rel string) string { return m.sum(tree + rel) })
		if err != nil {
			return nil, err
		}
		entries = append(entries, files...)
	}
	for _, folder := range m.Folders {
		entries = append(entries, archive.Entry{Name: within(folder), Mode: fs.ModeDir})
	}
	return entries, nil
}

// within returns an absolute path as members have it.
func within(name string) string { return strings.TrimPrefix(name, "/") }

// documents returns what is in /usr/share/doc, and the folder, which is the package's own.
func (m maker) documents(ctx context.Context, expression string) ([]archive.Entry, error) {
	dir := "usr/share/doc/" + m.Name
	file := func(name string, content []byte) archive.Entry {
		return archive.Entry{Name: path.Join(dir, name), Mode: 0o644, Data: content}
	}
	var about, notices, changes, zipped bytes.Buffer
	fmt.Fprintf(&about, "%s %s is a part of release %s", m.Name, m.Version, m.Release)
	if m.Commit != "" {
		fmt.Fprintf(&about, ", which was made\nfrom source at commit %s", m.Commit)
	}
	about.WriteString(".\n")
	if m.Homepage != "" {
		fmt.Fprintf(&about, "\nHomepage: %s\n", m.Homepage)
	}
	if expression != "" {
		fmt.Fprintf(&about, "\nLicense: %s\n", expression)
	}
	about.WriteString("\nThe copyright notices and license texts of everything in it are in the file\nNOTICES beside this one.\n")
	if m.Format == Deb && strings.Contains(expression, "Apache-2.0") {
		about.WriteString("On Debian systems, the text of Apache-2.0 is also in\n/usr/share/common-licenses/Apache-2.0.\n")
	}
	for _, t := range m.Licenses {
		if err := license.Notices(&notices, m.abs(t.Tar), m.paths(t.Programs)); err != nil {
			return nil, err
		}
	}
	entries := []archive.Entry{{Name: dir, Mode: fs.ModeDir}, file("copyright", about.Bytes()), file("NOTICES", notices.Bytes())}
	if m.Format != Deb {
		return entries, nil
	}
	fmt.Fprintf(&changes, "%s (%s-%s) stable; urgency=medium\n\n  * Release %s.\n\n -- %s  %s\n", m.Name, m.Version, Revision, m.Release,
		m.Maintainer, m.Time.UTC().Format(time.RFC1123Z))
	err := (&archive.Packer{}).Gzip(ctx, &zipped, []archive.Piece{{Data: changes.Bytes()}})
	return append(entries, file("changelog.Debian.gz", zipped.Bytes())), err
}
