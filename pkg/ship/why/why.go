package why

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"slipway.build/pkg/mechanism/checksum"
	"slipway.build/pkg/mechanism/platform"
	"slipway.build/pkg/mechanism/suggest"
	"slipway.build/pkg/mechanism/unpack"
	"slipway.build/pkg/release"
)

// An Answer says where something in a release comes from.
type Answer struct {
	Release string `json:"release"`
	Commit  string `json:"commit,omitempty"`
	Name    string `json:"name"`             // of the artifact
	Member  string `json:"member,omitempty"` // of the file in it that was asked for

	Kind     release.Kind      `json:"kind,omitempty"` // of the artifact that it is; empty if it is none
	Platform platform.Platform `json:"platform,omitzero"`
	SHA256   string            `json:"sha256,omitempty"`
	Link     string            `json:"link,omitempty"`    // where it leads, if it is a symbolic link
	Action   string            `json:"action,omitempty"`  // that made it, or packed it
	Package  string            `json:"package,omitempty"` // of a binary: its main package
	Flags    []string          `json:"flags,omitempty"`   // of a binary's compile
	Layer    string            `json:"layer,omitempty"`   // of an image: digest of the one that has the file
	Source   string            `json:"source,omitempty"`  // the file of the source tarball that it is
	License  string            `json:"license,omitempty"` // the module whose license text it is
	Debian   *release.Input    `json:"debian,omitempty"`  // the package that it is from

	Inputs []release.Input `json:"inputs,omitempty"` // what it was made of
	In     []Place         `json:"in,omitempty"`     // where it stands
}

// A Place is where an artifact stands: in another one, as a member of that.
type Place struct {
	Artifact string `json:"artifact"`
	Member   string `json:"member,omitempty"`
}

func (p Place) String() string {
	if p.Member == "" {
		return p.Artifact
	}
	return p.Member + " in " + p.Artifact
}

// File answers for an artifact of the release in a folder, or for a file in one, a tarball or an image. Artifacts are called by their
// names, and images by those of their indexes, too, if they are for one platform. An unknown name is an error with near names.
func File(ctx context.Context, dir string, r *release.Release, name, member string) (*Answer, error) {
	w := &world{r, dir, release.OriginsOf(r)}
	a, err := w.find(name)
	if err != nil {
		return nil, err
	}
	if member == "" {
		return w.about(a)
	}
	member = clean(member)
	switch a.Kind {
	case release.Tarball:
		return w.member(ctx, a, member)
	case release.Image, release.Archive:
		return w.layered(ctx, a, member)
	case release.Index:
		return nil, fmt.Errorf("%s is for several platforms: name %s", a.Name, suggest.Enumerate(a.Of, "or"))
	}
	return nil, fmt.Errorf("%s is no tarball and no image, so it has no files in it", a.Name)
}

// clean returns a member's name without what is before it in some listings: ./ or a slash.
func clean(member string) string { return strings.TrimPrefix(path.Clean("/"+member), "/") }

// world is what questions are about.
type world struct {
	*release.Release
	dir     string
	origins *release.Origins
}

// find finds an artifact by its name, its path or the end of its name.
func (w *world) find(name string) (release.Artifact, error) {
	if a, ok := w.Artifact(name); ok {
		return w.single(a), nil
	}
	var names []string
	var found []release.Artifact
	for _, a := range w.Artifacts {
		names = append(names, a.Name, path.Base(a.Name))
		if strings.HasSuffix(a.Name, "/"+name) {
			found = append(found, a)
		}
	}
	if len(found) == 1 {
		return w.single(found[0]), nil
	}
	if len(found) > 1 {
		var all []string
		for _, a := range found {
			all = append(all, a.Name)
		}
		return release.Artifact{}, fmt.Errorf("%s may be %s: name one of them", name, suggest.Enumerate(all, "or"))
	}
	for _, in := range w.Inputs {
		if in.Kind == release.Module {
			names = append(names, in.Name)
		}
	}
	return release.Artifact{}, fmt.Errorf("release %s has no %s%s", w.Version, name, suggest.DidYouMean(suggest.Near(name, names)))
}

// single returns an index's image if it has only one, and other artifacts as they are.
func (w *world) single(a release.Artifact) release.Artifact {
	if a.Kind == release.Index && len(a.Of) == 1 {
		if image, ok := w.Artifact(a.Of[0]); ok {
			return image
		}
	}
	return a
}

// about answers for an artifact.
func (w *world) about(a release.Artifact) (*Answer, error) {
	inputs, err := w.origins.Of(a)
	if err != nil {
		return nil, err
	}
	return &Answer{
		Release: w.Version, Commit: w.Commit, Name: a.Name, Kind: a.Kind, Platform: a.Platform, SHA256: a.SHA256,
		Action: a.Action, Package: a.Package, Flags: a.Flags, Inputs: inputs, In: w.places(a),
	}, nil
}

// places returns where an artifact stands.
func (w *world) places(a release.Artifact) []Place {
	var places []Place
	for _, other := range w.Artifacts {
		members := 0
		for _, m := range other.Members {
			if m.Artifact == a.Name {
				places = append(places, Place{other.Name, m.Path})
				members++
			}
		}
		if members == 0 && other.Kind != release.Sums && other.Kind != release.SBOM && slices.Contains(other.Of, a.Name) {
			places = append(places, Place{Artifact: other.Name})
		}
	}
	return places
}

// member answers for a member of a tarball: another artifact, or else a file that is read.
func (w *world) member(ctx context.Context, a release.Artifact, member string) (*Answer, error) {
	for _, m := range a.Members {
		if m.Path == member {
			inside, _ := w.Artifact(m.Artifact)
			answer, err := w.about(inside)
			if err != nil {
				return nil, err
			}
			answer.Name, answer.Member = a.Name, member
			return answer, nil
		}
	}
	sum, link, err := w.read(ctx, a, member)
	if err != nil {
		return nil, err
	}
	answer := &Answer{
		Release: w.Version, Commit: w.Commit, Name: a.Name, Member: member, Platform: a.Platform, SHA256: sum, Link: link, Action: a.Action,
	}
	for _, in := range w.Inputs {
		if in.Kind == release.Source {
			answer.Inputs = append(answer.Inputs, in)
		}
	}
	if answer.License = w.licensed(member); answer.License != "" || sum == "" {
		return answer, nil
	}
	answer.Source, err = w.source(ctx, a, sum, member)
	return answer, err
}

// licensed returns the module that a file of a LICENSES folder is the license of, with its version if the release has only one, or "".
func (w *world) licensed(member string) string {
	_, below, ok := strings.Cut(member, "/LICENSES/")
	if !ok {
		return ""
	}
	_, below, ok = strings.Cut("/"+below, "/vendor/")
	if !ok {
		return ""
	}
	longest, version := "", "" // the version stays empty once there are two
	for _, in := range w.Inputs {
		if in.Kind != release.Module {
			continue
		}
		name := in.Name
		if in.Replaces != "" {
			name, _, _ = strings.Cut(in.Replaces, "@")
		}
		switch {
		case !strings.HasPrefix(below, name+"/") || len(name) < len(longest):
		case name == longest && in.Version != version:
			version = ""
		default:
			longest, version = name, in.Version
		}
	}
	if version != "" {
		longest += "@" + version
	}
	return longest
}

// source returns the file of the source tarball that has a digest: of several, that with the name most like a member's. The tarball need
// not be there.
func (w *world) source(ctx context.Context, of release.Artifact, sum, member string) (string, error) {
	for _, in := range w.Inputs {
		a, ok := w.Artifact(in.Name)
		if in.Kind != release.Source || !ok || a.Name == of.Name {
			continue
		}
		var same []string
		for m, err := range unpack.MembersOf(ctx, w.path(a)) {
			if errors.Is(err, fs.ErrNotExist) {
				break
			}
			if err != nil {
				return "", err
			}
			if got, _, err := checksum.SHA256(m); err != nil {
				return "", err
			} else if got == sum && isFile(m) {
				same = append(same, clean(m.Name))
			}
		}
		slices.SortStableFunc(same, func(x, y string) int { return cmp.Compare(common(y, member), common(x, member)) })
		if len(same) > 0 {
			return same[0], nil
		}
	}
	return "", nil
}

// common returns how many elements at the end of two paths are the same.
func common(a, b string) int {
	x, y := strings.Split(a, "/"), strings.Split(b, "/")
	n := 0
	for n < min(len(x), len(y)) && x[len(x)-1-n] == y[len(y)-1-n] {
		n++
	}
	return n
}

// layered answers for a file of an image, or of an image's archive.
func (w *world) layered(ctx context.Context, a release.Artifact, member string) (*Answer, error) {
	image := a
	if a.Kind == release.Archive {
		if len(a.Of) != 1 {
			return nil, fmt.Errorf("%s: release.json does not name its image", a.Name)
		}
		image, _ = w.Artifact(a.Of[0])
	}
	files, err := w.inImage(ctx, image, member)
	if err != nil {
		return nil, err
	}
	found, ok := files.files[member]
	if !ok {
		return nil, fmt.Errorf("%s has no file %s%s", image.Name, member, suggest.DidYouMean(suggest.Near(member, files.names)))
	}
	answer := &Answer{
		Release: w.Version, Commit: w.Commit, Name: image.Name, Member: member, Platform: image.Platform,
		SHA256: found.sum, Link: found.link, Layer: found.layer, Action: image.Action,
	}
	for _, name := range image.Of {
		if program, _ := w.Artifact(name); program.SHA256 == found.sum && found.sum != "" {
			if answer, err = w.about(program); err == nil {
				answer.Name, answer.Member, answer.Layer = image.Name, member, found.layer
			}
			return answer, err
		}
	}
	if owner := files.owner(member); owner != "" {
		inputs, err := w.origins.Of(image)
		if err != nil {
			return nil, err
		}
		for _, in := range inputs {
			if in.Kind == release.Debian && in.Name == owner {
				answer.Debian = &in
			}
		}
	}
	if answer.Debian == nil && found.sum != "" {
		if answer.Source, err = w.source(ctx, release.Artifact{}, found.sum, member); err != nil {
			return nil, err
		}
	}
	for _, other := range w.Artifacts { // the images of that layer
		if other.Name != image.Name && slices.ContainsFunc(other.Layers, func(l release.Layer) bool { return l.Digest == found.layer }) {
			answer.In = append(answer.In, Place{other.Name, member})
		}
	}
	return answer, nil
}

// path returns the path of an artifact that is a file of the folder.
func (w *world) path(a release.Artifact) string {
	return filepath.Join(w.dir, filepath.FromSlash(a.Path))
}
