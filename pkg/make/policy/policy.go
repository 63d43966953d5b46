// Package policy judges the licenses of what a release is made of, before it is made.
//
// [Check] reads the files in which package license and package debian name the licenses, and compares them with what the tree's
// [catalog.Licenses] allow. It writes nothing, so a policy is in no key and changes no byte: it only stops releases.
//
// # What is judged
//
// Modules that programs link, each by its SPDX expression; Go's standard library; the Debian packages in images. The terms of the
// tree's own code are its owner's affair, and are not judged.
//
// A module without a license that is recognized or declared is a problem whatever the policy is, as no release can be made with it.
//
// # What must never be in here
//
// Finding licenses. Which licenses are good: that is the tree's to say.
package policy

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"slipway.build/pkg/make/license"
	"slipway.build/pkg/mechanism/debian"
	"slipway.build/pkg/mechanism/golist"
	"slipway.build/pkg/tree/catalog"
)

// A Subject is what licenses are judged of.
type Subject struct {
	Policy catalog.Licenses
	Groups []Group
	Images []Image
}

// A Group is programs that share a list of packages and the names of licenses.
type Group struct {
	ID       string // of the action that names the licenses
	Names    string // its file
	Packages string // the list; it need not be there, then chains of imports are not known
	Programs []Program
}

// A Program is a program of a release.
type Program struct {
	Name    string // in release.json: linux/amd64/kubelet
	Package string // its main package, or the package whose test it is
}

// An Image is an image with Debian packages in its base.
type Image struct {
	ID    string // of the action that names the licenses
	Names string // its file
	Name  string
}

// Actions returns the actions that the judgment needs, and the files that must be there for it.
func (s Subject) Actions() (ids, files []string) {
	for _, g := range s.Groups {
		ids, files = append(ids, g.ID), append(files, g.Names, g.Packages)
	}
	for _, im := range s.Images {
		ids, files = append(ids, im.ID), append(files, im.Names)
	}
	return ids, files
}

// An Error lists what a release may not have, a line for each.
type Error struct {
	Refused      []string
	Unrecognized []string // modules
}

func (e *Error) Error() string {
	var lines []string
	if len(e.Refused) > 0 {
		lines = append(lines, catalog.File+" does not allow these licenses:")
		lines = append(lines, e.Refused...)
	}
	if len(e.Unrecognized) > 0 {
		lines = append(lines, "nothing recognizes the license texts of these modules, and "+catalog.File+" does not declare their licenses:")
		lines = append(lines, e.Unrecognized...)
	}
	return strings.Join(lines, "\n  ")
}

// Check judges licenses. Abs turns the paths of files into absolute ones. If something is refused, the error is an [Error].
func Check(s Subject, abs func(string) string) error {
	c := &checker{licenses: s.Policy, abs: abs, found: map[finding]*places{}, lists: map[string]golist.Packages{}}
	for _, g := range s.Groups {
		if err := c.group(g); err != nil {
			return err
		}
	}
	for _, im := range s.Images {
		if err := c.image(im); err != nil {
			return err
		}
	}
	return c.result()
}

// A finding is something that a release may not have.
type finding struct {
	what, license, refused string // refused is empty if the license is not recognized
}

// places are where something was found. Only the first is described in full.
type places struct {
	first string
	also  map[string]bool
}

type checker struct {
	licenses catalog.Licenses
	abs      func(string) string
	found    map[finding]*places
	lists    map[string]golist.Packages
}

// find notes a finding, at a place that at explains, and which name names.
func (c *checker) find(f finding, name string, at func() (string, error)) error {
	if p := c.found[f]; p != nil {
		p.also[name] = true
		return nil
	}
	first, err := at()
	c.found[f] = &places{first, map[string]bool{name: true}}
	return err
}

// judge notes what is wrong with the license of something, if there is anything.
func (c *checker) judge(what, expression, name string, at func() (string, error)) error {
	refused := c.licenses.Refused(expression)
	if !c.licenses.HasPolicy() || len(refused) == 0 {
		return nil
	}
	return c.find(finding{what, expression, strings.Join(refused, ", ")}, name, at)
}

func (c *checker) group(g Group) error {
	names, err := license.ReadNames(c.abs(g.Names))
	if err != nil {
		return err
	}
	for _, p := range g.Programs { // all have Go in them
		if err := c.judge("Go's standard library", names.Go(), p.Name, func() (string, error) { return "is in " + p.Name, nil }); err != nil {
			return err
		}
	}
	for name, expression := range names.Modules() {
		unrecognized := license.Unnamed(expression)
		if !unrecognized && (!c.licenses.HasPolicy() || len(c.licenses.Refused(expression)) == 0) {
			continue
		}
		path, _, _ := strings.Cut(name, "@")
		links, err := c.links(g, path)
		if err != nil {
			return err
		}
		for _, l := range links {
			at := func() (string, error) { return l.text, nil }
			if unrecognized {
				err = c.find(finding{what: name}, l.program, at)
			} else {
				err = c.judge(name, expression, l.program, at)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// A link says how a program comes to a module.
type link struct{ program, text string }

// links returns how the programs of a group come to a module.
func (c *checker) links(g Group, module string) ([]link, error) {
	packages, ok := c.lists[g.Packages]
	if !ok {
		f, err := os.Open(c.abs(g.Packages))
		if err == nil {
			packages, err = golist.Read(f)
			f.Close()
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		c.lists[g.Packages] = packages
	}
	var links []link
	for _, p := range g.Programs {
		for _, main := range []string{p.Package, p.Package + ".test"} {
			if chain := packages.Chain(main, module); len(chain) > 0 {
				links = append(links, link{p.Name, "is linked into " + p.Name + ": " + strings.Join(chain, " → ")})
				break
			}
		}
	}
	if len(links) == 0 { // nobody has the list here
		links = []link{{g.Programs[0].Name, "is linked into " + g.Programs[0].Name + ", or a program beside it"}}
	}
	return links, nil
}

func (c *checker) image(im Image) error {
	licenses, err := debian.ReadLicenses(c.abs(im.Names))
	if err != nil {
		return err
	}
	declared := c.licenses.DeclaredPackages()
	for _, name := range slices.Sorted(maps.Keys(licenses)) {
		expression := cmp.Or(declared[name], licenses[name])
		at := func() (string, error) { return "is in the image " + im.Name, nil }
		if err := c.judge("Debian package "+name, expression, im.Name, at); err != nil {
			return err
		}
	}
	return nil
}

// result returns the error about what was found.
func (c *checker) result() error {
	e := &Error{}
	for f, p := range c.found {
		line := p.first
		if others := len(p.also) - 1; others == 1 {
			line += " (and one more)"
		} else if others > 1 {
			line += fmt.Sprintf(" (and %d more)", others)
		}
		switch {
		case f.refused == "":
			e.Unrecognized = append(e.Unrecognized, f.what+" "+line)
		case f.refused == f.license || f.license == "":
			e.Refused = append(e.Refused, fmt.Sprintf("%s (%s) %s", f.what, f.license, line))
		default:
			e.Refused = append(e.Refused, fmt.Sprintf("%s (%s, of %s) %s", f.what, f.refused, f.license, line))
		}
	}
	if len(c.found) == 0 {
		return nil
	}
	slices.Sort(e.Refused)
	slices.Sort(e.Unrecognized)
	return e
}
