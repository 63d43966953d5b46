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
	"slipway.build/pkg/mechanism/suggest"
	"slipway.build/pkg/release"
)

// folders hold generated files and nothing else, so that a file that is no longer generated is noticed.
var folders = []string{"docs/reference", "completions", bazelFolder, platformsFolder}

// schemaFile is the JSON schema of release.json.
const schemaFile = "docs/release.schema.json"

// files makes every generated file, by path relative to the root.
func files(ctx context.Context, root string) (map[string][]byte, error) {
	made := map[string][]byte{}
	if err := bazel(ctx, root, made, makePatched); err != nil {
		return nil, err
	}
	var err error
	if made[targetsFile], err = makefile(root); err != nil {
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
	if err := bazel(ctx, root, made, makePatched); err != nil {
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

// UpdateBuildFiles runs gazelle to update the BUILD files that people also edit.
func UpdateBuildFiles(ctx context.Context, root string) error {
	if out, err := output(ctx, root, "go", gazelleCommand("-mode=fix")...); err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(out))
	}
	return nil
}

// UpdateFiles writes the generated files below root, and removes those that are not generated any more.
func UpdateFiles(ctx context.Context, root string) error {
	made, err := files(ctx, root)
	if err != nil {
		return err
	}
	stale, err := leftovers(root, made)
	if err != nil {
		return err
	}
	for _, name := range stale {
		if err := os.Remove(filepath.Join(root, name)); err != nil {
			return err
		}
	}
	return writeAll(root, made)
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

// leftovers lists the files in the folders of generated files that are no longer made.
func leftovers(root string, made map[string][]byte) ([]string, error) {
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
func outdated(ctx context.Context, root string) ([]string, error) {
	made, err := files(ctx, root)
	if err != nil {
		return nil, err
	}
	names, err := leftovers(root, made)
	return append(names, differing(root, made)...), err
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
// has made the patched modules.
func StaleForBazel(ctx context.Context, root string) (string, error) {
	made := map[string][]byte{}
	if err := bazel(ctx, root, made, madePatched); err != nil {
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
