package plan

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"slipway.build/pkg/build/license"
	bazelroad "slipway.build/pkg/build/road/bazel"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/archive"
	"slipway.build/pkg/tree/catalog"
	"slipway.build/pkg/tree/stamp"
)

// What Bazel runs to make a release inside of its own actions. They have neither the Go tool nor modules, a network or git, so what
// takes those is done in steps of their own: GatherLicenses and Others before anything is built, PackSources in the tree, and all else
// by a project of OpenMade, on the unpacked sources.

// Keys of the workspace status besides the stamp's.
const (
	sourcesKey  = "STABLE_SOURCES"
	registryKey = "STABLE_KUBE_DOCKER_REGISTRY"
	imageTagKey = "STABLE_KUBE_DOCKER_IMAGE_TAG"
)

// WorkspaceStatus is what Bazel is told of the tree at each build: the stamp, which sources these are, and how images are tagged.
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

// statusValue is what a workspace status says of a key, or "".
func statusValue(status []byte, key string) string {
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, key+" "); ok {
			return strings.TrimSuffix(value, "\n")
		}
	}
	return ""
}

// PackSources writes the source tarball of the tree that dir lies in, by the version that a workspace status says. The sources have
// to be those that the status was made of.
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
		return errChanged("its sources are not those that Bazel was told of")
	}
	entries, err := p.sourceEntries(ctx)
	if err != nil {
		return err
	}
	packer := archive.Packer{Time: p.Stamp.Date}
	if err := packer.TarGz(ctx, w, entries); err != nil {
		return err
	}
	return p.Unchanged(ctx)
}

// GatherLicenses fills dir with the license files of every module that the components of a release for a platform link.
func (p *Project) GatherLicenses(ctx context.Context, dir string, platform catalog.Platform) error {
	module, err := loadModule(p.Root, p.Catalog.Module)
	if err != nil {
		return err
	}
	b := &builder{Project: p}
	components := b.components(catalog.Server, platform)
	if len(components.binaries) == 0 {
		return fmt.Errorf("%s: the release has no binaries for it", platform)
	}
	tmp, err := os.MkdirTemp("", "slipway-licenses-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	packages := filepath.Join(tmp, "packages.json")
	if err := license.ListPackages(ctx, packages, p.Root, p.Go, b.listSpec(components, platform, module)); err != nil {
		return err
	}
	g, err := p.Go(ctx, nil)
	if err != nil {
		return err
	}
	src := license.Source{ModCache: g.ModCache, ModRoot: module.Dir, GOROOT: g.Root, Packages: packages}
	return license.Gather(ctx, dir, src)
}

// Others plans what a release for a platform holds of other projects, and names it: files, and folders with a final slash. A project
// of OpenMade wants to have them in their places.
func (p *Project) Others(ctx context.Context, platform catalog.Platform) (g *action.Graph, made []string, err error) {
	b := p.builder(ctx)
	b.sources()
	if _, err := b.addonLicenses(catalog.Server, platform); err != nil { // which are of compiled programs
		return nil, nil, err
	}
	b.debianLicenses(catalog.Server, platform)
	for name, module := range b.modules {
		if module.HasFolders() {
			return nil, nil, fmt.Errorf("%s/go.mod replaces a module by a folder, and Bazel gets modules by version and sum: "+
				"take another road, or replace it by a module of your own", name)
		}
	}
	return b.graph, b.made, nil
}

// ofOthers notes what a release holds of other projects, and reports whether it is there already.
func (b *builder) ofOthers(made string) bool {
	b.made = append(b.made, made)
	return b.others
}

// CopySources makes a tree of its own of the sources, in dir: what is made of it has nothing to do with the _output of this one.
func (p *Project) CopySources(ctx context.Context, dir string) error {
	entries, err := p.sourceEntries(ctx)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := copySource(e, filepath.Join(dir, filepath.FromSlash(e.Name))); err != nil {
			return err
		}
	}
	return nil
}

// Made is what a release is packed from besides the sources, and what Others plans, which is in the tree.
type Made struct {
	Binaries map[string]string // by label: what Bazel made
	Licenses string            // the folder that GatherLicenses filled
	Status   []byte            // the workspace status
}

// OpenMade reads a tree of unpacked sources of which a release is packed without compiling anything. Nothing of the environment
// has a say.
func OpenMade(ctx context.Context, dir string, made Made) (*Project, error) {
	settings := Settings{
		Road:           bazelroad.Info.Name,
		DockerRegistry: statusValue(made.Status, registryKey),
		DockerImageTag: statusValue(made.Status, imageTagKey),
	}
	p, err := load(dir, settings, func(string) string { return "" })
	if err != nil {
		return nil, err
	}
	p.licensed, p.others = made.Licenses, true
	p.road = &bazelroad.Made{Root: p.Root, Version: p.pin().Version, Files: made.Binaries}
	return p, p.identify(ctx)
}
