package bazel

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bazelbuild/buildtools/build"

	"slipway.build/pkg/mechanism/archive"
	"slipway.build/pkg/tree/module"
)

// folder holds the files of this package in a tree, relative to its root.
const folder = "_output/.slipway/bazel"

// debianFolder is where Debian's packages are, in the root of a file system.
const debianFolder = "usr/share/bazel"

// debianModules maps the Bazel modules that Debian packages to their folders in debianFolder.
var debianModules = map[string]string{
	"bazel_skylib":  "tools/skylib",
	"platforms":     "tools/platforms",
	"rules_cc":      "rules/cc",
	"rules_java":    "rules/java",
	"rules_license": "rules/license",
	"rules_proto":   "rules/proto",
	"rules_python":  "rules/python",
	"rules_shell":   "rules/shell",
}

// goModules maps Bazel modules to the Go modules that they consist of, by the folder inside the Bazel module.
var goModules = map[string]map[string]string{
	"rules_go": {"": "github.com/bazelbuild/rules_go"},
	"gazelle":  {"": "github.com/bazelbuild/bazel-gazelle", "v2": "github.com/bazel-contrib/bazel-gazelle/v2"},
}

// unusedModules are required by those above, but only for features that no Go binary needs (protocol buffers, their own
// tests), so empty ones are enough.
var unusedModules = []string{"apple_support", "buildozer", "protobuf", "zlib"}

// A registry is a folder that becomes one of Bazel's registries: https://bazel.build/external/registry.
type registry struct {
	dir     string // while it is made
	final   string // absolute
	sources map[string]source
}

// A source is what each version of a module consists of. A registry has the versions that the modules in it ask for, and what a machine
// without the internet has is one version of each.
type source struct {
	module []byte            // its MODULE.bazel
	json   map[string]string // source.json
}

// localRegistry makes a registry of Debian's packages and Go modules, and returns its address. The folder has another name for other
// contents, since Bazel takes it that a registry does not change.
func (b *Bazel) localRegistry(ctx context.Context) (string, error) {
	tools, err := module.Load(b.dir, ".")
	if err != nil {
		return "", err
	}
	asking, err := b.asking()
	if err != nil {
		return "", err
	}
	prefix := filepath.Join(b.options.Root, filepath.FromSlash(folder), "registry-")
	r := &registry{final: prefix + b.registryKey(tools, asking), sources: map[string]source{}}
	address := (&url.URL{Scheme: "file", Path: r.final}).String()
	if _, err := os.Stat(r.final); err == nil {
		return address, nil
	}
	old, err := filepath.Glob(prefix + "*")
	if err != nil {
		return "", err
	}
	for _, dir := range old {
		if err := os.RemoveAll(dir); err != nil {
			return "", err
		}
	}
	r.dir = prefix + "new"
	if err := b.fill(ctx, r); err != nil {
		return "", err
	}
	if err := r.describe(asking); err != nil {
		return "", err
	}
	return address, os.Rename(r.dir, r.final)
}

// platformsOfBazel is asked for by a module that is in Bazel's code, local_config_platform.
const platformsOfBazel = `bazel_dep(name = "platforms", version = "0.0.7")`

// asking returns the files by which Bazel knows which modules it needs first: MODULE.bazel of the workspace with what it includes, and
// those of Bazel's own modules.
func (b *Bazel) asking() (files [][]byte, err error) {
	files = [][]byte{[]byte(platformsOfBazel)}
	names := []string{filepath.Join(b.dir, "MODULE.bazel"), filepath.Join("/", b.system, debianFolder, "embedded_tools", "MODULE.bazel")}
	for i := 0; i < len(names); i++ {
		data, err := os.ReadFile(names[i])
		if err != nil {
			return nil, err
		}
		files = append(files, data)
		file, err := build.ParseModule(names[i], data)
		if err != nil {
			return nil, err
		}
		for _, call := range file.Rules("include") {
			if len(call.Call.List) == 1 {
				label, _ := call.Call.List[0].(*build.StringExpr)
				name := strings.ReplaceAll(strings.TrimPrefix(label.Value, "//"), ":", "/")
				names = append(names, filepath.Join(b.dir, filepath.FromSlash(name)))
			}
		}
	}
	return files, nil
}

// registryKey changes with what decides the registry.
func (b *Bazel) registryKey(tools *module.Module, asking [][]byte) string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(goModules)) {
		for _, below := range slices.Sorted(maps.Keys(goModules[name])) {
			r, _ := tools.Require(goModules[name][below])
			_, _ = fmt.Fprintln(h, r.Dependency)
		}
	}
	_, _ = fmt.Fprintf(h, "%q %q", []string{b.dir, b.system}, asking)
	return fmt.Sprintf("%x", h.Sum(nil)[:8])
}

// fill gathers the sources of all modules.
func (b *Bazel) fill(ctx context.Context, r *registry) error {
	packages := filepath.Join("/", b.system, debianFolder)
	for name, dir := range debianModules {
		if err := r.addFolder(name, filepath.Join(packages, dir), filepath.Join("/", debianFolder, dir)); err != nil {
			return err
		}
	}
	for name, parts := range goModules {
		dirs := map[string]string{}
		for below, path := range parts {
			var err error
			if dirs[below], err = b.options.Go.ModuleDir(ctx, b.dir, path, "-mod=readonly"); err != nil {
				return err
			}
		}
		if err := r.addArchive(name, dirs); err != nil {
			return err
		}
	}
	for _, name := range unusedModules {
		if err := r.addEmpty(name); err != nil {
			return err
		}
	}
	stand := filepath.Join(b.dir, "build", "bazel", "package_metadata")
	return errors.Join(r.addFolder("package_metadata", stand, stand), r.addFeatures(filepath.Join(packages, "tools", "features")))
}

// addFolder adds a module that is in a folder, which Bazel knows by the second name.
func (r *registry) addFolder(name, dir, seen string) error {
	data, err := os.ReadFile(filepath.Join(dir, "MODULE.bazel"))
	r.sources[name] = source{data, map[string]string{"type": "local_path", "path": seen}}
	return err
}

// addEmpty adds a module without anything in it.
func (r *registry) addEmpty(name string) error {
	below := path.Join("sources", name)
	return errors.Join(
		write(filepath.Join(r.dir, below, "MODULE.bazel"), fmt.Sprintf("module(name = %q)\n", name)),
		write(filepath.Join(r.dir, below, "BUILD.bazel"), ""),
		r.addFolder(name, filepath.Join(r.dir, below), filepath.Join(r.final, below)))
}

// addArchive adds a module that is packed, so that Bazel can patch it, of folders by their names in it. Module zips have no modes, so it
// makes scripts executable, which rules_go runs. Gazelle's second module lacks a file that its code names.
func (r *registry) addArchive(name string, dirs map[string]string) error {
	var entries []archive.Entry
	for below, dir := range dirs {
		err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			rel, err := filepath.Rel(dir, file)
			mode := fs.FileMode(0o644)
			if filepath.Ext(file) == ".sh" {
				mode = 0o755
			}
			entries = append(entries, archive.Entry{Name: path.Join(below, filepath.ToSlash(rel)), Mode: mode, Path: file})
			return err
		})
		if err != nil {
			return err
		}
		if below != "" {
			entries = append(entries, archive.Entry{Name: below + "/go.sum", Mode: 0o644})
		}
	}
	slices.SortFunc(entries, func(a, b archive.Entry) int { return strings.Compare(a.Name, b.Name) })
	var tar bytes.Buffer
	if err := archive.Tar(&tar, entries, time.Time{}); err != nil {
		return err
	}
	sum, file := sha256.Sum256(tar.Bytes()), path.Join("sources", name+".tar")
	data, err := os.ReadFile(filepath.Join(dirs[""], "MODULE.bazel"))
	r.sources[name] = source{data, map[string]string{
		"url":       (&url.URL{Scheme: "file", Path: filepath.Join(r.final, file)}).String(),
		"integrity": "sha256-" + base64.StdEncoding.EncodeToString(sum[:]),
	}}
	return errors.Join(err, write(filepath.Join(r.dir, file), tar.String()))
}

// addFeatures adds Debian's bazel_features, and to that a feature that rules_go asks for and the package is too old to know: whether
// Bazel's InstrumentedFilesInfo takes baseline coverage files. Bazel 7 does not.
func (r *registry) addFeatures(from string) error {
	const name, ask, knows = "bazel_features", "instrumented_files_info_has_baseline_coverage_files", "\n_rules = struct("
	below := path.Join("sources", name)
	dir := filepath.Join(r.dir, below)
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		return err
	}
	file := filepath.Join(dir, "features.bzl")
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if text := string(data); !strings.Contains(text, ask) {
		if !strings.Contains(text, knows) {
			return fmt.Errorf("%s has no line %q to add a feature after", filepath.Join(from, "features.bzl"), strings.TrimSpace(knows))
		}
		data = []byte(strings.Replace(text, knows, knows+"\n    "+ask+" = False,", 1))
	}
	return errors.Join(write(file, string(data)), r.addFolder(name, dir, filepath.Join(r.final, below)))
}

// describe writes what Bazel reads of the modules that these MODULE.bazel files ask for, and of those that they ask for in turn.
func (r *registry) describe(asking [][]byte) error {
	versions := map[string][]string{} // by module
	for len(asking) > 0 {
		file, err := build.ParseModule("MODULE.bazel", asking[0])
		if err != nil {
			return err
		}
		asking = asking[1:]
		for _, dep := range file.Rules("bazel_dep") {
			name, version := dep.Name(), dep.AttrString("version")
			if dep.AttrLiteral("dev_dependency") == "True" || slices.Contains(versions[name], version) {
				continue
			}
			s, ok := r.sources[name]
			if !ok {
				return fmt.Errorf("the module %s of Bazel, which %s asks for, is neither a Debian package nor a Go module", name, file.Path)
			}
			text, err := s.describe(filepath.Join(r.dir, "modules", name, version), name, version)
			if err != nil {
				return err
			}
			versions[name], asking = append(versions[name], version), append(asking, text)
		}
	}
	for name, of := range versions {
		slices.Sort(of)
		err := writeJSON(filepath.Join(r.dir, "modules", name, "metadata.json"),
			map[string]any{"versions": of, "yanked_versions": map[string]string{}})
		if err != nil {
			return err
		}
	}
	return writeJSON(filepath.Join(r.dir, "bazel_registry.json"), map[string]string{})
}

// describe writes the files of a version to a folder, and returns its MODULE.bazel.
func (s source) describe(dir, name, version string) ([]byte, error) {
	file, err := build.ParseModule("MODULE.bazel", s.module)
	if err != nil {
		return nil, fmt.Errorf("module %s: %w", name, err)
	}
	for _, m := range file.Rules("module") {
		m.SetAttr("version", &build.StringExpr{Value: version})
	}
	text := build.Format(file)
	return text, errors.Join(write(filepath.Join(dir, "MODULE.bazel"), string(text)), writeJSON(filepath.Join(dir, "source.json"), s.json))
}

func writeJSON(file string, value any) error {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	return write(file, string(data)+"\n")
}

func write(file, text string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(text), 0o666)
}
