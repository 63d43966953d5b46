package describe

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"embed"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/sync/errgroup"

	"slipway.build/pkg/build/image"
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

// Recipe identifies the code of this package.
var Recipe = recipe.Of(sources)

// A Spec decides the description of a release, together with the contents of the files that it names. Paths are relative to the
// tree's root and separated by slashes.
type Spec struct {
	Release  release.Release // without digests and sizes, and without modules among its inputs
	Files    []File          // where artifacts are, except images and indexes
	Images   []Image         // where images are
	Layout   string          // the OCI image layout that has the indexes
	Modules  []string        // lists of linked modules, see package license
	Packages []debian.Spec   // their locks name the Debian packages in images
	Folder   string          // of the release
}

// An Image says which part of the layout holds an image artifact, see package image.
type Image struct{ Artifact, Part string }

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
	var inputs []string
	for _, f := range files {
		inputs = append(inputs, f.Path, f.SHA512)
	}
	return &action.Action{
		ID:      "checksums",
		Phase:   "checksums",
		Recipe:  recipe.Spec(files, Recipe, checksum.Recipe),
		Inputs:  inputs,
		Outputs: []string{short, long},
		Run: func(ctx context.Context, t *action.Task) error {
			// A release with checksums is of one tree that did not change during the build.
			if err := before(ctx); err != nil {
				return err
			}
			sums := checksum.Sums{}
			for _, f := range files {
				sum, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(f.SHA512)))
				if err != nil {
					return err
				}
				sums[f.Artifact] = checksum.Digest{SHA256: t.Sum(f.Path), SHA512: string(bytes.TrimSpace(sum))}
			}
			if err := os.WriteFile(t.Path(short), sums.SHA256SUMS(), 0o644); err != nil {
				return err
			}
			return os.WriteFile(t.Path(long), sums.SHA512SUMS(), 0o644)
		},
	}
}

// Action returns the action that makes release.json.
func Action(root string, s Spec) *action.Action {
	out := s.Folder + "/" + release.File
	var inputs []string
	for _, f := range s.Files {
		inputs = append(inputs, f.Path)
		if f.SHA512 != "" {
			inputs = append(inputs, f.SHA512)
		}
	}
	for _, im := range s.Images {
		inputs = append(inputs, path.Join(im.Part, image.PartFile))
	}
	if len(s.Images) > 0 {
		inputs = append(inputs, s.Layout+"/index.json")
	}
	for _, p := range s.Packages {
		inputs = append(inputs, path.Join(p.Dir, debian.LockFile))
	}
	inputs = append(inputs, s.Modules...)
	return &action.Action{
		ID:      "release.json",
		Phase:   "checksums",
		Recipe:  recipe.Spec(s, Recipe),
		Inputs:  inputs,
		Outputs: []string{out},
		Run: func(ctx context.Context, t *action.Task) error {
			d := &describer{Spec: s, root: root, sum: t.Sum, known: knownSums(t.Previous(out))}
			if err := d.describe(ctx); err != nil {
				return err
			}
			data, err := d.Release.Marshal()
			if err != nil {
				return err
			}
			// Never write a description that readers refuse.
			if _, err := release.Unmarshal(data); err != nil {
				return err
			}
			return os.WriteFile(t.Path(out), data, 0o644)
		},
	}
}

// knownSums returns the SHA-512 sums in the last run's description, by SHA-256: a compile of one binary must not cost reading half a
// gigabyte of the others.
func knownSums(file string) map[string]string {
	known := map[string]string{}
	if file == "" {
		return known
	}
	last, err := release.Read(filepath.Dir(file))
	if err != nil {
		return known
	}
	for _, a := range last.Artifacts {
		known[a.SHA256] = a.SHA512
	}
	return known
}

// A describer fills in what only the finished files can say.
type describer struct {
	Spec
	root  string
	sum   func(input string) string // SHA-256 of an input
	known map[string]string         // SHA-512 by SHA-256
}

func (d *describer) abs(path string) string { return filepath.Join(d.root, filepath.FromSlash(path)) }

func (d *describer) describe(ctx context.Context) error {
	d.Release.Artifacts = slices.Clone(d.Release.Artifacts)
	d.Release.Inputs = slices.Clone(d.Release.Inputs)
	if err := d.files(ctx); err != nil {
		return err
	}
	if err := d.images(); err != nil {
		return err
	}
	if err := d.indexes(); err != nil {
		return err
	}
	if err := d.sources(); err != nil {
		return err
	}
	slices.SortFunc(d.Release.Artifacts, func(a, b release.Artifact) int { return strings.Compare(a.Name, b.Name) })
	return nil
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
			a.SHA512, err = d.sha512(f, a.SHA256)
			return err
		})
	}
	return g.Wait()
}

// sha512 returns the SHA-512 of a file. Sum is its SHA-256.
func (d *describer) sha512(f File, sum string) (string, error) {
	if f.SHA512 != "" {
		sum, err := os.ReadFile(d.abs(f.SHA512))
		return string(bytes.TrimSpace(sum)), err
	}
	if known := d.known[sum]; known != "" {
		return known, nil
	}
	file, err := os.Open(d.abs(f.Path))
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

// sources adds the inputs that only finished parts can name: modules and Debian packages.
func (d *describer) sources() error {
	var inputs []release.Input
	for i := range d.Release.Inputs {
		if in := &d.Release.Inputs[i]; in.Kind == release.Source {
			a, err := d.artifact(in.Name)
			if err != nil {
				return err
			}
			in.SHA256 = a.SHA256
		}
	}
	var lists []string
	for _, list := range d.Modules {
		lists = append(lists, d.abs(list))
	}
	modules, err := module.ReadLists(lists...)
	if err != nil {
		return err
	}
	for _, m := range modules {
		code := m.Code()
		in := release.Input{Kind: release.Module, Name: code.Path, Version: code.Version, Sum: m.Sum}
		if code.Path != m.Path {
			in.Replaces = m.Path
		}
		inputs = append(inputs, in)
	}
	for _, p := range d.Packages {
		lock, err := debian.ReadLock(d.abs(path.Join(p.Dir, debian.LockFile)))
		if err != nil {
			return err
		}
		for _, pkg := range lock.For(p.Arch) {
			inputs = append(inputs, release.Input{
				Kind: release.Debian, Name: pkg.Name, Version: pkg.Version, Platform: platform.Platform{OS: p.OS, Arch: p.Arch}, SHA256: pkg.SHA256,
			})
		}
	}
	slices.SortFunc(inputs, func(a, b release.Input) int {
		return cmp.Or(strings.Compare(string(a.Kind), string(b.Kind)), strings.Compare(a.Name, b.Name),
			strings.Compare(a.Version, b.Version), strings.Compare(a.Platform.String(), b.Platform.String()))
	})
	d.Release.Inputs = append(d.Release.Inputs, slices.Compact(inputs)...)
	return nil
}
