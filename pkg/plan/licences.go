package plan

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"slipway.build/pkg/action"
	"slipway.build/pkg/catalog"
	"slipway.build/pkg/license"
	"slipway.build/pkg/toolchain"
)

// shipped names the sets whose binaries share one LICENSES folder. The test set has its own: it links far more.
func shipped(set catalog.Set) (name string, sets []catalog.Set) {
	if set == catalog.Test {
		return "test", []catalog.Set{catalog.Test}
	}
	return "components", []catalog.Set{catalog.Server, catalog.Node, catalog.Client}
}

// licences plans the LICENSES folder of a set's tarball, and returns where it is made. It covers every binary that a
// release ships for the platform, so it is the same whichever tarballs are asked for.
func (b *builder) licences(set catalog.Set, platform catalog.Platform) string {
	name, sets := shipped(set)
	dir := slashed(stage, "licences", name, platform.Dash())
	id := "licences " + platform.String() + " " + name
	if b.planned[id] {
		return dir
	}
	b.planned[id] = true
	var binaries []catalog.Binary
	seen := map[string]bool{}
	for _, s := range sets {
		for _, bin := range b.Catalog.BinariesFor(s, platform) {
			if !seen[bin.Name] {
				seen[bin.Name] = true
				binaries = append(binaries, bin)
			}
		}
	}
	b.compile(platform, binaries)

	packages := b.packages(name, platform, binaries)
	ours := sourceDir + "/LICENSE"
	inputs := append([]string{packages, ours}, b.module.inputs...)
	var files []string
	for _, bin := range binaries {
		inputs = append(inputs, b.binary(platform, bin.Name))
		files = append(files, b.abs(b.binary(platform, bin.Name)))
	}
	b.add(&action.Action{
		ID:      id,
		Phase:   "licences",
		Recipe:  []string{license.Recipe, b.Catalog.Go.Version},
		Inputs:  inputs,
		Outputs: []string{dir + "/"},
		Run: func(ctx context.Context, t *action.Task) error {
			g, err := b.Go(ctx, nil)
			if err != nil {
				return err
			}
			return license.Write(ctx, t.Path(dir+"/"), license.Source{
				License:  b.abs(ours),
				ModCache: g.ModCache,
				ModRoot:  b.module.dir,
				GOROOT:   g.Root,
				Binaries: files,
				Packages: b.abs(packages),
			})
		},
	})
	return dir
}

// packages plans the list of packages that binaries are compiled from. Build information in a binary names modules
// only, and a licence may lie in the folder of a package.
func (b *builder) packages(name string, platform catalog.Platform, binaries []catalog.Binary) string {
	out := slashed(stage, "packages", name, platform.Dash()+".json")
	c := b.compilation(platform)
	c.LDFlags, c.Options.LDFlags = "", "" // the list does not depend on the stamp
	args := append([]string{"list", "-deps", "-json=ImportPath,Module,Standard"}, c.BuildFlags()...)
	// The sources themselves are no inputs: an edit below the imports must not have the Go tool list everything again.
	var mains, tests, heads []string
	for _, bin := range binaries {
		heads = append(heads, b.module.heads(cmp.Or(bin.Package, bin.Test)))
		if bin.IsTest() {
			tests = append(tests, bin.Test)
		} else {
			mains = append(mains, bin.Package)
		}
	}
	recipe := []string{Recipe, b.Catalog.Go.Version, platform.String(), "GOFLAGS=" + b.Settings.Build.GoFlags}
	recipe = slices.Concat(recipe, toolchain.Levels(), args, mains, []string{"-test"}, tests, heads)
	b.add(&action.Action{
		ID:      "packages " + platform.String() + " " + name,
		Phase:   "licences",
		Recipe:  recipe,
		Inputs:  b.module.inputs,
		Outputs: []string{out},
		Run: func(ctx context.Context, t *action.Task) error {
			var list bytes.Buffer
			for _, part := range [][]string{mains, append([]string{"-test"}, tests...)} {
				if len(part) == 0 || part[0] == "-test" && len(part) == 1 {
					continue
				}
				if err := b.goCommand(ctx, platform, &list, append(args, part...)...); err != nil {
					return err
				}
			}
			return os.WriteFile(t.Path(out), list.Bytes(), 0o644)
		},
	})
	return out
}

// goCommand runs the pinned Go in the components' module.
func (b *builder) goCommand(ctx context.Context, platform catalog.Platform, out io.Writer, args ...string) error {
	g, err := b.Go(ctx, nil)
	if err != nil {
		return err
	}
	var stderr bytes.Buffer
	cmd := g.Command(ctx, b.module.dir, platform.OS, platform.Arch, args...)
	cmd.Env = append(cmd.Env, "GOFLAGS="+b.Settings.Build.GoFlags)
	cmd.Stdout, cmd.Stderr = out, &stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go %s: %w: %s", args[0], err, strings.TrimSpace(stderr.String()))
	}
	return nil
}

// moduleDir is the folder of a module that the components' module requires. It is fetched if it is not there.
func (b *builder) moduleDir(ctx context.Context, path string) (string, error) {
	for _, fetch := range []bool{false, true} {
		if fetch {
			if err := b.goCommand(ctx, catalog.Host(), io.Discard, "mod", "download", path); err != nil {
				return "", err
			}
		}
		var out bytes.Buffer
		if err := b.goCommand(ctx, catalog.Host(), &out, "list", "-m", "-f", "{{.Dir}}", path); err != nil {
			return "", err
		}
		if dir := strings.TrimSpace(out.String()); dir != "" {
			return dir, nil
		}
	}
	return "", fmt.Errorf("module %s was fetched into the module cache, and is not there", path)
}
