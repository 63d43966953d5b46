package vulns

import (
	"cmp"
	"slices"

	"golang.org/x/mod/semver"

	"slipway.build/pkg/release"
	"slipway.build/pkg/tree/catalog"
	"slipway.build/pkg/tree/module"
	"slipway.build/pkg/tree/patch"
)

// A Fix is what a tree does against a vulnerability, with the evidence.
type Fix struct {
	ID      string   `json:"id"`               // of the vulnerability, as who made the fix names it
	By      string   `json:"by"`               // a patch, by its path in the tree; or an override or its fork, MODULE@VERSION in its file
	SHA256  string   `json:"sha256,omitempty"` // of a patch
	Commit  string   `json:"commit,omitempty"` // of the tree, in hex
	Modules []string `json:"modules"`          // package URLs of modules of the release with the fix
	In      []Place  `json:"in"`               // artifacts with these modules
}

// fixesOf collects what the inputs of a release mend: this is the one place where fixes come from, whatever makes them.
//
// A patch names modules, and their versions say that some patches are in them, but not which. So where projects have a module with
// different patches, a fix counts only if the patches of each of them have it. An override counts for the modules of its version or newer,
// and one with a fork for that.
func (r *Report) fixesOf(described *release.Release) []*Fix {
	fixes := []*Fix{}
	for _, in := range described.Inputs {
		if in.Kind != release.Patch {
			continue
		}
		for _, id := range in.Fixes {
			f := &Fix{ID: id, By: in.Name, SHA256: in.SHA256}
			for _, m := range described.Inputs {
				if m.Kind == release.Module && slices.Contains(in.Changes, m.Name) && everywhere(described, m.Name, id) {
					if _, patched := module.Unpatched(m.Version); patched {
						f.Modules = append(f.Modules, m.PURL())
					}
				}
			}
			fixes = append(fixes, f)
		}
	}
	for _, o := range described.Overrides {
		for _, id := range o.Fixes {
			f := &Fix{ID: id, By: cmp.Or(o.With, o.Module+"@"+o.Version) + " in " + catalog.File}
			for _, m := range described.Inputs {
				fork, isFork := described.Override(m)
				version, _ := module.Unpatched(m.Version)
				newer := o.With == "" && m.Name == o.Module && semver.Compare(version, o.Version) >= 0
				if m.Kind == release.Module && (newer || isFork && o.With != "" && fork.With == o.With && fork.Module == o.Module) {
					f.Modules = append(f.Modules, m.PURL())
				}
			}
			fixes = append(fixes, f)
		}
	}
	for _, f := range fixes {
		f.Commit, f.In = described.Commit, []Place{}
		if f.Modules == nil {
			f.Modules = []string{}
		}
		for _, a := range described.Artifacts {
			if a.Kind == release.Binary && slices.ContainsFunc(a.Inputs, f.has) {
				f.In = append(f.In, r.places(described, a)...)
			}
		}
	}
	return fixes
}

// has reports whether the fix is in a module, by its package URL.
func (f *Fix) has(purl string) bool { return slices.Contains(f.Modules, purl) }

// everywhere reports whether all patched versions of a module have a fix.
func everywhere(described *release.Release, modulePath, id string) bool {
	versions, series := map[string]bool{}, map[string]bool{}
	for _, in := range described.Inputs {
		switch {
		case in.Kind == release.Module && in.Name == modulePath:
			if _, patched := module.Unpatched(in.Version); patched {
				versions[in.Version] = true
			}
		case in.Kind == release.Patch && slices.Contains(in.Changes, modulePath) && slices.Contains(in.Fixes, id):
			series[patch.SeriesOf(in.Name).Project] = true
		}
	}
	return len(series) >= len(versions)
}

// mended notes which of what was found a fix mends, unless people have said otherwise.
func (r *Report) mended() {
	for _, fix := range r.Fixes {
		for _, f := range r.Found {
			if f.ID != fix.ID && !slices.Contains(f.Aliases, fix.ID) || !fix.has(f.PURL) {
				continue
			}
			for i := range f.In {
				if f.In[i].Exception == nil {
					f.In[i].fix, f.In[i].FixedBy = fix, fix.By
				}
			}
		}
	}
}

// only returns the fixes for what the databases do not know of this release.
func (r *Report) only() []*Fix {
	return slices.DeleteFunc(slices.Clone(r.Fixes), func(fix *Fix) bool {
		return len(fix.In) == 0 || slices.ContainsFunc(r.Found, func(f *Found) bool {
			return (f.ID == fix.ID || slices.Contains(f.Aliases, fix.ID)) && fix.has(f.PURL)
		})
	})
}

// evidence says in one line why an artifact is fixed.
func (f *Fix) evidence() string {
	text := f.By
	if f.SHA256 != "" {
		text += ", sha256:" + f.SHA256
	}
	if f.Commit != "" {
		text += ", in the tree at commit " + f.Commit
	}
	return text
}
