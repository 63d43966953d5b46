package license

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"slipway.build/pkg/make/toolchain"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/recipe"
	"slipway.build/pkg/tree/module"
)

//go:embed *.go
var sources embed.FS

var code = recipe.Of("make/license", sources)

const phase = "licenses"

// Go finds the pinned Go.
type Go func(ctx context.Context, progress func(string)) (*toolchain.Go, error)

// A Group is a number of binaries of one module for one platform, which share a list of packages, texts and names of
// licenses.
type Group struct {
	Name, OS, Arch string
}

func (g Group) id(what string) string { return fmt.Sprintf("%s %s/%s %s", what, g.OS, g.Arch, g.Name) }

// A ListSpec describes the list of packages that binaries are compiled from. Paths, here and in the other specs, are
// slash-separated and relative to the tree's root.
type ListSpec struct {
	Group
	Module      string   // folder of its go.mod
	ModuleFiles []string // that decide which code a module is: go.mod, go.sum, and folders in place of modules
	GoVersion   string
	GoFlags     string   // GOFLAGS
	Flags       []string // of the build
	Levels      []string // of the Go command's environment
	FIPS        string   `json:",omitempty"` // version of Go's cryptographic module
	Mains       []string // packages
	Tests       []string // packages whose tests are compiled
	Heads       []string // digests of their imports; the sources are not inputs, so edits below the imports list nothing again
	Output      string
}

// ListAction returns the action that writes the list.
func ListAction(root string, find Go, s ListSpec) *action.Action {
	return &action.Action{
		ID:      s.id("packages"),
		Phase:   phase,
		Recipe:  code.Recipe(s),
		Inputs:  s.ModuleFiles,
		Outputs: []string{s.Output},
		Run: func(ctx context.Context, t *action.Task) error {
			return ListPackages(ctx, t.Path(s.Output), root, find, s)
		},
	}
}

// ListPackages writes the list of packages to a file, with what each imports.
func ListPackages(ctx context.Context, file, root string, find Go, s ListSpec) error {
	g, err := find(ctx, nil)
	if err != nil {
		return err
	}
	var list bytes.Buffer
	for _, run := range []struct{ flags, packages []string }{{nil, s.Mains}, {[]string{"-test"}, s.Tests}} {
		if len(run.packages) == 0 {
			continue
		}
		args := slices.Concat([]string{"list", "-deps", "-json=ImportPath,Module,Standard,Imports"}, s.Flags, run.flags, run.packages)
		cmd := g.Command(ctx, under(root, s.Module), s.OS, s.Arch, args...)
		cmd.Env = append(append(cmd.Env, "GOFLAGS="+s.GoFlags), toolchain.FIPSEnv(s.FIPS)...)
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("go list: %w: %s", err, strings.TrimSpace(stderr.String()))
		}
		if err := condense(&list, &stdout); err != nil {
			return err
		}
	}
	return os.WriteFile(file, list.Bytes(), 0o644)
}

// A ModulesSpec describes the list of modules that binaries link.
type ModulesSpec struct {
	Group
	Binaries []string
	Output   string
}

// ModulesAction returns the action that writes the list. It stays the same when a binary is linked again of the same
// modules, and so do the texts of their licenses.
func ModulesAction(root string, s ModulesSpec) *action.Action {
	return &action.Action{
		ID:      s.id("modules"),
		Phase:   phase,
		Recipe:  code.Recipe(s),
		Inputs:  s.Binaries,
		Outputs: []string{s.Output},
		Run: func(_ context.Context, t *action.Task) error {
			files := make([]string, len(s.Binaries))
			for i, b := range s.Binaries {
				files[i] = under(root, b)
			}
			return module.WriteList(t.Path(s.Output), files)
		},
	}
}

// Texts says where the license texts of a group are: in the module cache, for the modules of a list of packages, or in a
// folder of Gather or Write.
type Texts struct {
	Own string // the repository's own license; empty if it has none

	Packages    string // the list
	Module      string // folder of the group's go.mod
	ModuleFiles []string
	GoVersion   string // whose license is in every program
	Declared    Declared

	Gathered string // the folder; the list and the module are empty then
}

func (x Texts) inputs() []string {
	inputs := []string{x.Packages}
	if x.Gathered != "" {
		inputs = []string{x.Gathered + "/"}
	}
	if x.Own != "" {
		inputs = append([]string{x.Own}, inputs...)
	}
	return append(inputs, x.ModuleFiles...)
}

// own returns the file of the repository's own license, or "".
func (x Texts) own(root string) string {
	if x.Own == "" {
		return ""
	}
	return under(root, x.Own)
}

// source finds the texts on this machine.
func (x Texts) source(ctx context.Context, root string, find Go) (Source, error) {
	g, err := find(ctx, nil)
	if err != nil {
		return Source{}, err
	}
	return Source{
		License:  x.own(root),
		ModCache: g.ModCache,
		ModRoot:  under(root, x.Module),
		GOROOT:   g.Root,
		Packages: under(root, x.Packages),
		Declared: x.Declared,
	}, nil
}

// A Spec describes a tar of license texts.
type Spec struct {
	Group
	Texts
	Modules string  // the list that ModulesAction writes
	Patches []Patch // of the modules
	Output  string
}

// A Patch changes the code of modules.
type Patch struct{ Name, SHA256 string }

// Action returns the action that writes the tar. A folder has more files than all other outputs of a release together, and a run that has
// nothing to do looks at each.
func Action(root string, find Go, s Spec) *action.Action {
	return &action.Action{
		ID:      s.id("licenses"),
		Phase:   phase,
		Recipe:  code.Recipe(s),
		Inputs:  append(s.inputs(), s.Modules),
		Outputs: []string{s.Output},
		Run: func(ctx context.Context, t *action.Task) error {
			to := t.Path(s.Output)
			if s.Gathered != "" {
				return Select(to, under(root, s.Gathered), s.own(root), under(root, s.Modules), s.Patches)
			}
			src, err := s.source(ctx, root, find)
			if err != nil {
				return err
			}
			src.Modules, src.Patches = under(root, s.Modules), s.Patches
			return Write(ctx, to, src)
		},
	}
}

// A NamesSpec describes the file that names the licenses of a group's modules, for Expression.
type NamesSpec struct {
	Group
	Texts
	Output string
}

// NamesAction returns the action that writes the file. It reads texts only when modules change.
func NamesAction(root string, find Go, s NamesSpec) *action.Action {
	return &action.Action{
		ID:      s.id("spdx"),
		Phase:   phase,
		Recipe:  code.Recipe(s),
		Inputs:  s.inputs(),
		Outputs: []string{s.Output},
		Run: func(ctx context.Context, t *action.Task) error {
			var names Names
			var err error
			if s.Gathered != "" {
				names, err = GatheredNames(ctx, s.own(root), under(root, s.Gathered), s.Declared)
			} else {
				var src Source
				if src, err = s.source(ctx, root, find); err == nil {
					names, err = src.Names(ctx)
				}
			}
			if err != nil {
				return err
			}
			return names.write(t.Path(s.Output))
		},
	}
}

// under returns the path of a file that a spec names.
func under(root, name string) string {
	if name = filepath.FromSlash(name); filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(root, name)
}
