package publish

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"slipway.build/pkg/mechanism/apt"
	"slipway.build/pkg/mechanism/archive"
	"slipway.build/pkg/mechanism/deb"
	"slipway.build/pkg/mechanism/openpgp"
	"slipway.build/pkg/mechanism/rpm"
	"slipway.build/pkg/ship/site"
)

// keyringName returns the name of the package with the keys of the repositories that have a version.
func keyringName(version string) string { return usersName(version) + site.KeyringSuffix }

// keyringFile returns where the package installs the keys, below the root. apt and dnf read the keys there, in a folder that is not for
// configuration: neither dpkg nor rpm asks before it replaces a file that somebody has fetched to that place.
func keyringFile(version string) string { return "usr/share/keyrings/" + keyringName(version) + ".asc" }

// A keyring is a package with the public keys that sign repositories, as deb and as rpm. It follows from the keys and a version, not from
// a release: repositories of other minor versions have the same one.
type keyring struct {
	name, file string
	keys       openpgp.Keys // those that changed first come first
	public     []byte
}

func newKeyring(version string, keys openpgp.Keys) (k keyring, err error) {
	k = keyring{name: keyringName(version), file: keyringFile(version), keys: slices.Clone(keys)}
	slices.SortFunc(k.keys, func(a, b *openpgp.Key) int {
		return cmp.Or(a.Changed().Compare(b.Changed()), strings.Compare(a.Fingerprint(), b.Fingerprint()))
	})
	k.public, err = k.keys.Public()
	return k, err
}

// date returns the time of the newest key, which is that of everything in the package.
func (k keyring) date() time.Time { return k.keys[len(k.keys)-1].Changed() }

// An edition is a version of a keyring.
type edition struct {
	version  string
	revision int
}

func (e edition) String() string { return fmt.Sprintf("%s-%d", e.version, e.revision) }

// first returns the edition of a keyring that a repository does not have yet. It rises when a newer key is added, when one is extended, and
// when the oldest is left out: 2025.01.15, then 2026.11.29~2025.01.15 while there are two, then 2026.11.29.
func (k keyring) first() edition {
	const form = "2006.01.02"
	newest, oldest := k.date().UTC().Format(form), k.keys[0].Changed().UTC().Format(form)
	if newest == oldest {
		return edition{newest, 1}
	}
	return edition{newest + "~" + oldest, 1}
}

// after returns the edition of a keyring in a repository that has some packages: one that it has, if that has the same bytes, and
// otherwise one that is newer than all.
func (k keyring) after(ctx context.Context, before []apt.Entry) (edition, error) {
	first := k.first()
	last, err := apt.Newest(before, k.name)
	if err != nil || last == "" {
		return first, err
	}
	text, revision, _ := strings.Cut(last.Field("Version"), "-")
	has := edition{version: text}
	if has.revision, err = strconv.Atoi(revision); err != nil {
		return first, fmt.Errorf("%s has the version %s, and was not made by slipway", k.name, last.Field("Version"))
	}
	same, err := k.deb(ctx, has)
	if err != nil || apt.SHA256(same) == last.Field("SHA256") {
		return has, err
	}
	order, err := apt.Compare(first.String(), has.String())
	if err == nil && order <= 0 {
		has.revision++
		return has, nil
	}
	return first, err
}

// addKeyring adds the package with the keys to both repositories.
func (rs *packages) addKeyring(ctx context.Context) error {
	k, err := newKeyring(rs.version, rs.Keys)
	if err != nil {
		return err
	}
	_, before, err := rs.debsBefore(ctx)
	if err != nil {
		return err
	}
	e, err := k.after(ctx, before)
	if err != nil {
		return err
	}
	asDeb, err := k.deb(ctx, e)
	if err != nil {
		return err
	}
	asRPM, err := k.rpm(ctx, e)
	if err != nil {
		return err
	}
	if err := rs.addDeb("all", inMemory(fmt.Sprintf("%s_%s_all.deb", k.name, e), asDeb), apt.SHA256(asDeb)); err != nil {
		return err
	}
	return rs.addRPM("noarch", inMemory(fmt.Sprintf("%s-%s.noarch.rpm", k.name, e), asRPM), k.date())
}

func inMemory(name string, content []byte) packageFile {
	return packageFile{name, int64(len(content)), func() (opened, error) { return memory{bytes.NewReader(content)}, nil }}
}

type memory struct{ *bytes.Reader }

func (memory) Close() error { return nil }

func (k keyring) deb(ctx context.Context, e edition) ([]byte, error) {
	var changes, zipped bytes.Buffer
	fmt.Fprintf(&changes, "%s (%s) stable; urgency=medium\n\n  * The keys are now:\n%s\n -- %s  %s\n", k.name, e, k.list("    "),
		k.maintainer(), k.date().UTC().Format(time.RFC1123Z))
	if err := (&archive.Packer{}).Gzip(ctx, &zipped, []archive.Piece{{Data: changes.Bytes()}}); err != nil {
		return nil, err
	}
	changelog := archive.Entry{Name: k.documents() + "/changelog.Debian.gz", Mode: 0o644, Data: zipped.Bytes()}
	p := deb.Package{Name: k.name, Version: e.String(), Arch: "all", Maintainer: k.maintainer(), Section: "misc", Summary: k.summary(),
		Description: k.description(), Files: append(k.files(), changelog), Time: k.date()}
	return written(func(w io.Writer) error { return p.Write(ctx, w, "") })
}

func (k keyring) rpm(ctx context.Context, e edition) ([]byte, error) {
	p := rpm.Package{Name: k.name, Version: e.version, Release: strconv.Itoa(e.revision), Arch: "noarch", Packager: k.maintainer(),
		License: "LicenseRef-Not-Copyrightable", Summary: k.summary(), Description: k.description(), Files: k.files(),
		Changes: "- The keys are now:\n" + strings.TrimSuffix(k.list("  "), "\n"), Time: k.date()}
	return written(func(w io.Writer) error { return p.Write(ctx, w, "") })
}

func written(write func(io.Writer) error) ([]byte, error) {
	var b bytes.Buffer
	err := write(&b)
	return b.Bytes(), err
}

// maintainer returns who has the newest key.
func (k keyring) maintainer() string { return k.keys[len(k.keys)-1].User() }

func (k keyring) summary() string {
	return "OpenPGP keys of the package repositories of " + strings.TrimSuffix(k.name, site.KeyringSuffix)
}

func (k keyring) description() string {
	return fmt.Sprintf("apt and dnf check these repositories by the keys in\n/%s:\n%s", k.file, k.list("* "))
}

// list returns a line for each key, the newest first.
func (k keyring) list(indent string) string {
	var b strings.Builder
	for _, key := range slices.Backward(k.keys) {
		b.WriteString(indent + key.Fingerprint() + "\n")
	}
	return b.String()
}

func (k keyring) documents() string { return "usr/share/doc/" + k.name }

func (k keyring) files() []archive.Entry {
	return []archive.Entry{
		{Name: k.file, Mode: 0o644, Data: k.public},
		{Name: k.documents(), Mode: fs.ModeDir},
		{Name: k.documents() + "/copyright", Mode: 0o644, Data: []byte("There is no copyright in the keys in this package.\n")},
	}
}
