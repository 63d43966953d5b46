package describe

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/sync/errgroup"

	"slipway.build/pkg/make/image"
	"slipway.build/pkg/make/license"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/checksum"
	"slipway.build/pkg/mechanism/debian"
	"slipway.build/pkg/mechanism/platform"
	"slipway.build/pkg/mechanism/recipe"
	"slipway.build/pkg/release"
	"slipway.build/pkg/tree/module"
)

//go:embed *.go
var sources embed.FS

var code = recipe.Of("make/describe", sources)

// A Spec decides the draft of a release's description, together with the contents of the files that it names. Paths are relative to the
// tree's root and separated by slashes.
type Spec struct {
	Release  release.Release // without digests and sizes, and without modules and packages among its inputs
	Files    []File          // where artifacts are, except binaries, images and indexes
	Binaries []string        // files about the binaries, see [Binaries]
	Images   []Image         // where images are
	Layout   string          // the OCI image layout that has the indexes
	Licenses []string        // files that name the licenses of what binaries link, see package license
	Output   string          // the draft

	Declared map[string]string `json:",omitempty"` // licenses of Debian packages, by name, in place of those that are found
}

// Add adds an artifact.
func (s *Spec) Add(a release.Artifact) { s.Release.Artifacts = append(s.Release.Artifacts, a) }

// AddFile adds an artifact that is a file, with the path of a file that has its SHA-512.
func (s *Spec) AddFile(a release.Artifact, path, sha512 string) {
	s.Add(a)
	s.Files = append(s.Files, File{Artifact: a.Name, Path: path, SHA512: sha512})
}

// An Image says which part of the layout holds an image artifact, see package image. The locks of Packages name the Debian packages in it.
type Image struct {
	Artifact, Part string
	Packages       []debian.LicenseSpec
}

// A File says where an artifact is.
type File struct {
	Artifact string // its name
	Path     string
	SHA512   string // path of a file with its SHA-512 in hex; if empty, it is computed
}

// Checksums returns the action that makes SHA256SUMS and SHA512SUMS of some files, which the release's folder has under the names of
// their artifacts. The action calls before first, and fails if that returns an error.
func Checksums(root, folder string, files []File, before func(context.Context) error) *action.Action {
	short, long := folder+"/SHA256SUMS", folder+"/SHA512SUMS"
	return &action.Action{
		ID:      "checksums",
		Phase:   "checksums",
		Recipe:  code.Recipe(files),
		Inputs:  inputsOf(files),
		Outputs: []string{short, long},
		Run: func(ctx context.Context, t *action.Task) error {
			// A release with checksums is of one tree that did not change during the build.
			if err := before(ctx); err != nil {
				return err
			}
			sums := checksum.Sums{}
			for _, f := range files {
				long, err := f.sha512(root)
				if err != nil {
					return err
				}
				sums[f.Artifact] = checksum.Digest{SHA256: t.Sum(f.Path), SHA512: long}
			}
			if err := os.WriteFile(t.Path(short), sums.SHA256SUMS(), 0o644); err != nil {
				return err
			}
			return os.WriteFile(t.Path(long), sums.SHA512SUMS(), 0o644)
		},
	}
}

func inputsOf(files []File) []string {
	var inputs []string
	for _, f := range files {
		inputs = append(inputs, f.Path)
		if f.SHA512 != "" {
			inputs = append(inputs, f.SHA512)
		}
	}
	return inputs
}

// Draft returns the action that makes a draft of release.json. It has everything but the artifacts that are made of the draft itself. Fips
// finds the version of Go's cryptographic module that s.Release.FIPS selects.
func Draft(root string, s Spec, fips func(context.Context) (module.Pinned, error)) *action.Action {
	inputs := inputsOf(s.Files)
	for _, im := range s.Images {
		inputs = append(inputs, path.Join(im.Part, image.PartFile))
		for _, p := range im.Packages {
			inputs = append(inputs, path.Join(p.Base.Dir, debian.LockFile), p.Output)
		}
	}
	if len(s.Images) > 0 {
		inputs = append(inputs, s.Layout+"/index.json")
	}
	inputs = append(append(inputs, s.Binaries...), s.Licenses...)
	return &action.Action{
		ID:      "description",
		Phase:   "checksums",
		Recipe:  code.Recipe(s),
		Inputs:  inputs,
		Outputs: []string{s.Output},
		Run: func(ctx context.Context, t *action.Task) error {
			d := &describer{Spec: s, root: root, sum: t.Sum}
			if s.Release.FIPS != nil {
				var err error
				if d.fips, err = fips(ctx); err != nil {
					return err
				}
				declared := *s.Release.FIPS
				declared.Version = d.fips.Version.Version
				d.Release.FIPS = &declared
			}
			if err := d.describe(ctx); err != nil {
				return err
			}
			return write(t.Path(s.Output), &d.Release)
		},
	}
}

// write writes a description, but never one that readers refuse.
func write(file string, r *release.Release) error {
	slices.SortFunc(r.Artifacts, func(a, b release.Artifact) int { return strings.Compare(a.Name, b.Name) })
	data, err := r.Marshal()
	if err != nil {
		return err
	}
	if _, err := release.Unmarshal(data); err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o644)
}

// A FinalSpec describes release.json: a draft, and the artifacts that are made of it.
type FinalSpec struct {
	Draft     string
	Artifacts []release.Artifact // without digests and sizes
	Files     []File             // where they are
	Folder    string             // of the release
}

// Action returns the action that makes release.json.
func Action(root string, s FinalSpec) *action.Action {
	out := s.Folder + "/" + release.File
	return &action.Action{
		ID:      "release.json",
		Phase:   "checksums",
		Recipe:  code.Recipe(s),
		Inputs:  append(inputsOf(s.Files), s.Draft),
		Outputs: []string{out},
		Run: func(ctx context.Context, t *action.Task) error {
			draft, err := readDraft(root, s.Draft)
			if err != nil {
				return err
			}
			d := &describer{Spec: Spec{Release: *draft, Files: s.Files}, root: root, sum: t.Sum}
			d.Release.Artifacts = append(d.Release.Artifacts, s.Artifacts...)
			if err := d.files(ctx); err != nil {
				return err
			}
			return write(t.Path(out), &d.Release)
		},
	}
}

func readDraft(root, file string) (*release.Release, error) {
	data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
	if err != nil {
		return nil, err
	}
	return release.Unmarshal(data)
}

// A describer fills in what only the finished files can say.
type describer struct {
	Spec
	root     string
	sum      func(input string) string // SHA-256 of an input
	programs map[string]program        // by the names of artifacts
	fips     module.Pinned             // Go's cryptographic module
}

func (d *describer) abs(path string) string { return filepath.Join(d.root, filepath.FromSlash(path)) }

func (d *describer) describe(ctx context.Context) error {
	d.Release.Artifacts = slices.Clone(d.Release.Artifacts)
	d.Release.Inputs = slices.Clone(d.Release.Inputs)
	if err := d.files(ctx); err != nil {
		return err
	}
	if err := d.binaries(); err != nil {
		return err
	}
	if err := d.images(); err != nil {
		return err
	}
	if err := d.indexes(); err != nil {
		return err
	}
	return d.sources()
}

// artifact returns the artifact of that name, for the caller to fill in.
func (d *describer) artifact(name string) (*release.Artifact, error) {
	for i := range d.Release.Artifacts {
		if a := &d.Release.Artifacts[i]; a.Name == name {
			return a, nil
		}
	}
	return nil, fmt.Errorf("%s: not planned", name)
}

// files fills in sizes and digests.
func (d *describer) files(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for _, f := range d.Files {
		a, err := d.artifact(f.Artifact)
		if err != nil {
			return err
		}
		g.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			info, err := os.Stat(d.abs(f.Path))
			if err != nil {
				return err
			}
			a.Size, a.SHA256 = info.Size(), d.sum(f.Path)
			a.SHA512, err = f.sha512(d.root)
			return err
		})
	}
	return g.Wait()
}

// sha512 returns the SHA-512 of a file, in hex.
func (f File) sha512(root string) (string, error) {
	if f.SHA512 != "" {
		sum, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(f.SHA512)))
		return string(bytes.TrimSpace(sum)), err
	}
	file, err := os.Open(filepath.Join(root, filepath.FromSlash(f.Path)))
	if err != nil {
		return "", err
	}
	defer file.Close()
	h := sha512.New()
	if _, err := io.Copy(h, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// images fills in the images from their parts of the layout.
func (d *describer) images() error {
	for _, im := range d.Images {
		a, err := d.artifact(im.Artifact)
		if err != nil {
			return err
		}
		part, err := image.ReadPart(d.abs(im.Part))
		if err != nil {
			return err
		}
		if err := d.manifest(a, part.Manifest); err != nil {
			return err
		}
		a.Config = part.Config.Digest.String()
		for _, l := range part.Layers {
			a.Layers = append(a.Layers, release.Layer{
				MediaType: string(types.OCILayer), Size: l.Size, Digest: l.Digest.String(), DiffID: l.DiffID.String(),
			})
		}
	}
	return nil
}

// indexes fills in the image indexes from the layout.
func (d *describer) indexes() error {
	if len(d.Images) == 0 {
		return nil
	}
	indexes, err := image.ReadIndexes(d.abs(d.Layout))
	if err != nil {
		return err
	}
	for i := range d.Release.Artifacts {
		a := &d.Release.Artifacts[i]
		if a.Kind != release.Index {
			continue
		}
		index, ok := indexes[a.Name]
		if !ok {
			return fmt.Errorf("%s: not in the layout %s", a.Name, d.Layout)
		}
		if err := d.manifest(a, index); err != nil {
			return err
		}
	}
	return nil
}

// manifest fills in the media type, size and digests of a manifest or index in the layout, and checks them against its descriptor.
func (d *describer) manifest(a *release.Artifact, of v1.Descriptor) error {
	data, err := os.ReadFile(filepath.Join(d.abs(d.Layout), "blobs", of.Digest.Algorithm, of.Digest.Hex))
	if err != nil {
		return err
	}
	short, long := sha256.Sum256(data), sha512.Sum512(data)
	a.MediaType, a.Size, a.SHA256, a.SHA512 = string(of.MediaType), of.Size, hex.EncodeToString(short[:]), hex.EncodeToString(long[:])
	if a.Size != int64(len(data)) || a.SHA256 != of.Digest.Hex {
		return fmt.Errorf("%s: the manifest in the layout is not %s", a.Name, of.Digest)
	}
	return nil
}

// sources adds the inputs that only finished parts can name, modules and Debian packages, and which artifacts have them.
func (d *describer) sources() error {
	licenses, err := license.ReadNames(d.absAll(d.Licenses)...)
	if err != nil {
		return err
	}
	for i := range d.Release.Inputs {
		switch in := &d.Release.Inputs[i]; in.Kind {
		case release.Source:
			a, err := d.artifact(in.Name)
			if err != nil {
				return err
			}
			in.SHA256, in.License = a.SHA256, licenses.Own()
		case release.Toolchain:
			in.License = licenses.Go()
		}
	}
	inputs := map[string]release.Input{} // by package URL
	has := func(a *release.Artifact, in release.Input) error {
		purl := in.PURL()
		if other, ok := inputs[purl]; !ok {
			inputs[purl] = in
		} else if other.Sum != in.Sum || other.SHA256 != in.SHA256 {
			return fmt.Errorf("%s: %s has the sum %s%s here, and %s%s elsewhere", a.Name, purl, in.Sum, in.SHA256, other.Sum, other.SHA256)
		}
		a.Inputs = append(a.Inputs, purl)
		return nil
	}
	if err := errors.Join(d.modules(licenses, has), d.packages(has)); err != nil {
		return err
	}
	for i := range d.Release.Artifacts {
		slices.Sort(d.Release.Artifacts[i].Inputs)
	}
	more := slices.SortedFunc(maps.Values(inputs), func(a, b release.Input) int {
		return cmp.Or(strings.Compare(string(a.Kind), string(b.Kind)), strings.Compare(a.Name, b.Name),
			strings.Compare(a.Version, b.Version), strings.Compare(a.Platform.String(), b.Platform.String()))
	})
	d.Release.Inputs = append(d.Release.Inputs, more...)
	return nil
}

func (d *describer) absAll(paths []string) []string {
	all := make([]string, len(paths))
	for i, p := range paths {
		all[i] = d.abs(p)
	}
	return all
}

// modules names the modules that binaries link. Each must have a license that has a name.
func (d *describer) modules(licenses license.Licenses, has func(*release.Artifact, release.Input) error) error {
	unnamed := map[string]bool{}
	for i := range d.Release.Artifacts {
		a := &d.Release.Artifacts[i]
		if version := d.programs[a.Name].FIPS; version != "" {
			if version != d.fips.Version.Version {
				return fmt.Errorf("%s is compiled with %s %s, and the tree selects %s", a.Name, module.FIPS, version, d.fips.Version.Version)
			}
			err := has(a, release.Input{Kind: release.Module, Name: module.FIPS, Version: version, Sum: d.fips.Sum, License: licenses.Go()})
			if err != nil {
				return err
			}
		}
		for _, m := range d.programs[a.Name].Modules {
			code := m.Code()
			in := release.Input{Kind: release.Module, Name: code.Path, Version: code.Version, Sum: m.Sum}
			if required := (module.Version{Path: m.Path, Version: m.Version}); required != code {
				in.Replaces = required.String()
			}
			var known bool
			if in.License, known = licenses.Module(m); !known || license.Unnamed(in.License) {
				unnamed[m.Path] = true
			}
			if err := has(a, in); err != nil {
				return err
			}
		}
	}
	if len(unnamed) > 0 {
		return fmt.Errorf("nothing recognizes the license texts of %s: read them, and say in %s under which licenses these modules are, as in "+
			"licenses: {%s: MIT}",
			strings.Join(slices.Sorted(maps.Keys(unnamed)), ", "), "release/release.yaml", slices.Min(slices.Collect(maps.Keys(unnamed))))
	}
	return nil
}

// packages names the Debian packages in images.
func (d *describer) packages(has func(*release.Artifact, release.Input) error) error {
	for _, im := range d.Images {
		a, err := d.artifact(im.Artifact)
		if err != nil {
			return err
		}
		for _, p := range im.Packages {
			lock, err := debian.ReadLock(d.abs(path.Join(p.Base.Dir, debian.LockFile)))
			if err != nil {
				return err
			}
			licenses, err := debian.ReadLicenses(d.abs(p.Output))
			if err != nil {
				return err
			}
			for _, pkg := range lock.For(p.Base.Arch) {
				in := release.Input{
					Kind: release.Debian, Name: pkg.Name, Version: pkg.Version, SHA256: pkg.SHA256,
					Source: pkg.Source(), SourceVersion: pkg.SourceVersion, Suite: lock.Suite,
					License: cmp.Or(d.Declared[pkg.Name], licenses[pkg.Name]),
				}
				if !strings.HasSuffix(pkg.Path, "_all.deb") {
					in.Platform = platform.Platform{OS: p.Base.OS, Arch: p.Base.Arch}
				}
				if err := has(a, in); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
