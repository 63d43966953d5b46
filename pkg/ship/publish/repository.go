package publish

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/semver"

	"slipway.build/pkg/mechanism/apt"
	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/mechanism/openpgp"
	"slipway.build/pkg/mechanism/rpm"
	"slipway.build/pkg/mechanism/yum"
	"slipway.build/pkg/release"
	"slipway.build/pkg/tree/stamp"
)

// Repositories says how packages are published.
type Repositories struct {
	Keys openpgp.Keys // that sign the indexes; nil: there are no repositories
	URL  string       // where users find the target, such as https://dl.example.com; "": unknown
	Days *int         // for which apt accepts an index, from Now; 0: forever; nil: as for the index before
	Now  time.Time
}

// maxDays bounds Days: ten years.
const maxDays = 3650

// Check returns an error if the address is none, or the days are too many.
func (q Repositories) Check() error {
	if q.Days != nil && (*q.Days < 0 || *q.Days > maxDays) {
		return badrequest.Mark(fmt.Errorf("an index is good for 1 to %d days, or, with 0, forever: not for %d", maxDays, *q.Days))
	}
	if q.URL != "" {
		return checkURL(q.URL)
	}
	return nil
}

// A packages is the two repositories of a minor version, at the paths that upstream's have: one for apt, flat, and one for dnf. They have
// the packages of all versions that were published and not withdrawn.
type packages struct {
	Repositories
	channel Channel
	folder  string // at the target, of both
	objects []Object
	debs    []apt.Entry // of the release
	rpms    []*signedRPM
	version string    // of the release
	date    time.Time // of that
	base    release.BasePackages
}

// repositoryFolder returns the folder of the repositories that have a version. Candidates are in others than releases.
func repositoryFolder(version string) string {
	class := "stable"
	if stamp.IsCandidate(version) {
		class = "prerelease"
	}
	return "core:/" + class + ":/" + semver.MajorMinor(version)
}

// A KeyError says that a key must not sign now.
type KeyError struct{ Fingerprint, Why string }

func (e *KeyError) Error() string { return "the key " + e.Fingerprint + " does not sign: " + e.Why }

// soon is how long before the end of a key somebody should hear of it.
const soon = 60 * 24 * time.Hour

// CheckKeys returns a *[KeyError] if one of the keys must not sign packages at a time, and a warning for each that expires soon.
func CheckKeys(keys openpgp.Keys, now time.Time) (warnings []string, err error) {
	for _, k := range keys {
		switch end := k.Expires(now); {
		case k.Revoked(now):
			return nil, &KeyError{k.Fingerprint(), "it was revoked: make another one"}
		case now.Before(k.Created()):
			return nil, &KeyError{k.Fingerprint(), "it was made at " + k.Created().UTC().Format(time.RFC3339) +
				", which is in the future: check the clock"}
		case !end.IsZero() && !now.Before(end):
			return nil, &KeyError{k.Fingerprint(), "it expired on " + end.UTC().Format(time.DateOnly) + ": extend it, or make another one"}
		case !k.CanSign(now):
			return nil, &KeyError{k.Fingerprint(), "none of its parts is for signatures, and neither expired nor revoked"}
		case !end.IsZero() && now.After(end.Add(-soon)):
			warnings = append(warnings, fmt.Sprintf("the key %s expires on %s: have another one sign beside it, "+
				"so that users get that before",
				k.Fingerprint(), end.UTC().Format(time.DateOnly)))
		}
	}
	return warnings, nil
}

// hasPackages reports whether a release has debs or rpms.
func hasPackages(r *release.Release) bool {
	return slices.ContainsFunc(r.Artifacts, func(a release.Artifact) bool { return a.Identity != nil })
}

// pages returns the indexes of both repositories, as they should be now, without a version that is being withdrawn, or "". What readers
// fetch first comes last.
func (rs *packages) pages(ctx context.Context, without string) ([]Page, error) {
	gone, err := rs.withdrawn(ctx, without)
	if err != nil {
		return nil, err
	}
	debs, lacks, err := rs.debPages(ctx, gone)
	if err != nil {
		return nil, err
	}
	rpms, more, err := rs.rpmPages(ctx, gone)
	if lacks = append(lacks, more...); err == nil && len(lacks) > 0 {
		err = &LackError{rs.folder, lacks}
	}
	if err != nil {
		return nil, err
	}
	users, err := rs.usersPages(ctx)
	return slices.Concat(debs, rpms, users), err
}

// A LackError says which packages of a release could not be installed from repositories, since what they need is not there.
type LackError struct {
	Folder string   // of the repositories, below the target
	Lacks  []string // as in "deb kubelet 1.37.0-1 (amd64) needs mount"
}

func (e *LackError) Error() string {
	return fmt.Sprintf("packages are not published, since %s would lack what they need:\n  %s\n"+
		"Make a release that has it, too, or, if users have it from elsewhere, one whose release.yaml lists it in basePackages",
		e.Folder, strings.Join(e.Lacks, "\n  "))
}

// withdrawn returns the names of package files of withdrawn versions, and of another one.
func (rs *packages) withdrawn(ctx context.Context, also string) (map[string]bool, error) {
	all, err := standing(ctx, rs.channel)
	if err != nil {
		return nil, err
	}
	if also != "" {
		all[also] = "now"
	}
	gone := map[string]bool{}
	for version, reason := range all {
		if reason == "" || repositoryFolder(version) != rs.folder {
			continue
		}
		r, err := published(ctx, rs.channel, version)
		if err != nil {
			return nil, err
		}
		for _, a := range r.Artifacts {
			if a.Identity != nil {
				gone[path.Base(a.Path)] = true
			}
		}
	}
	return gone, nil
}

// read reads a file of a repository, nil if there is none.
func (rs *packages) read(ctx context.Context, name string) ([]byte, error) {
	data, err := rs.channel.Read(ctx, path.Join(rs.folder, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// stranger says that a repository is not the owner's.
func (rs *packages) stranger(name string, err error) error {
	return fmt.Errorf("%s: %s: %w: add the key that has signed it, or move the repository away",
		rs.channel, path.Join(rs.folder, name), err)
}

// debPages returns the indexes for apt, and what the release's debs need and would not find.
func (rs *packages) debPages(ctx context.Context, gone map[string]bool) (_ []Page, lacks []string, err error) {
	before, there, err := rs.debsBefore(ctx)
	if err != nil {
		return nil, nil, err
	}
	entries := append(slices.Clone(rs.debs), there...)
	isGone := func(e apt.Entry) bool { return gone[path.Base(e.Field("Filename"))] }
	entries = slices.DeleteFunc(entries, isGone)
	lacks, err = apt.Lacking(slices.DeleteFunc(slices.Clone(rs.debs), isGone), entries, rs.base.Deb)
	if err != nil {
		return nil, nil, err
	}
	archs := map[string]bool{}
	for _, e := range entries {
		archs[e.Field("Architecture")] = true
	}
	index := apt.Packages(entries)
	date, until, err := rs.dates(before, index)
	if err != nil {
		return nil, nil, err
	}
	files := map[string][]byte{"Packages": index, "Packages.gz": apt.Compress(index)}
	r := apt.Release{Origin: rs.folder, Label: rs.folder, Archs: slices.Sorted(maps.Keys(archs)), Date: date, ValidUntil: until,
		Files: files}
	pages, err := rs.signedPages(ctx, files, r.Text(), date)
	return pages, lacks, err
}

// debsBefore returns what the index for apt says now, and its packages: nothing if there is none.
func (rs *packages) debsBefore(ctx context.Context) (text []byte, entries []apt.Entry, err error) {
	signed, err := rs.read(ctx, "deb/InRelease")
	if err != nil || signed == nil {
		return nil, nil, err
	}
	if text, err = rs.Keys.Open(signed); err != nil {
		return nil, nil, rs.stranger("deb/InRelease", err)
	}
	index, err := rs.named(ctx, text)
	return text, apt.ReadPackages(index), err
}

// dates returns the date of an index for apt, and until when that is good: the zero time is forever. One that ends is dated now,
// so that the same publication again makes it last longer.
func (rs *packages) dates(before, index []byte) (date, until time.Time, err error) {
	var was, end time.Time
	if before != nil {
		if was, end, err = apt.Dates(before); err != nil {
			return date, until, rs.stranger("deb/InRelease", err)
		}
	}
	valid := time.Duration(0)
	switch {
	case rs.Days != nil:
		valid = time.Duration(*rs.Days) * 24 * time.Hour
	case !end.IsZero():
		valid = end.Sub(was)
	}
	if date = rs.date; valid > 0 {
		date = rs.Now.Truncate(time.Second)
	}
	if before != nil {
		date = later(date, was, valid == 0 && end.IsZero() && apt.Names(before, "Packages", index))
	}
	if valid > 0 {
		until = date.Add(valid)
	}
	return date, until, nil
}

// later returns the date of an index: that of the index before if it is the same, and else a later one, since apt and dnf keep an index
// that is not older than what they are offered.
func later(date, was time.Time, same bool) time.Time {
	switch {
	case same:
		return was
	case date.After(was):
		return date
	}
	return was.Add(time.Second)
}

// named returns the index that a file Release names, under its digest.
func (rs *packages) named(ctx context.Context, text []byte) ([]byte, error) {
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) != 3 || len(fields[0]) != 64 || fields[2] != "Packages" {
			continue
		}
		name := "deb/by-hash/SHA256/" + fields[0]
		index, err := rs.read(ctx, name)
		if err == nil && apt.SHA256(index) != fields[0] {
			err = fmt.Errorf("%s: %s is not what InRelease names", rs.channel, path.Join(rs.folder, name))
		}
		return index, err
	}
	return nil, fmt.Errorf("%s: %s names no index", rs.channel, path.Join(rs.folder, "deb/InRelease"))
}

// signedPages returns the files of the repository for apt. Good signatures that are there stay.
func (rs *packages) signedPages(ctx context.Context, files map[string][]byte, text []byte, at time.Time) ([]Page, error) {
	inRelease, err := rs.read(ctx, "deb/InRelease")
	if err == nil {
		inRelease, err = rs.Keys.Clear(ctx, text, at, inRelease)
	}
	if err != nil {
		return nil, err
	}
	detached, err := rs.read(ctx, "deb/Release.gpg")
	if err == nil {
		detached, err = rs.Keys.Sign(ctx, text, at, detached)
	}
	if err != nil {
		return nil, err
	}
	public, err := rs.Keys.Public()
	if err != nil {
		return nil, err
	}
	var all []named
	for _, name := range slices.Sorted(maps.Keys(files)) {
		all = append(all, named{"by-hash/SHA256/" + apt.SHA256(files[name]), files[name]})
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		all = append(all, named{name, files[name]})
	}
	all = append(all, named{"Release.key", public}, named{"Release", text}, named{"Release.gpg", detached}, named{"InRelease", inRelease})
	return rs.compare(ctx, "deb", all)
}

// A named is a file of a repository.
type named struct {
	name    string
	content []byte
}

func (rs *packages) compare(ctx context.Context, dir string, files []named) ([]Page, error) {
	var pages []Page
	for _, f := range files {
		p, err := page(ctx, rs.channel, path.Join(rs.folder, dir, f.name), f.content)
		if err != nil {
			return nil, err
		}
		pages = append(pages, p)
	}
	return pages, nil
}

// rpmPages is the same for dnf.
func (rs *packages) rpmPages(ctx context.Context, gone map[string]bool) (_ []Page, lacks []string, err error) {
	entries, date := rs.entries(), rs.date
	repomd, there, err := rs.rpmsBefore(ctx)
	if err != nil {
		return nil, nil, err
	}
	entries = append(entries, there...)
	isGone := func(e yum.Entry) bool { return gone[path.Base(e.Location)] }
	entries = slices.DeleteFunc(entries, isGone)
	// What has rpm has a shell.
	lacks, err = yum.Lacking(slices.DeleteFunc(rs.entries(), isGone), entries, append(slices.Clone(rs.base.RPM), rpm.Shell))
	if err != nil {
		return nil, nil, err
	}
	if repomd != nil {
		was := time.Unix(yum.Revision(repomd), 0)
		date = later(date, was, bytes.Equal(yum.Make(entries, was).Repomd, repomd))
	}
	m := yum.Make(entries, date)
	signature, err := rs.read(ctx, "rpm/"+signatureOf(m.Repomd))
	if err == nil {
		signature, err = rs.Keys.Sign(ctx, m.Repomd, date, signature)
	}
	if err != nil {
		return nil, nil, err
	}
	public, err := rs.Keys.Public()
	if err != nil {
		return nil, nil, err
	}
	var all []named
	for _, name := range slices.Sorted(maps.Keys(m.Files)) {
		all = append(all, named{name, m.Files[name]})
	}
	all = append(all, named{signatureOf(m.Repomd), signature}, named{"repodata/repomd.xml.key", public},
		named{"repodata/repomd.xml.asc", signature}, named{"repodata/repomd.xml", m.Repomd})
	pages, err := rs.compare(ctx, "rpm", all)
	if err == nil {
		pages[len(pages)-2].together = true // dnf reads both
	}
	return pages, lacks, err
}

// rpmsBefore returns what repomd.xml says now, and the packages of the index: nothing if there is none.
func (rs *packages) rpmsBefore(ctx context.Context) (repomd []byte, entries []yum.Entry, err error) {
	repomd, err = rs.read(ctx, "rpm/repodata/repomd.xml")
	if err != nil || repomd == nil {
		return nil, nil, err
	}
	signature, err := rs.read(ctx, "rpm/"+signatureOf(repomd))
	if err == nil {
		err = rs.Keys.Check(repomd, signature)
	}
	if err != nil {
		return nil, nil, rs.stranger("rpm/repodata/repomd.xml", err)
	}
	if rs.Keys[:1].Check(repomd, signature) != nil {
		return nil, nil, fmt.Errorf("%s: rpms would be signed by the key %s, which users of %s do not have yet: until they have it, "+
			"name the key that they have first", rs.channel, rs.Keys[0].Fingerprint(), rs.folder)
	}
	entries, err = yum.ReadEntries(repomd, func(name string) ([]byte, error) {
		return rs.channel.Read(ctx, path.Join(rs.folder, "rpm", name))
	})
	if err != nil {
		return nil, nil, rs.stranger("rpm/repodata/repomd.xml", err)
	}
	return repomd, entries, nil
}

// signatureOf returns the name of a signature of a repomd.xml that stays, so that a run that ended before it had replaced both files can be
// continued. dnf reads repomd.xml.asc.
func signatureOf(repomd []byte) string { return "repodata/" + apt.SHA256(repomd) + "-repomd.xml.asc" }
