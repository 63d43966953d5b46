// Package yum writes and reads the metadata of a repository of rpms, as dnf wants them: three lists of packages, and repomd.xml, which
// names them by digest. See createrepo_c(8), which makes the same of a folder of rpms; here, a package is added to lists that are there.
//
// What must never be in here: which packages a repository has, where it is, and who signs it.
package yum

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"slipway.build/pkg/mechanism/rpm"
)

// An Entry is a package in the three lists, as elements of XML.
type Entry struct {
	Location                    string // of its file, relative to the repository
	Size                        int64  // of that, in bytes
	SHA256                      string // of that
	Primary, Filelists, Changes string
}

// lists are the three lists.
var lists = []struct {
	name, root, element string
	of                  func(*Entry) *string
}{
	{"primary", `<metadata xmlns="http://linux.duke.edu/metadata/common" xmlns:rpm="http://linux.duke.edu/metadata/rpm" packages="%d">`,
		"metadata", func(e *Entry) *string { return &e.Primary }},
	{"filelists", `<filelists xmlns="http://linux.duke.edu/metadata/filelists" packages="%d">`, "filelists",
		func(e *Entry) *string { return &e.Filelists }},
	{"other", `<otherdata xmlns="http://linux.duke.edu/metadata/other" packages="%d">`, "otherdata",
		func(e *Entry) *string { return &e.Changes }},
}

type version struct {
	Epoch   string `xml:"epoch,attr"`
	Version string `xml:"ver,attr"`
	Release string `xml:"rel,attr"`
}

type dependency struct {
	Name    string `xml:"name,attr"`
	Flags   string `xml:"flags,attr,omitempty"`
	Epoch   string `xml:"epoch,attr,omitempty"`
	Version string `xml:"ver,attr,omitempty"`
	Release string `xml:"rel,attr,omitempty"`
	Before  string `xml:"pre,attr,omitempty"`
}

type dependencies struct {
	Entries []dependency `xml:"rpm:entry"`
}

type file struct {
	Type string `xml:"type,attr,omitempty"`
	Name string `xml:",chardata"`
}

type primary struct {
	XMLName  xml.Name `xml:"package"`
	Type     string   `xml:"type,attr"`
	Name     string   `xml:"name"`
	Arch     string   `xml:"arch"`
	Version  version  `xml:"version"`
	Checksum struct {
		Type string `xml:"type,attr"`
		ID   string `xml:"pkgid,attr"`
		Sum  string `xml:",chardata"`
	} `xml:"checksum"`
	Summary     string `xml:"summary"`
	Description string `xml:"description"`
	Packager    string `xml:"packager"`
	URL         string `xml:"url"`
	Time        struct {
		File  int64 `xml:"file,attr"`
		Build int64 `xml:"build,attr"`
	} `xml:"time"`
	Size struct {
		Package   int64 `xml:"package,attr"`
		Installed int64 `xml:"installed,attr"`
		Archive   int64 `xml:"archive,attr"`
	} `xml:"size"`
	Location struct {
		Href string `xml:"href,attr"`
	} `xml:"location"`
	Format struct {
		License string `xml:"rpm:license"`
		Vendor  string `xml:"rpm:vendor"`
		Group   string `xml:"rpm:group"`
		Host    string `xml:"rpm:buildhost"`
		Source  string `xml:"rpm:sourcerpm"`
		Range   struct {
			Start int64 `xml:"start,attr"`
			End   int64 `xml:"end,attr"`
		} `xml:"rpm:header-range"`
		Provides   *dependencies `xml:"rpm:provides"`
		Requires   *dependencies `xml:"rpm:requires"`
		Conflicts  *dependencies `xml:"rpm:conflicts"`
		Recommends *dependencies `xml:"rpm:recommends"`
		Files      []file        `xml:"file"`
	} `xml:"format"`
}

type listed struct {
	XMLName xml.Name `xml:"package"`
	ID      string   `xml:"pkgid,attr"`
	Name    string   `xml:"name,attr"`
	Arch    string   `xml:"arch,attr"`
	Version version  `xml:"version"`
	Files   []file   `xml:"file"`
}

// NewEntry returns the entry of a package, of what its file says, and of where that is.
func NewEntry(f *rpm.File, location string, size int64, sum string) (Entry, error) {
	i := f.Info()
	p := primary{Type: "rpm", Name: i.Name, Arch: i.Arch, Version: version{"0", i.Version, i.Release}, Summary: i.Summary,
		Description: i.Description, Packager: i.Packager, URL: i.URL}
	p.Checksum.Type, p.Checksum.ID, p.Checksum.Sum = "sha256", "YES", sum
	p.Time.File, p.Time.Build = i.Built, i.Built
	p.Size.Package, p.Size.Installed, p.Size.Archive = size, i.Installed, i.Unpacked
	p.Location.Href = location
	p.Format.License, p.Format.Group, p.Format.Host, p.Format.Source = i.License, i.Group, i.Host, i.SourceRPM
	p.Format.Range.Start, p.Format.Range.End = f.Start, f.End
	p.Format.Provides, p.Format.Requires = depend(i.Provides), depend(i.Requires)
	p.Format.Conflicts, p.Format.Recommends = depend(i.Conflicts), depend(i.Recommends)
	all := listed{ID: sum, Name: i.Name, Arch: i.Arch, Version: p.Version}
	other := all
	for _, path := range i.Files {
		one := file{Name: path.Name}
		if path.Folder {
			one.Type = "dir"
		}
		all.Files = append(all.Files, one)
		if strings.HasPrefix(path.Name, "/etc/") || strings.Contains(path.Name, "bin/") { // that others may require by their names
			p.Format.Files = append(p.Format.Files, one)
		}
	}
	e := Entry{Location: location, Size: size, SHA256: sum}
	for to, value := range map[*string]any{&e.Primary: p, &e.Filelists: all, &e.Changes: other} {
		text, err := xml.Marshal(value)
		if err != nil {
			return Entry{}, err
		}
		*to = string(text)
	}
	return e, nil
}

func depend(some []rpm.Dependency) *dependencies {
	if len(some) == 0 {
		return nil
	}
	var all dependencies
	for _, d := range some {
		one := dependency{Name: d.Name, Flags: d.Flags, Version: d.Version, Release: d.Release}
		if d.Flags != "" {
			one.Epoch = "0"
		}
		if d.Before {
			one.Before = "1"
		}
		all.Entries = append(all.Entries, one)
	}
	return &all
}

// A Metadata is the metadata of a repository.
type Metadata struct {
	Repomd []byte            // repodata/repomd.xml
	Files  map[string][]byte // what that names, by its path in the repository
}

// Make returns the metadata of a repository of some packages, each once, sorted by location.
func Make(entries []Entry, at time.Time) Metadata {
	entries = slices.Clone(entries)
	slices.SortStableFunc(entries, func(a, b Entry) int { return strings.Compare(a.Location, b.Location) })
	entries = slices.CompactFunc(entries, func(a, b Entry) bool { return a.Location == b.Location })
	m := Metadata{Files: map[string][]byte{}}
	var repomd strings.Builder
	repomd.WriteString(xml.Header + `<repomd xmlns="http://linux.duke.edu/metadata/repo">` + "\n")
	fmt.Fprintf(&repomd, "<revision>%d</revision>\n", at.Unix())
	for _, l := range lists {
		var b strings.Builder
		b.WriteString(xml.Header)
		fmt.Fprintf(&b, l.root+"\n", len(entries))
		for i := range entries {
			b.WriteString(*l.of(&entries[i]) + "\n")
		}
		b.WriteString("</" + l.element + ">\n")
		plain := []byte(b.String())
		packed := compress(plain)
		name := "repodata/" + sum(packed) + "-" + l.name + ".xml.gz"
		m.Files[name] = packed
		fmt.Fprintf(&repomd, "<data type=%q>\n<checksum type=\"sha256\">%s</checksum>\n<open-checksum type=\"sha256\">%s</open-checksum>\n"+
			"<location href=%q/>\n<timestamp>%d</timestamp>\n<size>%d</size>\n<open-size>%d</open-size>\n</data>\n",
			l.name, sum(packed), sum(plain), name, at.Unix(), len(packed), len(plain))
	}
	repomd.WriteString("</repomd>\n")
	m.Repomd = []byte(repomd.String())
	return m
}

func sum(content []byte) string { s := sha256.Sum256(content); return hex.EncodeToString(s[:]) }

func compress(content []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(content) // a buffer takes everything
	_ = w.Close()
	return b.Bytes()
}

// maxList bounds an unpacked list, in bytes.
const maxList = 512 << 20

var (
	data = regexp.MustCompile(`(?s)<data type="(primary|filelists|other)">.*?<checksum type="sha256">([0-9a-f]{64})</checksum>.*?` +
		`<location href="([^"]+)"/>`)
	revision = regexp.MustCompile(`<revision>([0-9]+)</revision>`)
	href     = regexp.MustCompile(`<location href="([^"]*)">`)
	inBytes  = regexp.MustCompile(`<size package="([0-9]+)"`)
	pkgid    = regexp.MustCompile(`<checksum type="sha256" pkgid="YES">([0-9a-f]{64})</checksum>`)
)

// Revision returns the revision of a repomd.xml that Make wrote, in seconds since 1970, or 0.
func Revision(repomd []byte) (seconds int64) {
	if m := revision.FindSubmatch(repomd); m != nil {
		_, _ = fmt.Sscan(string(m[1]), &seconds)
	}
	return seconds
}

// ReadEntries reads the entries of a repository that Make wrote, and checks the lists by their digests. Read returns the content of a file
// in the repository.
func ReadEntries(repomd []byte, read func(name string) ([]byte, error)) ([]Entry, error) {
	found := map[string][]string{}
	for _, m := range data.FindAllStringSubmatch(string(repomd), -1) {
		packed, err := read(m[3])
		if err != nil {
			return nil, err
		}
		if sum(packed) != m[2] {
			return nil, fmt.Errorf("%s is not what repomd.xml names", m[3])
		}
		z, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m[3], err)
		}
		plain, err := io.ReadAll(io.LimitReader(z, maxList))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m[3], err)
		}
		for line := range strings.Lines(string(plain)) {
			if strings.HasPrefix(line, "<package ") {
				found[m[1]] = append(found[m[1]], strings.TrimSuffix(line, "\n"))
			}
		}
	}
	n := len(found["primary"])
	if len(found["filelists"]) != n || len(found["other"]) != n || !bytes.Contains(repomd, []byte(`<data type="primary">`)) {
		return nil, fmt.Errorf("its lists have %d, %d and %d packages, and were not made by slipway",
			n, len(found["filelists"]), len(found["other"]))
	}
	entries := make([]Entry, n)
	for i := range entries {
		e := Entry{Primary: found["primary"][i], Filelists: found["filelists"][i], Changes: found["other"][i]}
		at, id, size := href.FindStringSubmatch(e.Primary), pkgid.FindStringSubmatch(e.Primary), inBytes.FindStringSubmatch(e.Primary)
		if at == nil || id == nil || size == nil {
			return nil, fmt.Errorf("a package in it has no place, no size or no SHA-256: %.100s", e.Primary)
		}
		e.Location, e.SHA256 = at[1], id[1]
		if _, err := fmt.Sscan(size[1], &e.Size); err != nil {
			return nil, fmt.Errorf("%s: its size: %w", e.Location, err)
		}
		entries[i] = e
	}
	return entries, nil
}
