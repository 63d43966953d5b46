package why

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"slipway.build/pkg/mechanism/golist"
	"slipway.build/pkg/mechanism/platform"
	"slipway.build/pkg/mechanism/suggest"
	"slipway.build/pkg/release"
)

// A ModuleAnswer says why a release has a Go module.
type ModuleAnswer struct {
	Release string          `json:"release"`
	Module  string          `json:"module"`
	Inputs  []release.Input `json:"inputs"`            // its versions
	Patches []release.Input `json:"patches,omitempty"` // that change it
	MadeOf  []release.Input `json:"madeOf,omitempty"`  // the repository, if it does not come from a module proxy
	Links   []Link          `json:"links"`             // the binaries that have it

	Overrides []release.Override `json:"overrides,omitempty"` // of the tree, that have raised it
}

// A Link is a binary that has a module.
type Link struct {
	Binary   string            `json:"binary"`
	Platform platform.Platform `json:"platform"`
	Version  string            `json:"version"` // of the module
	// packages that import each other, from the main package to the first one of the module
	Chain   []string `json:"chain,omitempty"`
	Problem string   `json:"problem,omitempty"` // why there is no chain
	In      []Place  `json:"in"`
}

// Lists opens the lists of packages, with their imports, that binaries for a platform are compiled of, as go list -json prints them.
// Nil means that nobody has them.
type Lists func(on platform.Platform) ([]io.ReadCloser, error)

// Module answers for a Go module, by its path. A path with a version asks for that alone.
func Module(r *release.Release, name string, lists Lists) (*ModuleAnswer, error) {
	modulePath, version, _ := strings.Cut(name, "@")
	answer := &ModuleAnswer{Release: r.Version, Module: modulePath}
	purls := map[string]release.Input{}
	var names []string
	for _, in := range r.Inputs {
		if in.Kind != release.Module {
			continue
		}
		names = append(names, in.Name)
		replaced, _, _ := strings.Cut(in.Replaces, "@")
		if (in.Name == modulePath || replaced == modulePath) && (version == "" || in.Version == version) {
			purls[in.PURL()] = in
			answer.Inputs = append(answer.Inputs, in)
			if o, ok := r.Override(in); ok {
				answer.Overrides = append(answer.Overrides, o)
			}
		}
	}
	if len(answer.Inputs) == 0 {
		return nil, fmt.Errorf("no binary of release %s links the module %s%s", r.Version, name,
			suggest.DidYouMean(suggest.Near(modulePath, names)))
	}
	for _, in := range r.Inputs {
		switch changes := slices.Contains(in.Changes, modulePath); {
		case changes && in.Kind == release.Patch:
			answer.Patches = append(answer.Patches, in)
		case changes && in.Kind == release.Repository:
			answer.MadeOf = append(answer.MadeOf, in)
		}
	}
	known := map[platform.Platform][]golist.Packages{}
	w := &world{Release: r}
	for _, a := range r.Artifacts {
		if a.Kind != release.Binary {
			continue
		}
		at := slices.IndexFunc(a.Inputs, func(purl string) bool { _, ok := purls[purl]; return ok })
		if at < 0 {
			continue
		}
		in := purls[a.Inputs[at]]
		link := Link{Binary: a.Name, Platform: a.Platform, Version: in.Version, In: w.places(a)}
		if _, ok := known[a.Platform]; !ok {
			packages, err := read(lists, a.Platform)
			if err != nil {
				return nil, err
			}
			known[a.Platform] = packages
		}
		var err error
		if link.Chain, err = chain(known[a.Platform], a, modulePath, in); err != nil {
			link.Problem = err.Error()
		}
		answer.Links = append(answer.Links, link)
	}
	return answer, nil
}

// read reads the lists for a platform.
func read(lists Lists, on platform.Platform) ([]golist.Packages, error) {
	if lists == nil {
		return nil, nil
	}
	files, err := lists(on)
	if err != nil {
		return nil, err
	}
	var all []golist.Packages
	for _, f := range files {
		packages, err := golist.Read(f)
		f.Close()
		if err != nil {
			return nil, err
		}
		all = append(all, packages)
	}
	return all, nil
}

// chain returns the shortest chain of imports from a binary's main package to a package of a module.
func chain(lists []golist.Packages, a release.Artifact, modulePath string, in release.Input) ([]string, error) {
	for _, packages := range lists {
		if packages[a.Package] == nil {
			continue
		}
		found := packages.Chain(a.Package, modulePath)
		if len(found) == 0 {
			return nil, errors.New("nothing in the tree imports it now")
		}
		if version := packages[found[len(found)-1]].Version(); version != in.Version {
			return nil, fmt.Errorf("the tree has version %s now", version)
		}
		return found, nil
	}
	return nil, errors.New("the tree that made the release knows the imports, and this is not it")
}
