package project

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"slipway.build/pkg/make/pack"
	"slipway.build/pkg/tree/module"
	"slipway.build/pkg/tree/stamp"
)

// DirtyReason returns why the tree is dirty, such as "cmd/a.go is not in the commit", or "".
func (p *Project) DirtyReason() string {
	if p.Sources.Why == "" && p.Outside != "" {
		return fmt.Sprintf("go.mod replaces a module by the folder %s, which is not in the commit", p.Outside)
	}
	return p.Sources.Why
}

// CheckFolders returns an error if the tree is clean and a module's go.mod replaces a dependency with a folder that is not in the commit.
// In a dirty tree, which says so in its version, the folder may be anywhere.
func (p *Project) CheckFolders(m *module.Module) error {
	if p.Sources == nil || p.Sources.ID == "" {
		return nil
	}
	names := p.Sources.Names()
	for _, dir := range m.Folders() {
		if !slices.Contains(names, path.Join(m.Name, dir, "go.mod")) {
			return fmt.Errorf("%s/go.mod replaces a module by the folder %s, which is not in the commit: move it into the tree, and commit it",
				m.Name, dir)
		}
	}
	return nil
}

// TreeID identifies what the source tarball holds besides Sources.Files: the commit's content if the tree is clean, and the version file.
// In a dirty tree, Sources.Files are inputs of their own.
func (p *Project) TreeID() string { return p.Sources.ID + "\n" + string(stamp.Marshal(p.Stamp)) }

// SourceList returns the members of the source tarball: the sources, and the file with their version.
func (p *Project) SourceList() pack.List {
	return pack.List(p.Sources.Entries).With(func(ctx context.Context) (pack.Text, error) {
		sources, _, err := p.Sources.Content(ctx)
		version := stamp.VersionFile{Stamp: p.Stamp, Sources: sources}
		return pack.Text{Name: stamp.File, Content: string(version.Marshal())}, err
	})
}

// CopySources copies the sources to dir as a separate tree: builds there do not touch the _output of this one.
func (p *Project) CopySources(ctx context.Context, dir string) error {
	return p.SourceList().Copy(ctx, dir, func(string) bool { return true })
}

// Digests returns a line for each source that has one of the names, or lies in a folder that does, for which "." is the whole tree: see
// [source.Tree.Digests].
func (p *Project) Digests(ctx context.Context, names []string) ([]byte, error) {
	return p.Sources.Digests(ctx, func(source string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return name == "." || source == name || strings.HasPrefix(source, name+"/") })
	})
}

// Keys of the workspace status besides the stamp's.
const (
	sourcesKey  = "STABLE_SOURCES"
	registryKey = "STABLE_KUBE_DOCKER_REGISTRY"
	imageTagKey = "STABLE_KUBE_DOCKER_IMAGE_TAG"
)

// WorkspaceStatus returns what Bazel learns about the tree at each build: the stamp, the sum of the sources, and the image tags.
func (p *Project) WorkspaceStatus(ctx context.Context) ([]byte, error) {
	sum, err := p.Sources.Sum(ctx)
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

// SettingsFromStatus returns the settings that a workspace status has.
func SettingsFromStatus(status []byte) Settings {
	return Settings{DockerRegistry: statusValue(status, registryKey), DockerImageTag: statusValue(status, imageTagKey)}
}

// PackSources writes the source tarball of the tree that dir lies in, with the version in a workspace status. The sources must be
// those that the status was made from. Bazel runs it in its own actions, so it is no action of a graph.
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
	sum, err := p.Sources.Sum(ctx)
	if err != nil {
		return err
	}
	if sum != statusValue(status, sourcesKey) {
		return errChanged("its sources are not those of Bazel's workspace status")
	}
	if err := p.SourceList().Write(ctx, w, p.Stamp.Date); err != nil {
		return err
	}
	return p.Unchanged(ctx)
}

// Abs returns the absolute form of a path relative to the root.
func (p *Project) Abs(path string) string { return filepath.Join(p.Root, filepath.FromSlash(path)) }
