package plan

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"slipway.build/pkg/build/license"
	"slipway.build/pkg/build/toolchain"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/tree/catalog"
	"slipway.build/pkg/tree/module"
)

// shipped lists the binaries that share one LICENSES folder with those of a set, and names them. The test set has its own: it
// links far more.
func (b *builder) shipped(set catalog.Set, platform catalog.Platform) (name string, binaries []catalog.Binary) {
	name, sets := "components", []catalog.Set{catalog.Server, catalog.Node, catalog.Client}
	if set == catalog.Test {
		name, sets = "test", []catalog.Set{catalog.Test}
	}
	seen := map[string]bool{}
	for _, s := range sets {
		holds := b.Catalog.BinariesFor(s, platform)
		if s == catalog.Test {
			holds = append(holds, b.inImages(s, platform)...)
		}
		for _, bin := range holds {
			if !seen[bin.Name] && b.Catalog.IsComponent(bin) {
				seen[bin.Name] = true
				binaries = append(binaries, bin)
			}
		}
	}
	return name, binaries
}

// inImages lists the binaries that are in the images of a set's tarball. Of components, those of the server set's images are in it
// besides.
func (b *builder) inImages(set catalog.Set, platform catalog.Platform) []catalog.Binary {
	var binaries []catalog.Binary
	for _, im := range b.Catalog.ImagesFor(set, platform) {
		for _, name := range im.Binaries() {
			bin, _ := b.Catalog.Binary(name) // the catalog has seen to it that it is there
			binaries = append(binaries, bin)
		}
	}
	return binaries
}

// licenses plans the LICENSES folder of a set's tarball, and returns where it is made. It covers every component that a
// release ships for the platform, so it is the same whichever tarballs are asked for.
func (b *builder) licenses(set catalog.Set, platform catalog.Platform) (string, error) {
	name, binaries := b.shipped(set, platform)
	return b.licensesOf(name, platform, binaries)
}

// addonLicenses plans the licenses of the other projects that a set's tarball has programs of: a folder for each.
func (b *builder) addonLicenses(set catalog.Set, platform catalog.Platform) ([]content, error) {
	shipped := map[string]bool{} // by name
	for _, bin := range append(b.Catalog.BinariesFor(set, platform), b.inImages(set, platform)...) {
		shipped[bin.Name] = true
	}
	var order []string
	binaries := map[string][]catalog.Binary{} // by module
	for _, bin := range b.Catalog.Binaries {
		if !shipped[bin.Name] || b.Catalog.IsComponent(bin) {
			continue
		}
		if binaries[bin.Module] == nil {
			order = append(order, bin.Module)
		}
		binaries[bin.Module] = append(binaries[bin.Module], bin)
	}
	var holds []content
	for _, module := range order {
		name := path.Base(module)
		dir, err := b.licensesOf(name, platform, binaries[module])
		if err != nil {
			return nil, err
		}
		holds = append(holds, content{from: dir + "/", to: "LICENSES/" + name})
	}
	return holds, nil
}

// licensesOf plans a folder with the licenses of binaries of one module, and returns where it is made.
func (b *builder) licensesOf(name string, platform catalog.Platform, binaries []catalog.Binary) (string, error) {
	dir := slashed(stage, "licenses", name, platform.Dash())
	id := "licenses " + platform.String() + " " + name
	if b.planned[id] {
		return dir, nil
	}
	b.planned[id] = true
	module, err := b.module(binaries[0].Module)
	if err != nil {
		return "", err
	}
	if err := b.compile(platform, binaries); err != nil {
		return "", err
	}
	component := module.Name == b.Catalog.Module
	if !component && b.ofOthers(dir+"/") {
		return dir, nil
	}
	ours := sourceDir + "/LICENSE"
	list := b.linked(name, platform, binaries)
	inputs := []string{ours, list}
	var lay func(ctx context.Context, to string) error
	if b.licensed != "" && component {
		inputs = append(inputs, filepath.ToSlash(b.licensed)+"/")
		lay = func(ctx context.Context, to string) error {
			return license.Select(ctx, to, b.licensed, b.abs(ours), b.abs(list))
		}
	} else {
		packages := b.packages(name, platform, module, binaries)
		inputs = slices.Concat([]string{packages}, inputs, module.inputs)
		lay = func(ctx context.Context, to string) error {
			src, err := b.licenseSource(ctx, module, b.abs(packages))
			if err != nil {
				return err
			}
			src.License, src.Modules = b.abs(ours), b.abs(list)
			return license.Write(ctx, to, src)
		}
	}
	b.add(&action.Action{
		ID:      id,
		Phase:   "licenses",
		Recipe:  []string{license.Recipe, b.Catalog.Go.Version},
		Inputs:  inputs,
		Outputs: []string{dir + "/"},
		Run:     func(ctx context.Context, t *action.Task) error { return lay(ctx, t.Path(dir+"/")) },
	})
	return dir, nil
}

// linked plans the list of modules that are in binaries: nearly always that of before, whatever was edited in them.
func (b *builder) linked(name string, platform catalog.Platform, binaries []catalog.Binary) string {
	out := slashed(stage, "modules", name, platform.Dash()+".json")
	var inputs, files []string
	for _, bin := range binaries {
		inputs = append(inputs, b.binary(platform, bin))
		files = append(files, b.abs(b.binary(platform, bin)))
	}
	b.add(&action.Action{
		ID:      "modules " + platform.String() + " " + name,
		Phase:   "licenses",
		Recipe:  []string{module.Recipe},
		Inputs:  inputs,
		Outputs: []string{out},
		Run:     func(_ context.Context, t *action.Task) error { return module.WriteList(t.Path(out), files) },
	})
	return out
}

// licenseSource says where the license files are of packages of a module that a file lists.
func (b *builder) licenseSource(ctx context.Context, of *goModule, packages string) (license.Source, error) {
	g, err := b.Go(ctx, nil)
	if err != nil {
		return license.Source{}, err
	}
	return license.Source{ModCache: g.ModCache, ModRoot: of.Dir, GOROOT: g.Root, Packages: packages}, nil
}

// packages plans the list of packages that binaries are compiled from. Build information in a binary names modules
// only, and a license may lie in the folder of a package.
func (b *builder) packages(name string, platform catalog.Platform, module *goModule, binaries []catalog.Binary) string {
	out := slashed(stage, "packages", name, platform.Dash()+".json")
	// The sources themselves are no inputs: an edit below the imports must not have the Go tool list everything again.
	var heads []string
	for _, bin := range binaries {
		heads = append(heads, module.Heads(cmp.Or(bin.Package, bin.Test)))
	}
	args, mains, tests := b.listing(platform, module, binaries)
	recipe := []string{Recipe, b.Catalog.Go.Version, platform.String(), "GOFLAGS=" + b.Settings.Build.GoFlags}
	recipe = slices.Concat(recipe, toolchain.Levels(), args, mains, []string{"-test"}, tests, heads)
	b.add(&action.Action{
		ID:      "packages " + platform.String() + " " + name,
		Phase:   "licenses",
		Recipe:  recipe,
		Inputs:  module.inputs,
		Outputs: []string{out},
		Run: func(ctx context.Context, t *action.Task) error {
			return b.list(ctx, t.Path(out), platform, module, binaries)
		},
	})
	return out
}

// listing is how the Go command is asked which packages binaries are compiled from.
func (b *builder) listing(platform catalog.Platform, module *goModule, binaries []catalog.Binary) (args, mains, tests []string) {
	c := b.compileSpec(platform, module)
	c.LDFlags, c.Options.LDFlags = "", "" // the list does not depend on the stamp
	for _, bin := range binaries {
		if bin.IsTest() {
			tests = append(tests, bin.Test)
		} else {
			mains = append(mains, bin.Package)
		}
	}
	return append([]string{"list", "-deps", "-json=ImportPath,Module,Standard"}, c.BuildFlags()...), mains, tests
}

// list writes that list to a file.
func (b *builder) list(ctx context.Context, file string, platform catalog.Platform, module *goModule, binaries []catalog.Binary) error {
	args, mains, tests := b.listing(platform, module, binaries)
	var list bytes.Buffer
	for _, part := range [][]string{mains, append([]string{"-test"}, tests...)} {
		if len(part) == 0 || part[0] == "-test" && len(part) == 1 {
			continue
		}
		if err := b.goCommand(ctx, module, platform, &list, append(args, part...)...); err != nil {
			return err
		}
	}
	return os.WriteFile(file, list.Bytes(), 0o644)
}

// goCommand runs the pinned Go in a module.
func (b *builder) goCommand(ctx context.Context, module *goModule, platform catalog.Platform, out io.Writer, args ...string) error {
	g, err := b.Go(ctx, nil)
	if err != nil {
		return err
	}
	var stderr bytes.Buffer
	cmd := g.Command(ctx, module.Dir, platform.OS, platform.Arch, args...)
	cmd.Env = append(cmd.Env, "GOFLAGS="+b.Settings.Build.GoFlags)
	cmd.Stdout, cmd.Stderr = out, &stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go %s: %w: %s", args[0], err, strings.TrimSpace(stderr.String()))
	}
	return nil
}

// moduleDir is the folder of a module that another one requires. It is fetched if it is not there.
func (b *builder) moduleDir(ctx context.Context, of *goModule, path string) (string, error) {
	for _, fetch := range []bool{false, true} {
		if fetch {
			if err := b.goCommand(ctx, of, catalog.Host(), io.Discard, "mod", "download", path); err != nil {
				return "", err
			}
		}
		var out bytes.Buffer
		if err := b.goCommand(ctx, of, catalog.Host(), &out, "list", "-m", "-f", "{{.Dir}}", path); err != nil {
			return "", err
		}
		if dir := strings.TrimSpace(out.String()); dir != "" {
			return dir, nil
		}
	}
	return "", fmt.Errorf("module %s was fetched into the module cache, and is not there", path)
}
