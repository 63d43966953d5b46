package image

import (
	"bufio"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"slipway.build/pkg/make/license"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/archive"
	"slipway.build/pkg/mechanism/atomicfile"
	"slipway.build/pkg/mechanism/checksum"
	"slipway.build/pkg/mechanism/recipe"
)

//go:embed *.go
var sources embed.FS

var code = recipe.Of("make/image", sources)

// A Spec describes an image of a release for one platform. Paths are slash-separated and relative to the tree's root.
type Spec struct {
	Name         string   // of its files
	Program               // its licenses are found by LicenseNames
	LicenseNames []string // files that name the licenses of all modules of the program; empty: the image has no such label

	Base     string // that the program stands on; empty: the program is all there is
	Bases    string // folder that holds a folder for each base
	Packages string // tar of the files of the base's Debian packages, if it has any

	Tag         string   // that manifests have for it
	ArchiveTags []string // complete names of the image in the docker archive
	Tags        []string // complete names of the index of the image's platforms

	// Outputs: the docker archive, a file with its SHA-512 in hex, one with the tag, the folder of a part of a layout.
	Archive, SHA512, DockerTag, Part string
}

func (s Spec) inputs() []string {
	var inputs []string
	for _, b := range s.Binaries {
		inputs = append(inputs, b.File)
	}
	inputs = append(inputs, s.LicenseNames...)
	if s.Base != "" {
		inputs = append(inputs, s.Bases+"/"+s.Base+"/")
	}
	if s.Base != "" && s.Base != staticBase {
		inputs = append(inputs, s.Bases+"/"+staticBase+"/")
	}
	if s.Packages != "" {
		inputs = append(inputs, s.Packages)
	}
	return inputs
}

// Action returns the action that makes an image: as a docker archive, and as a part of an OCI layout. Both have the same
// config and so the same image ID. Compressed layers come from the archive cache.
func Action(root, cache string, s Spec) *action.Action {
	return &action.Action{
		ID:      fmt.Sprintf("image %s/%s %s", s.OS, s.Arch, s.Name),
		Phase:   "image",
		Recipe:  code.Recipe(s),
		Inputs:  s.inputs(),
		Outputs: []string{s.Archive, s.SHA512, s.DockerTag, s.Part + "/"},
		Run:     func(ctx context.Context, t *action.Task) error { return s.run(ctx, t, root, cache) },
	}
}

func (s Spec) run(ctx context.Context, t *action.Task, root, cache string) error {
	contents, base, err := s.contents(root, t.Sum)
	if err != nil {
		return err
	}
	packer := archive.Packer{Cache: cache, Time: contents.Created}
	layers, err := newLayers(contents, packer)
	if err != nil {
		return err
	}
	part := partWriter{dir: t.Path(s.Part + "/"), packer: packer}
	packed, err := part.layers(ctx, contents, layers)
	if err != nil {
		return err
	}
	if base > 0 {
		digest, err := baseDigest(contents, layers[:base], packed[:base])
		if err != nil {
			return fmt.Errorf("base %s: %w", s.Base, err)
		}
		contents.Labels[labelPrefix+"base.name"] = BaseName(s.Base)
		contents.Labels[labelPrefix+"base.digest"] = digest.String()
	}
	img, err := assemble(contents, layers)
	if err != nil {
		return err
	}
	platform := v1.Platform{OS: s.OS, Architecture: s.Arch, Variant: variant(s.Arch)}
	written, err := part.write(Part{Name: s.Name, Tags: s.Tags, Layers: packed}, img, platform)
	if err != nil {
		return err
	}
	for _, blob := range written.blobs() {
		t.SetDigest(path.Join(s.Part, blobPath(blob)), blob.Hex)
	}
	var crc uint32
	var parts []archive.Part
	sum, err := checksum.Create(t.Path(s.Archive), func(w io.Writer) (err error) {
		crc, parts, err = img.Save(ctx, w, s.ArchiveTags)
		return err
	})
	if err != nil {
		return err
	}
	t.SetDigest(s.Archive, sum.SHA256)
	if err := packer.Remember(ctx, t.Path(s.Archive), sum.SHA256, crc, parts); err != nil {
		return err
	}
	if err := os.WriteFile(t.Path(s.SHA512), []byte(sum.SHA512+"\n"), 0o644); err != nil {
		return err
	}
	return os.WriteFile(t.Path(s.DockerTag), []byte(s.Tag+"\n"), 0o644)
}

// contents reads what the image holds, and returns how many of its layers are the base's. The sums of its programs are
// known.
func (s Spec) contents(root string, sum func(file string) string) (Contents, int, error) {
	abs := func(name string) string {
		if name == "" {
			return ""
		}
		return filepath.Join(root, filepath.FromSlash(name))
	}
	base, err := Base(abs(s.Bases), s.Base, abs(s.Packages))
	if err != nil {
		return Contents{}, 0, err
	}
	p := s.Program
	p.Binaries = slices.Clone(p.Binaries)
	var files, names []string
	for i, b := range p.Binaries {
		p.Binaries[i].File, p.Binaries[i].Sum = abs(b.File), sum(b.File)
		files = append(files, abs(b.File))
	}
	for _, name := range s.LicenseNames {
		names = append(names, abs(name))
	}
	if len(names) > 0 {
		if p.Licenses, err = license.Expression(names, files); err != nil {
			return Contents{}, 0, err
		}
	}
	return Component(base, p), len(base), nil
}

// BaseName returns how images name their base. It is published nowhere: it names the folder that describes it.
func BaseName(base string) string { return "slipway.build/images/" + base }

// writeFile makes a file of what a function writes, and returns its digest.
func writeFile(name string, write func(io.Writer) error) (v1.Hash, error) {
	sum := sha256.New()
	err := atomicfile.Write(name, 0o644, func(f io.Writer) error {
		w := bufio.NewWriterSize(io.MultiWriter(f, sum), 1<<20)
		if err := write(w); err != nil {
			return err
		}
		return w.Flush()
	})
	return v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(sum.Sum(nil))}, err
}
