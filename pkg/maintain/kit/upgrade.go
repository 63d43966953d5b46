package kit

import (
	"bytes"
	"path"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"

	"slipway.build/pkg/tree/catalog"
)

// An Upgrade says what becomes of a distribution when its toolchain moves from one kit to another.
type Upgrade struct {
	Write  map[string]File // with their new content
	Remove []string

	Merged    []string // files that both the kit and the distribution had changed, in different places
	Conflicts []string // in the same places: Write has both
}

// Merge merges the changes from one text to another into a third one. It reports whether it could; if not, merged has both where they
// conflict.
type Merge func(theirs, old, new []byte) (merged []byte, clean bool, err error)

// NewUpgrade returns what becomes of the files of a distribution. Theirs returns one, and whether there is one. Versions of what a release
// is made of stay: a bump moves them.
func NewUpgrade(old, new []File, theirs func(name string) ([]byte, bool, error), merge Merge) (*Upgrade, error) {
	u := &Upgrade{Write: map[string]File{}}
	was := map[string]File{}
	for _, f := range old {
		was[f.Name] = f
	}
	is := map[string]bool{}
	for _, f := range new {
		is[f.Name] = true
		before, had := was[f.Name]
		have, exists, err := theirs(f.Name)
		if err != nil {
			return nil, err
		}
		switch {
		case had && !exists, exists && had && isVersions(f.Name):
			continue // they removed it; bumps move it
		case f.Name == catalog.File:
			f.Data = withoutMoves(before.Data, f.Data)
		case f.Name == catalog.KubeadmDefaults && !exists: // new in this kit
			declared, _, err := theirs(catalog.File)
			if err != nil {
				return nil, err
			}
			if m := registry.FindSubmatch(declared); m != nil {
				f.Data = ofRegistry(f.Data, string(m[2]))
			}
		case f.Name == "go.mod":
			if f.Data, err = tooled(have, before.Data, f.Data); err != nil {
				return nil, err
			}
		case f.Name == "go.sum":
			f.Data = summed(have, before.Data, f.Data)
		}
		switch {
		case f.Name == "go.mod", f.Name == "go.sum", f.Name == "build/targets.mk", !exists, bytes.Equal(have, before.Data):
			if !bytes.Equal(have, f.Data) {
				u.Write[f.Name] = f
			}
		case bytes.Equal(have, f.Data), bytes.Equal(before.Data, f.Data):
		default:
			merged, clean, err := merge(have, before.Data, f.Data)
			if err != nil {
				return nil, err
			}
			f.Data = merged
			u.Write[f.Name] = f
			if clean {
				u.Merged = append(u.Merged, f.Name)
			} else {
				u.Conflicts = append(u.Conflicts, f.Name)
			}
		}
	}
	for _, f := range old {
		have, exists, err := theirs(f.Name)
		if err != nil {
			return nil, err
		}
		if exists && !is[f.Name] && bytes.Equal(have, f.Data) { // what they have changed stays
			u.Remove = append(u.Remove, f.Name)
		}
	}
	return u, nil
}

// isVersions reports whether a file has versions of what a release is made of, and not much else.
func isVersions(name string) bool {
	base := path.Base(name)
	return strings.Contains(name, "/") && slices.Contains([]string{"go.mod", "go.sum", "debian.lock"}, base)
}

// version is a value of release.yaml that bumps move.
var version = regexp.MustCompile(
	`((?:^|[{ ])(?:version|created|revision|(?:linux|darwin|windows)-\w+): (?:&\w+ )?)("[^"]*"|[^,}\s]+)`)

// withoutMoves returns the new text of release.yaml with the versions of the old one, line by line and item by item, where only these
// differ.
func withoutMoves(old, new []byte) []byte {
	same := func(text string) string { return version.ReplaceAllString(text, "$1") }
	had := map[string]string{}
	for line := range strings.Lines(string(old)) {
		had[same(line)] = line
	}
	var b strings.Builder
	for line := range strings.Lines(string(new)) {
		if was, ok := had[same(line)]; ok {
			line = was
		}
		b.WriteString(line)
	}
	return []byte(b.String())
}

// tooled returns the go.mod of a kit with what a distribution requires besides the kit before.
func tooled(theirs, old, new []byte) ([]byte, error) {
	var parsed [3]*modfile.File
	for i, data := range [][]byte{theirs, old, new} {
		var err error
		if parsed[i], err = modfile.Parse("go.mod", data, nil); err != nil {
			return nil, err
		}
	}
	has := func(m *modfile.File, path string) bool {
		return slices.ContainsFunc(m.Require, func(r *modfile.Require) bool { return r.Mod.Path == path })
	}
	made := parsed[2]
	for _, r := range parsed[0].Require {
		if !has(parsed[1], r.Mod.Path) && !has(made, r.Mod.Path) {
			made.AddNewRequire(r.Mod.Path, r.Mod.Version, r.Indirect)
		}
	}
	made.SetRequireSeparateIndirect(slices.Clone(made.Require))
	made.Cleanup()
	return made.Format()
}

// summed returns the lines of a kit's go.sum with those that a distribution has besides the kit before.
func summed(theirs, old, new []byte) []byte {
	var lines []string
	before := strings.SplitAfter(string(old), "\n")
	for line := range strings.Lines(string(theirs)) {
		if !slices.Contains(before, line) {
			lines = append(lines, line)
		}
	}
	lines = append(lines, slices.Collect(strings.Lines(string(new)))...)
	slices.Sort(lines)
	return []byte(strings.Join(slices.Compact(lines), ""))
}
