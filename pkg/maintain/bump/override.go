package bump

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	goversion "go/version"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"

	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/mechanism/suggest"
	"slipway.build/pkg/tree/catalog"
	"slipway.build/pkg/tree/module"
)

// A Kept override says what becomes of an override in a bump.
type Kept struct {
	catalog.Override
	Dropped string `json:"dropped,omitempty"` // why it is not needed any more
}

// Override raises modules in the go.mod files of a tree, and declares that: all of it, or nothing. An override of a module that is there
// is extended. What is said of Run is true of it.
func Override(ctx context.Context, o Options, all ...catalog.Override) (*Report, error) {
	return run(ctx, o, func(p *preparation) (steps []step, err error) {
		for _, add := range all {
			if err := add.Check(); err != nil {
				return nil, badrequest.Mark(err)
			}
			steps = append(steps, func(ctx context.Context) error { return p.override(ctx, add) })
		}
		return steps, nil
	})
}

// DropOverride removes the override of a module, and gives the go.mod files the versions that upstream selects.
func DropOverride(ctx context.Context, o Options, name string) (*Report, error) {
	return run(ctx, o, func(p *preparation) ([]step, error) {
		at := slices.IndexFunc(p.catalog.Overrides, func(o catalog.Override) bool { return o.Module == name })
		if at < 0 {
			var names []string
			for _, o := range p.catalog.Overrides {
				names = append(names, o.Module)
			}
			return nil, suggest.Unknown("override", name, names)
		}
		return []step{func(ctx context.Context) error { return p.dropOverride(ctx, at) }}, nil
	})
}

// override raises a module.
func (p *preparation) override(ctx context.Context, add catalog.Override) error {
	p.raising = add.Module
	for _, old := range p.catalog.Overrides {
		if old.Module == add.Module {
			if len(old.In) == 0 {
				add.In = nil
			} else if len(add.In) > 0 {
				add.In = joined(old.In, add.In)
			}
			add.Fixes, add.Reason = joined(old.Fixes, add.Fixes), cmp.Or(add.Reason, old.Reason)
			if old.With != "" && old.Version != add.Version && add.With == "" {
				return badrequest.Mark(fmt.Errorf("the override %s takes another module: name one for %s, too, or drop the override", old,
					add.Version))
			}
			add.With = cmp.Or(add.With, old.With)
			if old.Version != add.Version && len(add.Fixes) > 0 && semver.Compare(old.Version, add.Version) > 0 {
				return badrequest.Mark(fmt.Errorf("the override of %s has the newer version %s", add.Module, old.Version))
			}
		}
	}
	raised, err := p.raisable(add)
	if err != nil {
		return err
	}
	if len(raised) > 0 {
		if err := p.someLinks(ctx, add, raised); err != nil {
			return err
		}
		if _, err := p.proxy.fetch(ctx, requirement(add.Code())); err != nil { // if it is a fork, nobody needs the module itself
			return err
		}
	}
	for _, folder := range raised {
		if add.With != "" {
			if err := p.editGoMod(folder, func(f *modfile.File) error { return replaceBy(f, add) }); err != nil {
				return err
			}
		}
		if err := p.set(ctx, folder, map[string]string{add.Module: add.Version}); err != nil {
			return err
		}
	}
	return p.draft.SetOverride(add)
}

func joined(a, b []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(a, b))))
}

// overridable lists the folders of the go.mod files that an override can be in, and that of the examples, which follow the components.
func (s *session) overridable(o catalog.Override) []string {
	var found []string
	for _, folder := range append(s.catalog.GoModules(), examples) {
		m, err := module.Load(s.Root, folder)
		if err != nil {
			continue // a tree without examples: the catalog has read the others
		}
		if _, requires := m.Require(o.Module); requires && s.covers(o, folder) {
			found = append(found, folder)
		}
	}
	return found
}

// requiredModules lists what the go.mod files of a release require.
func (s *session) requiredModules() []string {
	var names []string
	for _, folder := range s.catalog.GoModules() {
		if m, err := module.Load(s.Root, folder); err == nil { // the catalog has read them
			for _, r := range m.Requires {
				names = append(names, r.Path)
			}
		}
	}
	return names
}

func (s *session) covers(o catalog.Override, folder string) bool {
	if folder == examples {
		folder = s.catalog.Module
	}
	return slices.Contains(s.catalog.GoModules(), folder) && o.Covers(folder)
}

// raisable returns the folders of the go.mod files that an override changes. It refuses one that raises nothing, unless it is declared:
// then there may be more to say about it.
func (p *preparation) raisable(o catalog.Override) ([]string, error) {
	all := p.catalog.GoModules()
	for _, folder := range o.In {
		if !slices.Contains(all, folder) {
			return nil, suggest.Unknown("folder with a go.mod of a release", folder, all)
		}
	}
	var declared catalog.Override
	if at := slices.IndexFunc(p.catalog.Overrides, func(d catalog.Override) bool { return d.Module == o.Module }); at >= 0 {
		declared = p.catalog.Overrides[at]
	}
	folders := p.overridable(o)
	var raised, equal, newer []string
	for _, folder := range folders {
		m, err := module.Load(p.Root, folder)
		if err != nil {
			return nil, err
		}
		r, _ := m.Require(o.Module)
		code := r.Code()
		version := code.Version
		switch {
		case declared.With != "" && code == declared.Code():
			version = r.Version
		case code.Path != o.Module:
			return nil, badrequest.Mark(fmt.Errorf("%s/go.mod replaces %s by %s: change that", folder, o.Module, code))
		}
		if err := p.owned(folder, r); err != nil {
			return nil, err
		}
		switch c := semver.Compare(version, o.Version); {
		case c < 0 || c == 0 && o.With != "" && code != o.Code():
			raised = append(raised, folder)
		case c == 0:
			equal = append(equal, folder)
		default:
			newer = append(newer, folder+" has "+version)
			if slices.Contains(o.In, folder) || o.With != "" {
				return nil, badrequest.Mark(fmt.Errorf("an override raises a module, and %s would be lower: %s", o, newer[len(newer)-1]))
			}
		}
	}
	for _, folder := range o.In {
		if !slices.Contains(folders, folder) {
			return nil, badrequest.Mark(fmt.Errorf("%s/go.mod does not require %s", folder, o.Module))
		}
	}
	switch {
	case len(folders) == 0:
		return nil, badrequest.Mark(fmt.Errorf("nothing links %s: no go.mod of a release requires it%s", o.Module,
			suggest.DidYouMean(suggest.Near(o.Module, p.requiredModules()))))
	case len(raised) > 0 || declared.Module != "" && len(equal) > 0:
	case len(newer) > 0:
		return nil, badrequest.Mark(fmt.Errorf("an override raises a module, and %s would be lower: %s", o, strings.Join(newer, ", ")))
	default:
		return nil, badrequest.Mark(fmt.Errorf("every go.mod that requires %s has %s already", o.Module, o.Version))
	}
	if len(newer) > 0 {
		p.note("newer already: %s", strings.Join(newer, ", "))
	}
	return raised, nil
}

// owned refuses a module that a bump moves.
func (p *preparation) owned(folder string, r module.Requirement) error {
	if folder == p.catalog.Module && (r.Path == kubernetes || r.Code().Version == module.Staging(p.catalog.Kubernetes)) {
		return badrequest.Mark(fmt.Errorf("%s is of Kubernetes: it moves with it", r.Path))
	}
	for _, pr := range p.projects {
		if pr.folder == folder && slices.Contains(pr.modules, r.Path) {
			return badrequest.Mark(fmt.Errorf("%s is %s itself: move that to another version", r.Path, pr.name))
		}
	}
	return nil
}

// someLinks requires that a binary of one of the folders links a module, on some system.
func (p *preparation) someLinks(ctx context.Context, o catalog.Override, folders []string) error {
	var systems []string
	for _, platforms := range p.catalog.Sets {
		for _, on := range platforms {
			systems = append(systems, on.OS)
		}
	}
	slices.SortFunc(systems, func(a, b string) int { // most is for Linux
		return strings.Compare(strings.Replace(a, "linux", "", 1), strings.Replace(b, "linux", "", 1))
	})
	for _, system := range slices.Compact(systems) {
		for _, folder := range folders {
			for _, tests := range []bool{false, true} {
				linked, err := p.linked(ctx, folder, system, tests)
				if err != nil || slices.Contains(linked, o.Module) {
					return err
				}
			}
		}
	}
	return badrequest.Mark(fmt.Errorf("nothing links %s: go.mod files require it for tests or other programs alone", o.Module))
}

// linked returns the paths of the modules that the programs of a folder are compiled from for a system, or the compiled tests.
func (p *preparation) linked(ctx context.Context, folder, system string, tests bool) ([]string, error) {
	var packages []string
	for _, b := range p.catalog.Binaries {
		if b.Module == folder && b.IsTest() == tests {
			packages = append(packages, b.ImportPath())
		}
	}
	if len(packages) == 0 {
		return nil, nil
	}
	args := []string{"list", "-e", "-deps", fmt.Sprintf("-test=%t", tests), "-tags=" + strings.Join(p.catalog.Tags, ","),
		"-f", "{{with .Module}}{{.Path}}{{end}}"}
	dir := filepath.Join(p.Root, filepath.FromSlash(folder))
	out, err := runner(p.hostGo, "GOOS="+system, "CGO_ENABLED=0")(ctx, dir, append(args, packages...)...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", folder, err)
	}
	return strings.Fields(string(out)), nil
}

// set makes the go.mod in a folder of the copy require other versions of modules that it requires.
func (p *preparation) set(ctx context.Context, folder string, versions map[string]string) error {
	if p.patched(folder) { // tidying would read the code without its patches
		args := []string{"get"}
		for _, name := range slices.Sorted(maps.Keys(versions)) {
			args = append(args, name+"@"+versions[name])
		}
		if len(versions) > 0 {
			if _, err := runner(p.hostGo)(ctx, p.file(folder), args...); err != nil {
				return fmt.Errorf("%s: %w", folder, err)
			}
		}
		return p.downloadChanged(ctx, folder)
	}
	p.required[folder] = wanted{}
	if len(versions) == 0 {
		return nil
	}
	return p.editGoMod(folder, func(f *modfile.File) error {
		for _, name := range slices.Sorted(maps.Keys(versions)) {
			if err := f.AddRequire(name, versions[name]); err != nil {
				return err
			}
			for _, r := range slices.Clone(f.Replace) {
				if r.Old.Path == name && r.New.Path == name {
					if err := f.AddReplace(name, r.Old.Version, name, versions[name]); err != nil {
						return err
					}
				}
			}
		}
		return nil
	})
}

// downloadChanged adds the sums of the modules that have other versions in the copy.
func (p *preparation) downloadChanged(ctx context.Context, folder string) error {
	changed, err := p.changedIn(folder)
	if err != nil || len(changed) == 0 {
		return err
	}
	args := []string{"mod", "download"}
	for _, m := range changed {
		args = append(args, m.What)
	}
	if _, err = runner(p.hostGo)(ctx, p.file(folder), args...); err != nil {
		err = fmt.Errorf("%s: %w", folder, err)
	}
	return err
}

// changedIn returns the modules that have other versions in the copy's go.mod of a folder.
func (p *preparation) changedIn(folder string) ([]Move, error) {
	old, err := module.Load(p.Root, folder)
	if err != nil {
		return nil, err
	}
	new, err := module.Load(copyDir(p.Root), folder)
	if err != nil {
		return nil, err
	}
	var moves []Move
	before := map[string]string{}
	for _, r := range old.Requires {
		before[r.Path] = shown(r)
		if _, still := new.Require(r.Path); !still {
			moves = append(moves, Move{What: r.Path, From: shown(r)})
		}
	}
	for _, r := range new.Requires {
		if from, to := before[r.Path], shown(r); from != to {
			moves = append(moves, Move{What: r.Path, From: from, To: to})
		}
	}
	if old.Go != new.Go {
		moves = append(moves, Move{What: "the go line", From: old.Go, To: new.Go})
		if goversion.Compare("go"+new.Go, p.compileGo) > 0 {
			return nil, fmt.Errorf("%s would ask for Go %s, and %s compiles", path.Join(folder, "go.mod"), new.Go, p.compileGo)
		}
	}
	return moves, nil
}

// shown returns the version of a requirement, with the path of what replaces it if that is another module.
func shown(r module.Requirement) string {
	if code := r.Code(); code.Path != r.Path && code.Version != "" {
		return code.String()
	}
	return r.Code().Version
}

// showRaised records what an override, or the lack of one, moves: each move once, with the folders.
func (p *preparation) showRaised() error {
	name, in := p.raising, map[Move][]string{}
	for _, folder := range append(p.catalog.GoModules(), examples) {
		if _, changed := p.required[examples]; folder == examples && !changed {
			continue
		}
		moves, err := p.changedIn(folder)
		if err != nil {
			return err
		}
		for _, m := range moves {
			in[m] = append(in[m], strings.TrimPrefix(folder, "images/"))
		}
	}
	first := func(m Move) int {
		if m.What == name {
			return 0
		}
		return 1
	}
	for _, m := range slices.SortedFunc(maps.Keys(in), func(a, b Move) int {
		return cmp.Or(first(a)-first(b), strings.Compare(a.What, b.What), semver.Compare(a.From, b.From), semver.Compare(a.To, b.To))
	}) {
		why := "in " + strings.Join(in[m], ", ")
		if m.What != name {
			why = "follows it " + why
		}
		p.Moves = append(p.Moves, Move{m.What, m.From, m.To, why})
	}
	return nil
}

// overridden returns what the go.mod in a folder must require with the tree's overrides, and remembers what it is without them.
func (p *preparation) overridden(folder string, want wanted) (wanted, error) {
	var covering []catalog.Override
	for _, o := range p.catalog.Overrides {
		if p.covers(o, folder) {
			covering = append(covering, o)
		}
	}
	if len(covering) == 0 {
		return want, nil
	}
	m, err := module.Load(copyDir(p.Root), folder)
	if err != nil {
		return want, err
	}
	p.upstreams[folder] = want.Versions
	want.Versions, want.Replace, want.Indirect = maps.Clone(want.Versions), slices.Clone(want.Replace), slices.Clone(want.Indirect)
	for _, o := range covering {
		upstream := want.Versions[o.Module]
		_, requires := m.Require(o.Module)
		switch newer := semver.Compare(upstream, o.Version); {
		case upstream == "" && !requires:
			continue
		case o.With != "" && newer > 0:
			return want, &NewerThanForkError{o, folder, upstream}
		case o.With != "":
			want.Forks = append(want.Forks, o)
		case newer >= 0:
			continue
		}
		want.Versions[o.Module] = o.Version
		if !slices.Contains(want.Indirect, o.Module) {
			want.Indirect = append(want.Indirect, o.Module)
		}
		for i, r := range want.Replace {
			if r.Path == o.Module {
				want.Replace[i].Version = o.Version
			}
		}
	}
	return want, nil
}

// settleOverrides says what becomes of the tree's overrides, and drops one if in every go.mod that it is for, upstream selects as much.
func (p *preparation) settleOverrides() error {
	if p.raising != "" || len(p.required) == 0 {
		return nil
	}
	for _, o := range p.catalog.Overrides {
		needed, required := false, false
		for _, folder := range p.catalog.GoModules() {
			if !o.Covers(folder) || slices.Contains(p.leftOut, folder) {
				continue
			}
			m, err := module.Load(copyDir(p.Root), folder)
			if err != nil {
				return err
			}
			r, ok := m.Require(o.Module)
			if !ok {
				continue
			}
			required = true
			selects := r.Code().Version
			if upstream, known := p.upstreams[folder]; o.With != "" || semver.Compare(selects, o.Version) <= 0 &&
				(!known || semver.Compare(upstream[o.Module], o.Version) < 0) {
				needed = true
			}
		}
		kept := Kept{Override: o}
		switch {
		case !required:
			kept.Dropped = "nothing requires it any more"
		case !needed:
			kept.Dropped = "upstream selects as much"
		}
		p.Overrides = append(p.Overrides, kept)
		if kept.Dropped != "" {
			if err := errors.Join(p.draft.DropOverride(o.Module), p.dropForks(o)); err != nil {
				return err
			}
		}
	}
	return nil
}
