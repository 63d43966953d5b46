package rpm

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"slipway.build/pkg/mechanism/archive"
	"slipway.build/pkg/mechanism/recipe"
	"slipway.build/pkg/mechanism/relation"
)

//go:embed *.go
var sources embed.FS

// The code is in keys: it decides the bytes of packages.
var _ = recipe.Of("mechanism/rpm", sources)

// A Package is what an rpm says, and the files that it installs.
type Package struct {
	Name        string
	Version     string // without the release
	Release     string
	Arch        string // as rpm calls it, see Arch
	Packager    string // "NAME <ADDRESS>"
	License     string // SPDX expression
	URL         string // may be empty
	Summary     string // a line
	Description string

	Requires, Recommends, Conflicts []relation.Relation

	Files   []archive.Entry // by their names in the root file system, without the first slash
	Scripts Scripts
	Changes string    // what is new in this version
	Time    time.Time // of everything
}

// Scripts are what a shell runs. Empty ones are left out.
type Scripts struct {
	Pre, Post, Preun, Postun string
}

// buildHost is where every package says that it was built.
const buildHost = "localhost"

// group is that of every package. Nothing reads it any more, but checks of packages want one.
const group = "Applications/System"

// Arch returns rpm's name for a GOARCH, or an error if rpm has none.
func Arch(goarch string) (string, error) {
	arch, ok := map[string]string{"amd64": "x86_64", "arm64": "aarch64", "s390x": "s390x", "ppc64le": "ppc64le", "386": "i686",
		"arm": "armv7hl", "riscv64": "riscv64"}[goarch]
	if !ok {
		return "", fmt.Errorf("rpm has no architecture for GOARCH %s", goarch)
	}
	return arch, nil
}

// Write writes the package. Cache is the folder of compressed contents, see package archive.
func (p *Package) Write(ctx context.Context, w io.Writer, cache string) error {
	files, err := files(p.Files)
	if err != nil {
		return err
	}
	packed, err := os.CreateTemp("", "slipway-rpm-")
	if err != nil {
		return err
	}
	defer os.Remove(packed.Name())
	defer packed.Close()
	pieces, unpackedSize := payload(files, p.Time)
	sum := sha256.New()
	packer := archive.Packer{Cache: cache}
	if err := packer.Gzip(ctx, io.MultiWriter(packed, sum), pieces); err != nil {
		return err
	}
	size, err := packed.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	if _, err := packed.Seek(0, io.SeekStart); err != nil {
		return err
	}
	main := header(mainRegion, slices.Concat(p.tags(hex.EncodeToString(sum.Sum(nil))), fileTags(files, p.Time), p.relationTags()))
	digests := header(signatureRegion, []tag{
		text(273, fmt.Sprintf("%x", sha256.Sum256(main))),
		numbers(1000, uint32(int64(len(main))+size)), // bytes after this header
		numbers(1007, uint32(unpackedSize)),
	})
	digests = append(digests, make([]byte, -len(digests)&7)...)
	for _, part := range [][]byte{p.lead(), digests, main} {
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	_, err = io.Copy(w, packed)
	return err
}

// lead returns the first 96 bytes, by which programs such as file recognize an rpm: a binary package of format 3.0 with the form of
// signatures that all have.
func (p *Package) lead() []byte {
	b := append(make([]byte, 0, 96), 0xed, 0xab, 0xee, 0xdb, 3, 0, 0, 0, 0, 1)
	name := p.Name + "-" + p.Version + "-" + p.Release
	b = append(b, name[:min(len(name), 65)]...)
	b = append(b, make([]byte, 76-len(b))...)
	b = append(b, 0, 1, 0, 5)
	return b[:96]
}

// tags returns what the header says of the package as a whole. Payload is the SHA-256 of the compressed archive, in hex.
func (p *Package) tags(payload string) []tag {
	description := p.Description
	if description == "" {
		description = p.Summary + "."
	}
	tags := []tag{
		texts(100, []string{"C"}), // languages
		text(1000, p.Name), text(1001, p.Version), text(1002, p.Release),
		translated(1004, p.Summary), translated(1005, description),
		numbers(1006, uint32(p.Time.Unix())), text(1007, buildHost),
		text(1014, p.License), text(1015, p.Packager), translated(1016, group),
		text(1021, "linux"), text(1022, p.Arch),
		text(1044, p.Name+"-"+p.Version+"-"+p.Release+".src.rpm"), // one without this tag is a source package
		text(1124, "cpio"), text(1125, "gzip"), text(1126, "9"),
		numbers(1080, uint32(p.Time.Unix())), texts(1081, []string{p.Packager + " - " + p.Version + "-" + p.Release}),
		texts(1082, []string{p.Changes}),
		text(5062, "utf-8"),
		texts(5092, []string{payload}), numbers(5093, algorithm),
	}
	if p.URL != "" {
		tags = append(tags, text(1020, p.URL))
	}
	for i, script := range []string{p.Scripts.Pre, p.Scripts.Post, p.Scripts.Preun, p.Scripts.Postun} {
		if script != "" {
			tags = append(tags, text(1023+uint32(i), script), text(1085+uint32(i), Shell))
		}
	}
	return tags
}

// Shell runs scripts. A package that has scripts requires this file.
const Shell = "/bin/sh"

// algorithm is OpenPGP's number for SHA-256.
const algorithm = 8

// Flags of files.
const (
	isConfig        = 1 << 0
	isDocumentation = 1 << 1
	notReplaced     = 1 << 4
)

// fileTags returns what the header says of the files.
func fileTags(files []file, at time.Time) []tag {
	var sizes, times, flags, devices, inodes, verified, dirs []uint32
	var modes, raw []uint16
	var digests, links, root, languages, names, folders []string
	total := int64(0)
	for i, f := range files {
		dir, base := path.Split("/" + f.Name)
		folder := slices.Index(folders, dir)
		if folder < 0 {
			folder = len(folders)
			folders = append(folders, dir)
		}
		flag := uint32(0)
		switch {
		case f.mode&linkBits != fileBits:
		case strings.HasPrefix(f.Name, "etc/"):
			flag = isConfig | notReplaced
		case strings.HasPrefix(f.Name, "usr/share/doc/"):
			flag = isDocumentation
		}
		total += f.size
		sizes, times, flags = append(sizes, uint32(f.size)), append(times, uint32(at.Unix())), append(flags, flag)
		devices, inodes, verified = append(devices, 1), append(inodes, uint32(i+1)), append(verified, 0xffffffff)
		dirs, names = append(dirs, uint32(folder)), append(names, base)
		modes, raw = append(modes, f.mode), append(raw, 0)
		digests, links = append(digests, f.digest), append(links, f.Link)
		root, languages = append(root, "root"), append(languages, "")
	}
	return []tag{
		numbers(1009, uint32(total)), numbers(1028, sizes...), shorts(1030, modes), shorts(1033, raw), numbers(1034, times...),
		texts(1035, digests), texts(1036, links), numbers(1037, flags...), texts(1039, root), texts(1040, root), numbers(1045, verified...),
		numbers(1095, devices...), numbers(1096, inodes...), texts(1097, languages),
		numbers(1116, dirs...), texts(1117, names), texts(1118, folders), numbers(5011, algorithm),
	}
}

// Flags of relations.
const (
	less, greater, equal = 1 << 1, 1 << 2, 1 << 3
	interpreter          = 1 << 8
	ofScript             = 1 << 9 // and the next three bits: which script needs it
	ofRPM                = 1 << 24
)

// relationTags returns what the header says of other packages.
func (p *Package) relationTags() []tag {
	type one struct {
		relation.Relation
		flags uint32
	}
	list := func(some []relation.Relation) []one {
		var all []one
		for _, r := range some {
			flags := map[string]uint32{"<": less, "<=": less | equal, "=": equal, ">=": greater | equal, ">": greater}[r.Op]
			all = append(all, one{r, flags})
		}
		return all
	}
	requires := list(p.Requires)
	for i, script := range []string{p.Scripts.Pre, p.Scripts.Post, p.Scripts.Preun, p.Scripts.Postun} {
		if script != "" {
			requires = append(requires, one{relation.Relation{Name: Shell}, interpreter | ofScript<<i})
		}
	}
	for _, feature := range []relation.Relation{ // that an rpm must have to read this package
		{Name: "rpmlib(CompressedFileNames)", Version: "3.0.4-1"},
		{Name: "rpmlib(FileDigests)", Version: "4.6.0-1"},
		{Name: "rpmlib(PayloadFilesHavePrefix)", Version: "4.0-1"},
		{Name: "rpmlib(TildeInVersions)", Version: "4.10.0-1"},
	} {
		requires = append(requires, one{feature, ofRPM | less | equal})
	}
	provides := list([]relation.Relation{{Name: p.Name, Op: "=", Version: p.Version + "-" + p.Release}})
	var tags []tag
	for _, of := range []struct {
		all                  []one
		name, version, flags uint32
	}{
		{provides, 1047, 1113, 1112}, {requires, 1049, 1050, 1048},
		{list(p.Conflicts), 1054, 1055, 1053}, {list(p.Recommends), 5046, 5047, 5048},
	} {
		if len(of.all) == 0 {
			continue
		}
		var names, versions []string
		var flags []uint32
		for _, r := range of.all {
			names, versions, flags = append(names, r.Name), append(versions, r.Version), append(flags, r.flags)
		}
		tags = append(tags, texts(of.name, names), texts(of.version, versions), numbers(of.flags, flags...))
	}
	return tags
}
