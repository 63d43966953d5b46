package catalog

import (
	"errors"
	"path"
	"slices"
	"strings"

	gomodule "golang.org/x/mod/module"
	"golang.org/x/mod/semver"

	inventory "slipway.build/pkg/tree/module"
	"slipway.build/pkg/tree/patch"
)

// An Override raises a Go module above the version that upstream selected, in go.mod files of the tree, or takes its code from a fork.
type Override struct {
	Module  string   `json:"module" file:"required"` // its path
	Version string   `json:"version" file:"required"`
	With    string   `json:"with,omitempty" file:"optional"`                         // a fork, PATH@VERSION, that stands for exactly this
	Fixes   []string `json:"fixes,omitempty" file:"optional" each:"a vulnerability"` // such as CVE-2026-12345
	Reason  string   `json:"reason,omitempty" file:"optional"`

	// In lists the folders of the go.mod files, relative to the root. Empty: all of those that a release is compiled in.
	In []string `json:"in,omitempty" file:"optional" each:"a folder"`
}

// Covers reports whether the override is for the go.mod in a folder.
func (o Override) Covers(folder string) bool { return len(o.In) == 0 || slices.Contains(o.In, folder) }

// String returns the module and its version, and what replaces that, as in go.mod.
func (o Override) String() string {
	text := o.Module + " " + o.Version
	if o.With != "" {
		text += " => " + strings.Replace(o.With, "@", " ", 1)
	}
	return text
}

// Code returns the module that the code comes from.
func (o Override) Code() inventory.Version {
	if path, version, ok := strings.Cut(o.With, "@"); ok {
		return inventory.Version{Path: path, Version: version}
	}
	return inventory.Version{Path: o.Module, Version: o.Version}
}

// isIn reports whether a go.mod that requires the module has what the override says.
func (o Override) isIn(r inventory.Requirement) bool {
	if code := r.Code(); o.With == "" {
		return code.Path == o.Module && semver.Compare(code.Version, o.Version) >= 0
	}
	return r.Version == o.Version && r.Code() == o.Code()
}

// Check reports what is wrong with an override by itself.
func (o Override) Check() error {
	var p problems
	o.check(&p, func(any) int { return 0 })
	if len(p.found) > 0 {
		return errors.New(p.found[0].Text)
	}
	return nil
}

func (o *Override) check(p *problems, line func(any) int) {
	if err := gomodule.CheckPath(o.Module); o.Module != "" && err != nil {
		p.add(line(&o.Module), "override: %v", err)
		return
	}
	if v := o.Version; v != "" && !isVersion(o.Module, v) {
		p.add(line(&o.Version), "override of %s: %q is not a version of it like v1.2.3", o.Module, v)
	}
	if code := o.Code(); o.With != "" && (code.Path == o.Module || !isVersion(code.Path, code.Version)) {
		p.add(line(&o.With), "override of %s: %q is not another module and its version like example.com/fork@v1.2.3", o.Module, o.With)
	}
	for i, id := range o.Fixes {
		if !patch.IsVulnerability(id) {
			p.add(line(&o.Fixes[i]), "override of %s: %q is not the name of a vulnerability like CVE-2026-12345", o.Module, id)
		}
	}
	if strings.ContainsAny(o.Reason, "\r\n") {
		p.add(line(&o.Reason), "override of %s: the reason has more than one line", o.Module)
	}
}

func isVersion(path, v string) bool {
	return semver.Canonical(v) == strings.TrimSuffix(v, "+incompatible") && gomodule.Check(path, v) == nil
}

// checkOverrides checks that go.mod files have what overrides say. A module that none of them requires is none of a release's.
func (c *checker) checkOverrides() {
	first := map[string]int{}
	folders := c.GoModules()
	for i := range c.Overrides {
		o := &c.Overrides[i]
		before := len(c.problems.found)
		o.check(c.problems, func(address any) int { return c.line(address) })
		if o.Module == "" || o.Version == "" || len(c.problems.found) > before {
			continue
		}
		if other, seen := first[o.Module]; seen {
			c.add(c.line(o), "duplicate override of %s, first on line %d", o.Module, other)
			continue
		}
		first[o.Module] = c.line(o)
		once(c, "folder", o.In)
		for j, folder := range o.In {
			if !slices.Contains(folders, folder) {
				c.add(c.line(&o.In[j]), "override of %s: no binary is compiled in %q", o.Module, folder)
			}
		}
		required := false
		for _, folder := range folders {
			m := c.modules[folder]
			if m == nil || !o.Covers(folder) {
				required = required || m == nil // which is reported
				continue
			}
			r, ok := m.Require(o.Module)
			required = required || ok
			if ok && !o.isIn(r) {
				wanted := o.Version + " or newer"
				if o.With != "" {
					wanted = o.With + " for " + o.Version
				}
				c.add(c.line(o), "override of %s: %s has %s, not %s", o.Module, path.Join(folder, "go.mod"), r.Code(), wanted)
			}
		}
		if !required {
			c.add(c.line(o), "override of %s: no go.mod that it is for requires the module", o.Module)
		}
	}
}

// GoModules lists the folders of the go.mod files that binaries are compiled in: the components' first, then those of other projects, in
// the catalog's order.
func (c *Catalog) GoModules() []string {
	found := []string{c.Module}
	for _, b := range c.Binaries {
		if b.Module != "" && !slices.Contains(found, b.Module) {
			found = append(found, b.Module)
		}
	}
	return found
}

// OverridesIn names the overrides that are in the go.mod of a folder, for messages.
func (c *Catalog) OverridesIn(folder string) string {
	var all []string
	for _, o := range c.Overrides {
		if o.Covers(folder) {
			all = append(all, o.String())
		}
	}
	return strings.Join(all, ", ")
}
