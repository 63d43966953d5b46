// Package generate makes the files of the repository that are generated from others (`make update`), checks that they are
// up to date and that everything is well-formed (`make verify`), and prints the help in the comments of the mage targets
// (`make help`).
//
// # What must never be in here
//
// What a release holds, or how it is made. What targets do, except for these three.
package generate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"slipway.build/pkg/cli"
	"slipway.build/pkg/cli/session"
	"slipway.build/pkg/maintain/kit"
	makebazel "slipway.build/pkg/make/bazel"
	"slipway.build/pkg/mechanism/suggest"
	"slipway.build/pkg/release"
	"slipway.build/pkg/tree/self"
)

// A Tree is where files are generated and checked.
type Tree struct {
	Root    string
	Targets fs.FS // the sources of slipway's targets of make
}

// folders hold generated files and nothing else, so that a file that is no longer generated is noticed.
var folders = []string{"docs/reference", "completions", bazelFolder, platformsFolder}

// schemaFile is the JSON schema of release.json.
const schemaFile = "docs/release.schema.json"

// files makes every generated file, by path relative to the root.
func (t Tree) files(ctx context.Context) (map[string][]byte, error) {
	made := map[string][]byte{}
	own, err := t.targets(magefiles)
	if err != nil {
		return nil, err
	}
	if made[targetsFile], err = t.makefile(own); err != nil || !self.IsOwn(t.Root) {
		return made, err
	}
	if made[kit.ArchiveFile], err = t.kit(); err != nil {
		return nil, err
	}
	if made[workspaceFile], err = packWorkspace(t.Root); err != nil {
		return nil, err
	}
	if err := bazel(ctx, t.Root, made); err != nil {
		return nil, err
	}
	if made[schemaFile], err = release.MarshalSchema(); err != nil {
		return nil, err
	}
	command := cli.New(session.IO{Out: io.Discard, Err: io.Discard, Getenv: func(string) string { return "" }})
	command.DisableAutoGenTag = true // no dates
	command.InitDefaultCompletionCmd()
	if err := reference(command, made); err != nil {
		return nil, err
	}
	for name, write := range map[string]func(io.Writer) error{
		"completions/slipway.bash": func(w io.Writer) error { return command.GenBashCompletionV2(w, true) },
		"completions/_slipway":     command.GenZshCompletion,
		"completions/slipway.fish": func(w io.Writer) error { return command.GenFishCompletion(w, true) },
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			return nil, err
		}
		made[name] = b.Bytes()
	}
	return made, nil
}

// kit makes what `slipway init` lays out.
func (t Tree) kit() ([]byte, error) {
	slipways, err := t.targets()
	if err != nil {
		return nil, err
	}
	makefile, err := t.makefile(slipways)
	if err != nil {
		return nil, err
	}
	return kit.Pack(t.Root, makefile)
}

// reference makes a page for each command.
func reference(c *cobra.Command, made map[string][]byte) error {
	if !c.IsAvailableCommand() && c.HasParent() || strings.HasPrefix(c.CommandPath(), "slipway completion") {
		return nil
	}
	var b bytes.Buffer
	if err := doc.GenMarkdown(c, &b); err != nil {
		return err
	}
	made["docs/reference/"+strings.ReplaceAll(c.CommandPath(), " ", "_")+".md"] = b.Bytes()
	for _, sub := range c.Commands() {
		if err := reference(sub, made); err != nil {
			return err
		}
	}
	return nil
}

// UpdateBazel writes the generated files that Bazel reads, as Update does. Patches decide them, too. A tree without them gets none.
func UpdateBazel(ctx context.Context, root string) error {
	if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(bazelFolder))); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	made := map[string][]byte{}
	if err := bazel(ctx, root, made); err != nil {
		return err
	}
	return writeAll(root, made)
}

// What make update updates, in this order: BUILD files name what is generated.
const (
	Code       = "generated-code" // of API packages
	Files      = "generated-files"
	BuildFiles = "BUILD-files"
)

// UpdatesOf returns the names that WHAT= of make update has, or all. The error for another name is a usage error.
func UpdatesOf(what []string) ([]string, error) {
	return choose(what, []string{Code, Files, BuildFiles})
}

// choose returns the names in what, or all, in the order of all.
func choose(what, all []string) ([]string, error) {
	for _, name := range what {
		if !slices.Contains(all, name) {
			return nil, &cli.ExitError{Err: suggest.Unknown("name in WHAT", name, all), Code: 2}
		}
	}
	if len(what) == 0 {
		return all, nil
	}
	return slices.DeleteFunc(slices.Clone(all), func(name string) bool { return !slices.Contains(what, name) }), nil
}

// UpdateBuildFiles runs gazelle to update the BUILD files that people also edit, which only slipway's own repository has.
func (t Tree) UpdateBuildFiles(ctx context.Context) error {
	if !self.IsOwn(t.Root) {
		return nil
	}
	if out, err := output(ctx, t.Root, "go", gazelleCommand("-mode=fix")...); err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(out))
	}
	return nil
}

// UpdateFiles writes the generated files below t.Root, and removes those that are not generated any more.
func (t Tree) UpdateFiles(ctx context.Context) error {
	made, err := t.files(ctx)
	if err != nil {
		return err
	}
	if err := removeLeftovers(t.Root, made, folders...); err != nil {
		return err
	}
	return writeAll(t.Root, made)
}

// removeLeftovers removes the files in folders that are no longer made.
func removeLeftovers(root string, made map[string][]byte, folders ...string) error {
	stale, err := leftovers(root, made, folders...)
	for _, name := range stale {
		err = errors.Join(err, os.Remove(filepath.Join(root, name)))
	}
	return err
}

// writeAll writes files below root, unless they are there already.
func writeAll(root string, made map[string][]byte) error {
	for name, data := range made {
		file := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if old, err := os.ReadFile(file); err == nil && bytes.Equal(old, data) {
			continue
		}
		if err := os.WriteFile(file, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// gazelleCommand returns the arguments of the go command that runs gazelle as //:gazelle does, but without Bazel.
func gazelleCommand(mode string) []string {
	return []string{"tool", "gazelle", "update", mode, "-repo_root=.", "-repo_config=" + bazelFolder + "/repositories.WORKSPACE", "cmd"}
}

// leftovers lists the files in folders that are no longer made.
func leftovers(root string, made map[string][]byte, folders ...string) ([]string, error) {
	var left []string
	for _, folder := range folders {
		err := fs.WalkDir(os.DirFS(root), folder, func(name string, d fs.DirEntry, err error) error {
			if os.IsNotExist(err) {
				return nil
			}
			if err == nil && !d.IsDir() && made[name] == nil {
				left = append(left, name)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return left, nil
}

// outdated lists the generated files that differ from what would be made now.
func (t Tree) outdated(ctx context.Context) ([]string, error) {
	made, err := t.files(ctx)
	if err != nil {
		return nil, err
	}
	names, err := leftovers(t.Root, made, folders...)
	return append(names, differing(t.Root, made)...), err
}

// differing lists files that are not, below root, what was made.
func differing(root string, made map[string][]byte) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(made)) {
		old, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil || !bytes.Equal(old, made[name]) {
			names = append(names, name)
		}
	}
	return names
}

// StaleForBazel describes the files that Bazel reads, and that Update would change, or is empty. It is for a run in the tree, which
// has made the patched modules. Where the tree has none of these files, it makes or updates Bazel's workspace, so nothing is out of date.
func StaleForBazel(ctx context.Context, root string) (string, error) {
	if dir := makebazel.Workspace(root); dir != root {
		return "", updateWorkspace(ctx, root, dir)
	}
	t, err := openForBazel(ctx, root, madePatched)
	if err != nil {
		return "", err
	}
	made := map[string][]byte{}
	if err := t.build(ctx, made); err != nil {
		return "", err
	}
	if names := differing(root, made); len(names) > 0 {
		return strings.Join(names, ", "), nil
	}
	return staleBuildFiles(ctx, root)
}

// staleBuildFiles returns how gazelle would change the BUILD files that people also edit.
func staleBuildFiles(ctx context.Context, root string) (string, error) {
	out, err := output(ctx, root, "go", gazelleCommand("-mode=diff")...)
	switch {
	case err == nil:
		return "", nil
	case diff.MatchString(out):
		return out, nil
	}
	return "", fmt.Errorf("%w: %s", err, strings.TrimSpace(out))
}
