package diff

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/mechanism/platform"
	"slipway.build/pkg/release"
	"slipway.build/pkg/release/sbom"
)

// rank orders the files of a release: those that speak about others are compared when it is known how the others differ.
func rank(name string) int {
	switch {
	case name == release.File:
		return 2
	case isSums(name):
		return 1
	}
	return 0
}

// descriptions compares two release.json. Sizes and digests of an artifact may differ if the artifact itself, or what it consists of,
// was compared and is equivalent. Nothing else may differ, except for sums of modules that one side does not know.
func (c *walker) descriptions(a, b member, f *File) error {
	x, err := readDescription(a)
	if err != nil {
		return err
	}
	y, err := readDescription(b)
	if err != nil {
		return err
	}
	verdicts := c.verdicts(x)
	var differ, expected []string
	for _, was := range x.Artifacts {
		is, ok := y.Artifact(was.Name)
		switch {
		case !ok:
			differ = append(differ, was.Name+" only in A")
		case cmp.Equal(was, is):
		case cmp.Equal(withoutDigests(was), withoutDigests(is)) && verdicts[was.Name] == Equivalent:
			expected = append(expected, was.Name)
		default:
			differ = append(differ, was.Name)
		}
	}
	for _, is := range y.Artifacts {
		if _, ok := x.Artifact(is.Name); !ok {
			differ = append(differ, is.Name+" only in B")
		}
	}
	f.addAll(Different, "artifacts", "%d are described in another way", differ)
	f.addAll(Equivalent, "artifacts", "%d are equivalent, and described by their own digests", expected)
	c.inputs(x, y, verdicts, f)
	x.Artifacts, y.Artifacts, x.Inputs, y.Inputs = nil, nil, nil, nil
	if diff := cmp.Diff(x, y); diff != "" {
		f.add(Different, "release", "versions, settings or platforms differ")
	}
	if len(f.Reasons) == 0 {
		f.add(Different, "content", "the same description, written in another way")
	}
	return nil
}

// derived compares two bills of materials, each of which follows from the release.json of its side. If both do so, they differ in nothing
// that does not differ there.
func (c *walker) derived(name string, a, b member, f *File) error {
	for _, side := range []struct {
		dir string
		of  member
	}{{c.report.A, a}, {c.report.B, b}} {
		data, err := side.of.read()
		if err != nil {
			return err
		}
		r, err := release.Read(side.dir)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, release.ErrInvalid) {
			f.add(Different, "content", "%s has no %s that it could be made of", side.dir, release.File)
			return nil
		}
		if err != nil {
			return err
		}
		artifact, _ := r.Artifact(name)
		made, err := sbom.Make(r, artifact, func() ([]sbom.File, error) {
			of, _ := r.Artifact(artifact.Of[0])
			source, err := os.Open(filepath.Join(side.dir, filepath.FromSlash(of.Path)))
			if err != nil {
				return nil, err
			}
			defer source.Close()
			return sbom.Members(source)
		})
		if err != nil || !bytes.Equal(made, data) {
			f.add(Different, "content", "that of %s does not follow from its %s", side.dir, release.File)
			return nil
		}
	}
	f.add(Equivalent, "content", "each follows from its %s", release.File)
	return nil
}

func isSBOM(name string) bool {
	return strings.HasSuffix(name, ".spdx.json") || strings.HasSuffix(name, ".cdx.json")
}

func readDescription(m member) (*release.Release, error) {
	data, err := m.read()
	if err != nil {
		return nil, err
	}
	return release.Unmarshal(data)
}

// withoutDigests returns what an artifact is, apart from its content.
func withoutDigests(a release.Artifact) release.Artifact {
	a.Size, a.SHA256, a.SHA512, a.Config, a.Layers = 0, "", "", "", nil
	return a
}

// verdicts returns how artifacts differ, where they were compared: files of the folder, members of tarballs, and what consists of
// such.
func (c *walker) verdicts(of *release.Release) map[string]Verdict {
	files := map[string]Verdict{}
	for _, file := range c.report.Files {
		parts := strings.Split(file.Name, ":")
		for i := range parts {
			name := strings.Join(parts[:i+1], ":")
			files[name] = max(files[name], file.Verdict)
		}
	}
	verdicts := map[string]Verdict{}
	for _, a := range of.Artifacts {
		if v, ok := files[a.Path]; ok && a.Path != "" {
			verdicts[a.Name] = v
		}
		for _, m := range a.Members {
			if v, ok := files[a.Path+":"+m.Path]; ok {
				verdicts[m.Artifact] = max(verdicts[m.Artifact], v)
			}
		}
	}
	for _, a := range of.Artifacts { // an image differs as its archive does
		if v, ok := verdicts[a.Name]; ok && a.Kind == release.Archive {
			for _, name := range a.Of {
				verdicts[name] = v
			}
		}
	}
	for _, a := range of.Artifacts {
		if a.Kind != release.Index {
			continue
		}
		for _, name := range a.Of {
			verdicts[a.Name] = max(verdicts[a.Name], verdicts[name])
		}
	}
	return verdicts
}

// inputs compares what two releases were made from.
func (c *walker) inputs(x, y *release.Release, verdicts map[string]Verdict, f *File) {
	type named struct {
		kind                    release.InputKind
		name, version, replaces string
		on                      platform.Platform
	}
	key := func(in release.Input) named { return named{in.Kind, in.Name, in.Version, in.Replaces, in.Platform} }
	var differ, unknown []string
	name := func(in release.Input) string { return strings.TrimSuffix(in.Name+"@"+in.Version, "@") }
	for _, was := range x.Inputs {
		at := slices.IndexFunc(y.Inputs, func(in release.Input) bool { return key(in) == key(was) })
		switch {
		case at < 0:
			differ = append(differ, name(was)+" only in A")
		case cmp.Equal(y.Inputs[at], was):
		case was.Kind == release.Source && verdicts[was.Name] == Equivalent:
		case was.Kind == release.Module && (was.Sum == "" || y.Inputs[at].Sum == ""):
			unknown = append(unknown, name(was))
		default:
			differ = append(differ, name(was))
		}
	}
	for _, is := range y.Inputs {
		if !slices.ContainsFunc(x.Inputs, func(in release.Input) bool { return key(in) == key(is) }) {
			differ = append(differ, name(is)+" only in B")
		}
	}
	f.addAll(Different, "inputs", "%d differ", differ)
	f.addAll(Equivalent, "module sums", "%d are recorded on one side only", unknown)
}
