package plan

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"slipway.build/pkg/make/license"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/tree/catalog"
	"slipway.build/pkg/tree/stamp"
	"slipway.build/pkg/tree/worktree"
)

// This file has the steps by which Bazel makes a release inside its own actions. GatherLicenses, Others and PackSources work in the tree,
// with the Go command, modules, network and git. A project of OpenMade then packs the release from the unpacked sources, without any of
// these.
//
// GatherLicenses and PackSources are no actions of a graph. A graph skips what its records in _output/.slipway say is up to date, and
// locks the tree. Both are for Bazel to do here: it decides when its action runs, and discards every file but the declared outputs.

// Keys of the workspace status besides the stamp's.
const (
	sourcesKey  = "STABLE_SOURCES"
	registryKey = "STABLE_KUBE_DOCKER_REGISTRY"
	imageTagKey = "STABLE_KUBE_DOCKER_IMAGE_TAG"
)

// WorkspaceStatus returns what Bazel learns about the tree at each build: the stamp, the sum of the sources, and the image tags.
func (p *Project) WorkspaceStatus(ctx context.Context) ([]byte, error) {
	sum, err := p.tree.Sum(ctx)
	if err != nil {
		return nil, err
	}
	status := bytes.NewBuffer(p.Stamp.WorkspaceStatus())
	for _, line := range [][2]string{
		{sourcesKey, sum}, {registryKey, p.Settings.DockerRegistry}, {imageTagKey, p.Settings.DockerImageTag},
	} {
		if line[1] != "" {
			fmt.Fprintf(status, "%s %s\n", line[0], line[1])
		}
	}
	return status.Bytes(), nil
}

// statusValue returns the value of a key in a workspace status, or "".
func statusValue(status []byte, key string) string {
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, key+" "); ok {
			return strings.TrimSuffix(value, "\n")
		}
	}
	return ""
}

// PackSources writes the source tarball of the tree that dir lies in, with the version in a workspace status. The sources must be
// those that the status was made from.
func PackSources(ctx context.Context, w io.Writer, dir string, status []byte, getenv func(string) string) error {
	version, err := stamp.FromWorkspaceStatus(status)
	if err != nil {
		return err
	}
	given := map[string]string{}
	for _, kv := range stamp.Environ(version) {
		key, value, _ := strings.Cut(kv, "=")
		given[key] = value
	}
	p, err := Open(ctx, dir, Settings{}, func(key string) string {
		if value, ok := given[key]; ok {
			return value
		}
		return getenv(key)
	})
	if err != nil {
		return err
	}
	sum, err := p.tree.Sum(ctx)
	if err != nil {
		return err
	}
	if sum != statusValue(status, sourcesKey) {
		return errChanged("its sources are not those of Bazel's workspace status")
	}
	if err := p.sourceList().Write(ctx, w, p.Stamp.Date); err != nil {
		return err
	}
	return p.Unchanged(ctx)
}

// GatherLicenses fills dir with the license files of every module that the components of a release for a platform link.
func (p *Project) GatherLicenses(ctx context.Context, dir string, platform catalog.Platform) error {
	c, err := p.resolve(Request{Tars: true, Platforms: []catalog.Platform{platform}})
	if err != nil {
		return err
	}
	module, err := loadModule(p.Root, p.Catalog.Module)
	if err != nil {
		return err
	}
	if outside := module.FolderOutside(); outside != "" {
		return fmt.Errorf("cmd/go.mod replaces a module with the folder %s, which is outside of the tree, so Bazel would not notice a change "+
			"of its license: "+
			"move the folder into the tree, or use another road", outside)
	}
	b := p.builder(ctx)
	for _, n := range c.notices {
		if len(n.binaries) > 0 && p.Catalog.IsComponent(n.binaries[0]) {
			return b.gather(ctx, dir, module, n)
		}
	}
	return fmt.Errorf("%s: the release has no binaries for it", platform)
}

// gather fills dir with the license files of every module of a notice.
func (b *builder) gather(ctx context.Context, dir string, module *goModule, n notice) error {
	files, err := b.useMade(module)
	if err != nil {
		return err
	}
	tmp, err := os.MkdirTemp("", "slipway-licenses-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	packages := filepath.Join(tmp, "packages.json")
	list := b.listing(license.Group{Name: n.name, OS: n.on.OS, Arch: n.on.Arch}, module, n)
	if err := license.ListPackages(ctx, packages, b.Root, b.Go, list); err != nil {
		return err
	}
	g, err := b.Go(ctx, nil)
	if err != nil {
		return err
	}
	if err := license.Gather(ctx, dir, license.Source{ModCache: g.ModCache, ModRoot: module.Dir, GOROOT: g.Root,
		Packages: packages}); err != nil {
		return err
	}
	return b.gatherModFiles(files, dir)
}

// others returns the part of a content that comes from other projects.
func (c *content) others(of *catalog.Catalog) *content {
	others := &content{bases: c.bases}
	for _, bin := range c.binaries {
		if !of.IsComponent(bin.Binary) {
			others.binaries = append(others.binaries, bin)
		}
	}
	for _, n := range c.notices {
		if len(n.bases) > 0 || !of.IsComponent(n.binaries[0]) {
			others.notices = append(others.notices, n)
		}
	}
	return others
}

// Others plans the part of a release for a platform that comes from other projects, and returns its outputs: files, and folders with
// a final slash. A project of OpenMade needs them in place.
func (p *Project) Others(ctx context.Context, platform catalog.Platform) (g *action.Graph, made []string, err error) {
	c, err := p.resolve(Request{Tars: true, Platforms: []catalog.Platform{platform}})
	if err != nil {
		return nil, nil, err
	}
	b := p.builder(ctx)
	if err := b.actions(c.others(p.Catalog)); err != nil {
		return nil, nil, err
	}
	for name, module := range b.modules {
		if outside := module.FolderOutside(); outside != "" {
			return nil, nil, fmt.Errorf("%s/go.mod replaces a module with the folder %s, which is outside of the tree, but Bazel works in a "+
				"copy of it: "+
				"move the folder into the tree, or use another road", name, outside)
		}
	}
	all := p.builder(ctx)
	if err := all.actions(c); err != nil {
		return nil, nil, err
	}
	if _, err := all.release(c); err != nil {
		return nil, nil, err
	}
	rest := without(all.graph.Actions, b.graph.Actions)
	for _, a := range b.graph.Actions {
		for _, out := range a.Outputs {
			needed := slices.ContainsFunc(rest, func(r *action.Action) bool { return slices.Contains(r.Inputs, out) })
			if a.ID != sourcesAction && needed {
				made = append(made, out)
			}
		}
	}
	return b.graph, made, nil
}

// Digests returns a line for each source that has one of the names, or lies in a folder that does, for which "." is the whole tree: see
// [source.Tree.Digests].
func (p *Project) Digests(ctx context.Context, names []string) ([]byte, error) {
	return p.tree.Digests(ctx, func(source string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return name == "." || source == name || strings.HasPrefix(source, name+"/") })
	})
}

// CopySources copies the sources to dir as a separate tree: builds there do not touch the _output of this one.
func (p *Project) CopySources(ctx context.Context, dir string) error {
	return p.sourceList().Copy(ctx, dir, func(string) bool { return true })
}

// Made names what a release is packed from, besides the sources and the outputs of Others, which are in the tree.
type Made struct {
	Binaries map[string]string // files that Bazel made, by label
	Licenses string            // the folder that GatherLicenses filled
	Status   []byte            // the workspace status
}

// OpenMade reads a tree of unpacked sources, from which a release is packed without compiling anything. It ignores the environment.
func OpenMade(ctx context.Context, dir string, made Made) (*Project, error) {
	settings := Settings{
		DockerRegistry: statusValue(made.Status, registryKey),
		DockerImageTag: statusValue(made.Status, imageTagKey),
	}
	p, err := Load(dir, settings, func(string) string { return "" })
	if err != nil {
		return nil, err
	}
	p.licensed, p.made = made.Licenses, true
	p.road = p.Roads.Made(made.Binaries)
	return p, p.identify(ctx, worktree.Once(p.Root, p.getenv))
}
