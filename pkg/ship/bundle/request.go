package bundle

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/mechanism/platform"
	"slipway.build/pkg/mechanism/suggest"
	"slipway.build/pkg/release"
	"slipway.build/pkg/ship/site"
)

// form is that of a bundle's files which are not those of its release.
const form = 1

// All is a request's platform for all.
const All = "all"

// Server is the set of images that a cluster needs.
const Server = "server"

// A Request says what of a release is in a bundle.
type Request struct {
	Form     int      `json:"form"`
	Version  string   `json:"version"`  // of the release
	Platform string   `json:"platform"` // such as linux/amd64, or All
	Sets     []string `json:"sets"`     // whose images, such as Server
	Tarballs bool     `json:"tarballs"` // whether it has server tarballs
}

// An Image is an image under all of its names.
type Image struct {
	Names    []string           // with the registry and the tag
	Artifact release.Artifact   // an image of one platform, or the index
	Index    release.Artifact   // over all platforms
	Of       []release.Artifact // the images of the index
}

// Of returns the request for a bundle of a release. The error is a bad request if the release has no such platform or set.
func Of(r *release.Release, platform string, sets []string, tarballs bool) (Request, error) {
	q := Request{form, r.Version, platform, slices.Compact(slices.Sorted(slices.Values(sets))), tarballs}
	platforms := []string{All}
	for _, p := range r.Platforms {
		if len(tarballsOf(r, Server, p)) > 0 {
			platforms = append(platforms, p.String())
		}
	}
	if !slices.Contains(platforms, platform) {
		return q, suggest.Unknown("platform of the release", platform, platforms)
	}
	for _, set := range sets {
		if !slices.Contains(r.Sets, set) {
			return q, suggest.Unknown("set of the release", set, r.Sets)
		}
	}
	if len(q.images(r)) == 0 {
		return q, badrequest.Mark(fmt.Errorf("release %s has no images of %s for the platform %s", r.Version,
			strings.Join(q.Sets, ", "), platform))
	}
	return q, nil
}

// parse reads a bundle.json.
func parse(data []byte) (q Request, err error) {
	if err := json.Unmarshal(data, &q); err != nil {
		return q, err
	}
	if q.Form != form {
		return q, fmt.Errorf("its form is %d, and this program reads %d", q.Form, form)
	}
	if canonical, err := q.marshal(); err != nil || string(canonical) != string(data) {
		return q, errors.Join(errors.New("it has something that no bundle has"), err)
	}
	return q, nil
}

func (q Request) marshal() ([]byte, error) { return release.EncodeJSON(q, "  ") }

// has reports whether a platform is wanted.
func (q Request) has(p platform.Platform) bool { return q.Platform == All || q.Platform == p.String() }

// tarballsOf returns the tarballs of a set for a platform, one or none.
func tarballsOf(r *release.Release, set string, p platform.Platform) []release.Artifact {
	return slices.DeleteFunc(r.Select(release.Tarball, p), func(a release.Artifact) bool {
		return !strings.HasPrefix(a.Name, "kubernetes-"+set+"-")
	})
}

// images returns the wanted images, in the order of release.json: those whose archives are in the tarballs of the sets.
func (q Request) images(r *release.Release) []Image {
	archived := map[string]bool{} // images, by name
	for _, set := range q.Sets {
		for _, p := range r.Platforms {
			for _, t := range tarballsOf(r, set, p) {
				for _, m := range t.Members {
					if a, ok := r.Artifact(m.Artifact); ok && a.Kind == release.Archive && q.has(p) {
						for _, of := range a.Of {
							archived[of] = true
						}
					}
				}
			}
		}
	}
	var wanted []Image
	for _, i := range Images(r) {
		of := slices.IndexFunc(i.Of, func(a release.Artifact) bool { return archived[a.Name] })
		switch {
		case of < 0:
			continue
		case q.Platform != All:
			i.Artifact = i.Of[of]
		}
		wanted = append(wanted, i)
	}
	return wanted
}

// Images returns all images of a release, for all of their platforms.
func Images(r *release.Release) []Image {
	var all []Image
	for _, listed := range site.ImagesOf(r, "") {
		index, _ := r.Artifact(listed.Name) // which it was made of
		i := Image{Artifact: index, Index: index}
		for _, repository := range listed.Repositories() {
			i.Names = append(i.Names, repository+":"+listed.Tag)
		}
		for _, of := range index.Of {
			if a, ok := r.Artifact(of); ok {
				i.Of = append(i.Of, a)
			}
		}
		all = append(all, i)
	}
	return all
}

// Parts returns what has a manifest: an image alone, or an index and its images.
func (i Image) Parts() []release.Artifact {
	if i.Artifact.Kind == release.Image {
		return []release.Artifact{i.Artifact}
	}
	return append([]release.Artifact{i.Artifact}, i.Of...)
}

// files returns the wanted artifacts that are files of the release: packages, server tarballs, sums, and bills of materials of the images.
func (q Request) files(r *release.Release) []release.Artifact {
	about := map[string]bool{}
	for _, i := range q.images(r) {
		for _, a := range i.Parts() {
			about[a.Name] = true
		}
	}
	wanted := map[string]release.Artifact{}
	for _, a := range r.Artifacts {
		isPackage := strings.HasSuffix(a.Path, ".deb") || strings.HasSuffix(a.Path, ".rpm")
		switch {
		case a.Path == "":
		case isPackage && (q.has(a.Platform) || a.Platform == platform.Platform{}):
			wanted[a.Name] = a
		case a.Kind == release.SBOM && len(a.Of) == 1 && about[a.Of[0]]:
			wanted[a.Name] = a
		case a.Path == "SHA256SUMS": // which is signed
			wanted[a.Name] = a
		}
	}
	for _, p := range r.Platforms {
		for _, a := range tarballsOf(r, Server, p) {
			if q.Tarballs && q.has(p) {
				wanted[a.Name] = a
			}
		}
	}
	var all []release.Artifact
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		all = append(all, wanted[name])
	}
	return all
}

// about reports whether a bundle has the statements about an artifact: those about its images and its files.
func (q Request) about(r *release.Release) func(release.Artifact) bool {
	names := map[string]bool{}
	for _, i := range q.images(r) {
		for _, a := range i.Parts() {
			names[a.Name] = true
		}
	}
	for _, a := range q.files(r) {
		names[a.Name] = true
	}
	return func(a release.Artifact) bool { return names[a.Name] }
}
