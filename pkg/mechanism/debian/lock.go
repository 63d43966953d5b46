package debian

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A Lock names the exact packages whose files an image has, for each of its architectures.
type Lock struct {
	Suite    string // that has the packages
	Time     string // when it had them, UTC, as archives of Debian's past name times: "20261121T131324Z"; "" if it is not known
	Packages []Package
}

// A Package is one version of a package for one architecture.
type Package struct {
	Arch    string // of the image, as Debian calls it: "ppc64el"; a package for all architectures is listed for each
	Name    string
	Version string
	Size    int64  // bytes
	SHA256  string // in hex
	Archive string // that has it: Main or Security
	Path    string // below the archive's root: pool/main/i/iptables/iptables_1.8.11-2_amd64.deb

	SourceVersion string // of the source package, if it is not Version: 5.2.37-2 for a 5.2.37-2+b10
}

// The archives, by the names that archives of Debian's past have for them.
const (
	Main     = "debian"          // a release as its last point release left it
	Security = "debian-security" // fixes since then
)

// Source returns the name of the source package that a package is built from: an archive keeps both in the same folder.
func (p Package) Source() string { return path.Base(path.Dir(p.Path)) }

const lockHead = `# Debian packages, by exact version: made by %s of packages.txt, not to be edited.
# Columns: architecture, package, version, size, SHA-256, archive, path in it, version of the source if it differs.
`

var (
	lockTime    = regexp.MustCompile(`^\d{8}T\d{6}Z$`)
	suiteName   = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)
	packageName = regexp.MustCompile(`^[a-z0-9][a-z0-9+.-]+$`)
)

// ReadLock reads a lock from a file.
func ReadLock(file string) (*Lock, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	l := &Lock{}
	seen := map[[2]string]bool{}
	n := 0
	for line := range strings.Lines(string(data)) {
		n++
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if l.Suite == "" {
			if len(fields) != 2 || fields[0] != "suite" || !suiteName.MatchString(fields[1]) {
				return nil, fmt.Errorf("%s:%d: want a line like \"suite trixie\" before the packages", file, n)
			}
			l.Suite = fields[1]
			continue
		}
		if len(fields) == 2 && fields[0] == "time" && l.Time == "" && lockTime.MatchString(fields[1]) {
			l.Time = fields[1]
			continue
		}
		p, err := parsePackage(fields)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, n, err)
		}
		if key := [2]string{p.Arch, p.Name}; seen[key] {
			return nil, fmt.Errorf("%s:%d: duplicate package %s for %s", file, n, p.Name, p.Arch)
		} else {
			seen[key] = true
		}
		l.Packages = append(l.Packages, p)
	}
	if len(l.Packages) == 0 {
		return nil, fmt.Errorf("%s: no packages", file)
	}
	return l, nil
}

func parsePackage(fields []string) (Package, error) {
	if len(fields) == 6 { // as locks were when there was one archive
		fields = slices.Insert(fields, 5, Main)
	}
	if len(fields) != 7 && len(fields) != 8 {
		return Package{}, fmt.Errorf("a package has 7 or 8 columns, not %d", len(fields))
	}
	p := Package{Arch: fields[0], Name: fields[1], Version: fields[2], SHA256: fields[4], Archive: fields[5], Path: fields[6]}
	if len(fields) == 8 {
		p.SourceVersion = fields[7]
	}
	var err error
	if p.Size, err = strconv.ParseInt(fields[3], 10, 64); err != nil || p.Size <= 0 || p.Size > maxPackage {
		return Package{}, fmt.Errorf("%q is not a size in bytes, up to %d", fields[3], maxPackage)
	}
	if sum, err := hex.DecodeString(p.SHA256); err != nil || len(sum) != 32 || strings.ToLower(p.SHA256) != p.SHA256 {
		return Package{}, fmt.Errorf("%q is not a SHA-256 in hex", p.SHA256)
	}
	if !packageName.MatchString(p.Name) {
		return Package{}, fmt.Errorf("%q is not a package's name", p.Name)
	}
	if p.Archive != Main && p.Archive != Security {
		return Package{}, fmt.Errorf("%q is no archive: it can be %s or %s", p.Archive, Main, Security)
	}
	if path.Clean("/"+p.Path) != "/"+p.Path || !strings.HasPrefix(p.Path, "pool/") || path.Ext(p.Path) != ".deb" {
		return Package{}, fmt.Errorf("%q is not a path in an archive, pool/….deb", p.Path)
	}
	return p, nil
}

// Marshal returns a lock in the form that ReadLock reads. By is the command that makes such files; a comment names it.
func (l *Lock) Marshal(by string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, lockHead+"suite %s\n", by, l.Suite)
	if l.Time != "" {
		fmt.Fprintf(&b, "time %s\n", l.Time)
	}
	for _, p := range l.Packages {
		line := fmt.Sprintf("%s %s %s %d %s %s %s %s", p.Arch, p.Name, p.Version, p.Size, p.SHA256, p.Archive, p.Path, p.SourceVersion)
		b.WriteString(strings.TrimSpace(line) + "\n")
	}
	return b.Bytes()
}

// For returns the packages for an architecture, by Go's name.
func (l *Lock) For(goarch string) []Package {
	var found []Package
	for _, p := range l.Packages {
		if p.Arch == Arch(goarch) {
			found = append(found, p)
		}
	}
	return found
}

// Distribution names the release of Debian that a suite is, as scanners and package URLs do: debian-13. It is "" if the suite is none of
// those at https://www.debian.org/releases/.
func Distribution(suite string) string {
	numbers := map[string]string{"bullseye": "11", "bookworm": "12", "trixie": "13", "forky": "14", "duke": "15"}
	if number := numbers[suite]; number != "" {
		return "debian-" + number
	}
	return ""
}

// Arch returns Debian's name of an architecture of Go's.
func Arch(goarch string) string {
	switch goarch {
	case "386":
		return "i386"
	case "arm":
		return "armhf"
	case "ppc64le":
		return "ppc64el"
	}
	return goarch
}
