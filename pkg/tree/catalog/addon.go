package catalog

import (
	"path/filepath"
	"regexp"
	"slices"

	"slipway.build/pkg/mechanism/suggest"
)

// An Addon is what a cluster has on request. Its manifests, in the folder release/addons/NAME, and the images that they name are in the
// tarballs of the set Addons.
type Addon struct {
	Name string `json:"name" file:"required"`

	// More of its manifests are files of a module, From, which one of the modules that binaries are compiled in requires.
	Module string   `json:"module,omitempty" file:"optional"`
	From   string   `json:"from,omitempty" file:"optional"`
	Files  []string `json:"files,omitempty" file:"optional" each:"a file"`
}

// Folder returns the folder of the addon's manifests in the tree.
func (a Addon) Folder() string { return "release/addons/" + a.Name }

// An addon's name is that of a folder.
var addonName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)

// checkAddons checks that addons have manifests, and that a module has those that are not in the tree.
func (c *checker) checkAddons() {
	first := map[string]int{}
	for i := range c.Addons {
		a := &c.Addons[i]
		c.checkDuplicate("addon", a.Name, c.line(&a.Name), first)
		c.match(&a.Name, addonName, "a name for an addon: a-z, 0-9, and - between them")
		if _, declared := c.Sets[Addons]; !declared && !c.unsure {
			c.add(c.line(a), "addon %s: set %s has no platforms in this file", a.Name, Addons)
		}
		all := folders(filepath.Join(c.root, "release", "addons"))
		if addonName.MatchString(a.Name) && !slices.Contains(all, a.Name) {
			c.add(c.line(&a.Name), "there is no folder %s%s", a.Folder(), suggest.DidYouMean(suggest.Near(a.Name, all)))
		}
		c.checkAddonFiles(a)
	}
}

// checkAddonFiles checks where files of a module are. Which files it has is not known here.
func (c *checker) checkAddonFiles(a *Addon) {
	if some := []bool{c.has(&a.Module), c.has(&a.From), c.has(&a.Files)}; slices.Contains(some, true) && slices.Contains(some, false) {
		c.add(c.line(a), "addon %s: module, from and files go together", a.Name)
		return
	}
	once(c, "file", a.Files)
	for i, file := range a.Files {
		if !isFolder(file) {
			c.add(c.line(&a.Files[i]), "addon %s: %q is not a file of a module, written with slashes", a.Name, file)
		}
	}
	if a.Module == "" || a.From == "" {
		return
	}
	m := c.module(a.Module, c.line(&a.Module))
	if m == nil {
		return
	}
	a.Module = m.Name
	if _, required := m.Require(a.From); !required {
		c.add(c.line(&a.From), "addon %s: %s does not require %s", a.Name, m.file(), a.From)
	}
}
