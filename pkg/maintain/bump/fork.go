package bump

import (
	"fmt"
	"path"
	"slices"

	"golang.org/x/mod/modfile"

	"slipway.build/pkg/tree/catalog"
	"slipway.build/pkg/tree/module"
)

// replaceBy makes a go.mod take the code of a module from an override's fork. The replacement names the version, so that it never stands
// for a newer one.
func replaceBy(f *modfile.File, o catalog.Override) error {
	if err := dropReplaceBy(f, o); err != nil {
		return err
	}
	code := o.Code()
	return f.AddReplace(o.Module, o.Version, code.Path, code.Version)
}

// dropReplaceBy removes what replaces versions of an override's module by forks.
func dropReplaceBy(f *modfile.File, o catalog.Override) error {
	for _, r := range slices.Clone(f.Replace) {
		if r.Old.Path == o.Module && r.Old.Version != "" && r.New.Path != o.Module && r.New.Version != "" {
			if err := f.DropReplace(r.Old.Path, r.Old.Version); err != nil {
				return err
			}
		}
	}
	f.Cleanup()
	return nil
}

// dropForks removes what an override's fork replaces in go.mod files.
func (p *preparation) dropForks(o catalog.Override) error {
	for _, folder := range append(p.catalog.GoModules(), examples) {
		m, err := module.Load(copyDir(p.Root), folder)
		if o.With == "" || err != nil {
			continue // a tree without examples, or without a project that was left out
		}
		if replaced := (module.Replacement{Old: module.Version{Path: o.Module, Version: o.Version}, New: o.Code()}); slices.ContainsFunc(
			m.Replaces, func(r module.Replacement) bool { return r.Old == replaced.Old && r.New == replaced.New }) {
			if err := p.editGoMod(folder, func(f *modfile.File) error { return dropReplaceBy(f, o) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// A NewerThanForkError says that upstream selects a newer version of a module than the one that an override has a fork for. Neither would
// be right: to take upstream's without a word, which may lack what the fork is there for, or to stay with an older one.
type NewerThanForkError struct {
	Override catalog.Override
	In       string // the folder of the go.mod
	Upstream string // version
}

func (e *NewerThanForkError) Error() string {
	return fmt.Sprintf("%s: upstream selects %s %s, and the override %s is for an older one", path.Join(e.In, "go.mod"), e.Override.Module,
		e.Upstream, e.Override)
}
