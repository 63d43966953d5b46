package bazel

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"slipway.build/pkg/tree/module"
)

// folder holds the files of this package in a tree, relative to its root. overridesFolder holds the Bazel modules that
// Overrides uses instead of the registry's.
const (
	folder          = "_output/.slipway/bazel"
	overridesFolder = folder + "/overrides"
)

// debianModules maps the Bazel modules that Debian packages to their folders below /usr/share/bazel.
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

// override makes those modules, and a bazelrc whose --config=overrides names them.
func (b *Bazel) override(ctx context.Context) error {
	folder := filepath.Join(b.options.Root, filepath.FromSlash(overridesFolder))
	tools, err := module.Load(b.options.Root, ".")
	if err != nil {
		return err
	}
	key, err := b.overridesKey(tools)
	if err != nil {
		return err
	}
	rcFile := filepath.Join(folder, "bazelrc")
	if rc, err := os.ReadFile(rcFile); err == nil && strings.HasPrefix(string(rc), key) {
		return nil
	}
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	places := map[string]string{"package_metadata": filepath.Join(b.options.Root, "build", "bazel", "package_metadata")}
	for name, dir := range debianModules {
		places[name] = "/usr/share/bazel/" + dir
	}
	for name, parts := range goModules {
		places[name] = filepath.Join(folder, name)
		for below, path := range parts {
			dir, err := b.options.Go.ModuleDir(ctx, b.options.Root, path, "-mod=readonly")
			if err != nil {
				return err
			}
			if err := copyTree(dir, filepath.Join(places[name], below)); err != nil {
				return err
			}
		}
	}
	if err := patchRules(ctx, b.options.Root, places["rules_go"]); err != nil {
		return err
	}
	if err := write(filepath.Join(places["gazelle"], "v2", "go.sum"), ""); err != nil {
		return err
	}
	for _, name := range unusedModules {
		places[name] = filepath.Join(folder, name)
		if err := write(filepath.Join(places[name], "MODULE.bazel"), fmt.Sprintf("module(name = %q)\n", name)); err != nil {
			return err
		}
		if err := write(filepath.Join(places[name], "BUILD.bazel"), ""); err != nil {
			return err
		}
	}
	places["bazel_features"] = filepath.Join(folder, "bazel_features")
	if err := b.copyFeatures(places["bazel_features"]); err != nil {
		return err
	}
	var rc strings.Builder
	fmt.Fprintf(&rc, "common:overrides --registry=file://%s/no-registry\n", folder)
	for name, dir := range places {
		fmt.Fprintf(&rc, "common:overrides --override_module=%s=%s\n", name, dir)
	}
	lines := slices.Sorted(strings.Lines(rc.String()))
	return write(rcFile, key+strings.Join(lines, ""))
}

// overridesKey returns the first line of the bazelrc, which changes with the modules, the patch and the folders.
func (b *Bazel) overridesKey(tools *module.Module) (string, error) {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(goModules)) {
		for _, below := range slices.Sorted(maps.Keys(goModules[name])) {
			r, _ := tools.Require(goModules[name][below])
			_, _ = fmt.Fprintln(h, r.Dependency)
		}
	}
	var failed error
	for _, name := range rulesPatches {
		patch, err := os.ReadFile(filepath.Join(b.options.Root, filepath.FromSlash(name)))
		_, _ = h.Write(patch)
		failed = errors.Join(failed, err)
	}
	return fmt.Sprintf("# Of modules and patches %x, for %s, Debian's from %s.\n", h.Sum(nil), b.options.Root, b.system), failed
}

// rulesPatches are the patches of rules_go that Bazel applies by WORKSPACE and MODULE.bazel.
var rulesPatches = []string{"build/bazel/patches/rules_go.patch", "build/bazel/generated/buildid.patch"}

// patchRules applies them to a copy of rules_go.
func patchRules(ctx context.Context, root, dir string) error {
	for _, name := range rulesPatches {
		c := exec.CommandContext(ctx, "patch", "--quiet", "-p1", "-d", dir, "-i", filepath.Join(root, filepath.FromSlash(name)))
		if out, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("apply %s to rules_go in %s (needs the program patch): %w: %s", name, dir, err, out)
		}
	}
	return nil
}

// copyFeatures copies Debian's bazel_features, and adds a feature that rules_go asks for and the package is too old to know:
// whether Bazel's InstrumentedFilesInfo takes baseline coverage files. Bazel 7 does not.
func (b *Bazel) copyFeatures(dir string) error {
	const ask, knows = "instrumented_files_info_has_baseline_coverage_files", "\n_rules = struct("
	if err := copyTree(b.system+"/usr/share/bazel/tools/features", dir); err != nil {
		return err
	}
	file := filepath.Join(dir, "features.bzl")
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if text := string(data); !strings.Contains(text, ask) {
		if !strings.Contains(text, knows) {
			return fmt.Errorf("%s has no line %q to add a feature after", file, strings.TrimSpace(knows))
		}
		data = []byte(strings.Replace(text, knows, knows+"\n    "+ask+" = False,", 1))
	}
	return write(file, string(data))
}

// copyTree copies the files of a folder. Module zips have no modes, so it makes scripts executable, which rules_go runs.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name := filepath.Join(to, rel)
		if err := write(name, string(data)); err != nil || filepath.Ext(name) != ".sh" {
			return err
		}
		return os.Chmod(name, 0o755)
	})
}

func write(file, text string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(text), 0o666)
}
