package release

import (
	"fmt"
	"slices"
)

// Origins finds what single artifacts of a release were made of, in time that grows with the release alone.
type Origins struct {
	release   *Release
	artifacts map[string]Artifact // by name
	purls     []string            // of the inputs
}

// OriginsOf returns the origins of a release's artifacts.
func OriginsOf(r *Release) *Origins {
	o := &Origins{r, map[string]Artifact{}, nil}
	for _, a := range r.Artifacts {
		o.artifacts[a.Name] = a
	}
	for _, in := range r.Inputs {
		o.purls = append(o.purls, in.PURL())
	}
	return o
}

// Of returns the inputs that an artifact, with everything in it, was made of, in the release's order: the sources, its modules and
// packages, the patches that change these, the repository that they are made of, slipway without its libraries, and, if anything was
// compiled, the toolchains. The inputs' own tarball was made of everything.
func (o *Origins) Of(a Artifact) ([]Input, error) {
	has, seen, compiled := map[string]bool{}, map[string]bool{a.Name: true}, false
	for rest := []Artifact{a}; len(rest) > 0; {
		next := rest[len(rest)-1]
		rest = rest[:len(rest)-1]
		compiled = compiled || next.Kind == Binary
		for _, purl := range next.Inputs {
			has[purl] = true
		}
		for _, name := range next.Of {
			part, ok := o.artifacts[name]
			if !ok {
				return nil, fmt.Errorf("%s consists of %s, which is not in the release", next.Name, name)
			}
			if !seen[name] {
				seen[name] = true
				rest = append(rest, part)
			}
		}
	}
	patched, changed := map[string]bool{}, map[string]bool{} // modules, by path
	for i, in := range o.release.Inputs {
		if has[o.purls[i]] {
			changed[in.Name], patched[in.Name] = true, patched[in.Name] || in.Patched()
		}
	}
	var inputs []Input
	for i, in := range o.release.Inputs {
		of := changed
		if in.Kind == Patch {
			of = patched // another project may have the module without the patch
		}
		changes := slices.ContainsFunc(in.Changes, func(module string) bool { return of[module] })
		if in.Kind == Tool {
			in.Libraries = nil
		}
		if a.Kind == Inputs || in.Kind == Source || in.Kind == Tool ||
			in.Kind == Toolchain && compiled || (in.Kind == Patch || in.Kind == Repository) && changes || has[o.purls[i]] {
			inputs = append(inputs, in)
		}
	}
	return inputs, nil
}
