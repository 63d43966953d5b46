package why

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

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
	Links   []Link          `json:"links"`             // the binaries that have it
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
		}
	}
	if len(answer.Inputs) == 0 {
		return nil, fmt.Errorf("no binary of release %s links the module %s%s", r.Version, name,
			suggest.DidYouMean(suggest.Near(modulePath, names)))
	}
	for _, in := range r.Inputs {
		if in.Kind == release.Patch && slices.Contains(in.Changes, modulePath) {
			answer.Patches = append(answer.Patches, in)
		}
	}
	known := map[platform.Platform][]*graph{}
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
			graphs, err := read(lists, a.Platform)
			if err != nil {
				return nil, err
			}
			known[a.Platform] = graphs
		}
		var err error
		if link.Chain, err = chain(known[a.Platform], a, modulePath, in); err != nil {
			link.Problem = err.Error()
		}
		answer.Links = append(answer.Links, link)
	}
	return answer, nil
}

// A graph has packages by import path.
type graph struct{ packages map[string]*node }

type node struct {
	ImportPath string
	Imports    []string
	Module     *struct {
		Path, Version string
		Replace       *struct{ Path, Version string }
	}
}

// read reads the lists for a platform.
func read(lists Lists, on platform.Platform) ([]*graph, error) {
	if lists == nil {
		return nil, nil
	}
	files, err := lists(on)
	if err != nil {
		return nil, err
	}
	var graphs []*graph
	for _, f := range files {
		g := &graph{map[string]*node{}}
		for d := json.NewDecoder(f); ; {
			n := &node{}
			if err = d.Decode(n); err != nil {
				break
			}
			g.packages[n.ImportPath] = n
		}
		f.Close()
		if !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("list of packages: %w", err)
		}
		graphs = append(graphs, g)
	}
	return graphs, nil
}

// chain returns the shortest chain of imports from a binary's main package to a package of a module.
func chain(graphs []*graph, a release.Artifact, modulePath string, in release.Input) ([]string, error) {
	for _, g := range graphs {
		if g.packages[a.Package] == nil {
			continue
		}
		before := map[string]string{a.Package: ""}
		for queue := []string{a.Package}; len(queue) > 0; queue = queue[1:] {
			n := g.packages[queue[0]]
			if n == nil {
				continue
			}
			if n.Module != nil && n.Module.Path == modulePath {
				version := n.Module.Version
				if n.Module.Replace != nil && n.Module.Replace.Version != "" {
					version = n.Module.Replace.Version
				}
				if version != in.Version {
					return nil, fmt.Errorf("the tree has version %s now", version)
				}
				var found []string
				for name := n.ImportPath; name != ""; name = before[name] {
					found = append(found, name)
				}
				slices.Reverse(found)
				return found, nil
			}
			for _, next := range n.Imports {
				if _, seen := before[next]; !seen {
					before[next] = n.ImportPath
					queue = append(queue, next)
				}
			}
		}
		return nil, errors.New("nothing in the tree imports it now")
	}
	return nil, errors.New("the tree that made the release knows the imports, and this is not it")
}
