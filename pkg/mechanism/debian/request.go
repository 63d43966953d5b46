package debian

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// A PackageRequest is the Debian packages that an image needs: its packages.txt.
type PackageRequest struct {
	Suite    string
	Packages []string // with their dependencies
	Without  []string // dependencies to leave out, written with a minus
}

// ReadRequest reads a packages.txt: a line like "suite trixie", then a package on each line.
func ReadRequest(file string) (*PackageRequest, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	r := &PackageRequest{}
	n := 0
	for line := range strings.Lines(string(data)) {
		n++
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		suite, isSuite := strings.CutPrefix(line, "suite ")
		without, isWithout := strings.CutPrefix(line, "-")
		switch {
		case isSuite && r.Suite == "" && suiteName.MatchString(strings.TrimSpace(suite)):
			r.Suite = strings.TrimSpace(suite)
		case isWithout && packageName.MatchString(without):
			r.Without = append(r.Without, without)
		case !isSuite && packageName.MatchString(line):
			r.Packages = append(r.Packages, line)
		default:
			return nil, fmt.Errorf("%s:%d: %q is neither a package nor, once, a suite like \"suite trixie\"", file, n, line)
		}
	}
	if r.Suite == "" || len(r.Packages) == 0 {
		return nil, fmt.Errorf("%s: it needs a line like \"suite trixie\", and packages", file)
	}
	return r, nil
}

// closure finds the request's packages in an index, and their dependencies. Of alternatives, it takes the first that exists.
func (r *PackageRequest) closure(in *index) ([]Package, error) {
	found := map[string]Package{}
	todo := slices.Clone(r.Packages)
	for len(todo) > 0 {
		p, ok := in.packages[todo[0]]
		if !ok {
			return nil, fmt.Errorf("there is no package %s", todo[0])
		}
		todo = todo[1:]
		if _, done := found[p.Name]; done {
			continue
		}
		found[p.Name] = p.Package
		for _, need := range p.needs {
			name := r.choose(need, in)
			switch {
			case name == "":
				return nil, fmt.Errorf("%s depends on %s, which nothing is or provides", p.Name, need)
			case !slices.Contains(r.Without, name):
				todo = append(todo, name)
			}
		}
	}
	var packages []Package
	for _, name := range slices.Sorted(maps.Keys(found)) {
		packages = append(packages, found[name])
	}
	return packages, nil
}

// choose returns the package for a dependency, or "".
func (r *PackageRequest) choose(need string, in *index) string {
	for alternative := range strings.SplitSeq(need, "|") {
		name := nameIn(alternative)
		if _, ok := in.packages[name]; ok || slices.Contains(r.Without, name) {
			return name
		}
		if provider := in.provided[name]; provider != "" {
			return provider
		}
	}
	return ""
}

// nameIn returns the name in "name:any (>= 1.0)".
func nameIn(dependency string) string {
	name, _, _ := strings.Cut(strings.TrimSpace(dependency), " ")
	name, _, _ = strings.Cut(name, ":")
	return name
}
