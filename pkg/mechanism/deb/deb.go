package deb

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"io"
	"io/fs"
	"os"
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
var _ = recipe.Of("mechanism/deb", sources)

// A Package is what a deb says, and the files that it installs.
type Package struct {
	Name        string
	Version     string // with the revision
	Arch        string // as Debian calls it, see Arch
	Maintainer  string // "NAME <ADDRESS>"
	Section     string
	Homepage    string // may be empty
	Summary     string // a line
	Description string // more lines; may be empty

	Depends, Recommends, Conflicts []relation.Relation

	Files   []archive.Entry   // by their names in the root file system, without the first slash
	Scripts map[string]string // preinst, postinst, prerm, postrm: whole scripts
	Time    time.Time         // of everything
}

// Arch returns Debian's name for a GOARCH, or an error if it has no such port.
func Arch(goarch string) (string, error) {
	arch, ok := map[string]string{"amd64": "amd64", "arm64": "arm64", "s390x": "s390x", "ppc64le": "ppc64el", "386": "i386", "arm": "armhf",
		"riscv64": "riscv64"}[goarch]
	if !ok {
		return "", fmt.Errorf("no architecture of Debian is GOARCH %s", goarch)
	}
	return arch, nil
}

// Write writes the package. Cache is the folder of compressed contents, see package archive.
func (p *Package) Write(ctx context.Context, w io.Writer, cache string) error {
	data, err := os.CreateTemp("", "slipway-deb-")
	if err != nil {
		return err
	}
	defer os.Remove(data.Name())
	defer data.Close()
	packer := archive.Packer{Cache: cache, Time: p.Time}
	if err := packer.TarGz(ctx, data, p.Files); err != nil {
		return err
	}
	size, err := data.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	if _, err := data.Seek(0, io.SeekStart); err != nil {
		return err
	}
	var control bytes.Buffer
	if err := p.control(ctx, &control); err != nil {
		return err
	}
	if _, err := io.WriteString(w, "!<arch>\n"); err != nil {
		return err
	}
	for _, m := range []struct {
		name    string
		size    int64
		content io.Reader
	}{
		{"debian-binary", 4, strings.NewReader("2.0\n")},
		{"control.tar.gz", int64(control.Len()), &control},
		{"data.tar.gz", size, data},
	} {
		if _, err := fmt.Fprintf(w, "%-16s%-12d%-6d%-6d%-8s%-10d`\n", m.name, p.Time.Unix(), 0, 0, "100644", m.size); err != nil {
			return err
		}
		if _, err := io.Copy(w, m.content); err != nil {
			return err
		}
		if m.size%2 == 1 { // members begin at even bytes
			if _, err := io.WriteString(w, "\n"); err != nil {
				return err
			}
		}
	}
	return nil
}

// control writes control.tar.gz.
func (p *Package) control(ctx context.Context, w io.Writer) error {
	fields, err := p.fields()
	if err != nil {
		return err
	}
	entries := []archive.Entry{{Name: "control", Mode: 0o644, Data: []byte(fields)}}
	var conffiles strings.Builder
	for _, name := range p.names() {
		if strings.HasPrefix(name, "etc/") {
			conffiles.WriteString("/" + name + "\n")
		}
	}
	if conffiles.Len() > 0 {
		entries = append(entries, archive.Entry{Name: "conffiles", Mode: 0o644, Data: []byte(conffiles.String())})
	}
	for name, script := range p.Scripts {
		entries = append(entries, archive.Entry{Name: name, Mode: 0o755, Data: []byte(script)})
	}
	return (&archive.Packer{Time: p.Time}).TarGz(ctx, w, entries)
}

// names returns the names of regular files, sorted.
func (p *Package) names() []string {
	var names []string
	for _, e := range p.Files {
		if e.Mode.IsRegular() {
			names = append(names, e.Name)
		}
	}
	slices.Sort(names)
	return names
}

// fields returns the content of the file control.
func (p *Package) fields() (string, error) {
	size := int64(0)
	for _, e := range p.Files {
		bytes := int64(len(e.Data))
		if e.Path != "" {
			info, err := os.Stat(e.Path)
			if err != nil {
				return "", err
			}
			bytes = info.Size()
		}
		size += (bytes + 1023) >> 10
		if e.Mode&fs.ModeType != 0 {
			size++
		}
	}
	description := p.Summary
	for line := range strings.Lines(p.Description) {
		if line = strings.TrimSpace(line); line == "" {
			line = "."
		}
		description += "\n " + line
	}
	var b strings.Builder
	for _, f := range []struct{ name, value string }{
		{"Package", p.Name}, {"Version", p.Version}, {"Architecture", p.Arch}, {"Maintainer", p.Maintainer},
		{"Installed-Size", fmt.Sprint(size)}, // KiB
		{"Depends", relations(p.Depends)}, {"Recommends", relations(p.Recommends)}, {"Conflicts", relations(p.Conflicts)},
		{"Section", p.Section}, {"Priority", "optional"}, {"Homepage", p.Homepage}, {"Description", description},
	} {
		if f.value != "" {
			fmt.Fprintf(&b, "%s: %s\n", f.name, f.value)
		}
	}
	return b.String(), nil
}

// relations spells relations as Debian does: "kubernetes-cni (>= 1.2.0), mount".
func relations(all []relation.Relation) string {
	spelled := make([]string, len(all))
	for i, r := range all {
		op := r.Op
		if op == "<" || op == ">" {
			op += op
		}
		if spelled[i] = r.Name; op != "" {
			spelled[i] += " (" + op + " " + r.Version + ")"
		}
	}
	return strings.Join(spelled, ", ")
}
