package generate

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"slipway.build/pkg/cli"
	"slipway.build/pkg/cli/session"
	"slipway.build/pkg/mechanism/suggest"
	"slipway.build/pkg/tree/catalog"
)

// pipelines are the files that services read what to do from, as patterns.
var pipelines = []string{".github/workflows/*.yml", ".github/workflows/*.yaml", ".gitlab-ci.yml", ".prow.yaml", "build/prow-*.yaml"}

// commandKeys are the keys whose values such files have commands in.
var commandKeys = []string{"run", "script", "before_script", "after_script", "command", "args"}

// checkPipelines says which lines of the tree's pipelines are a target of make, or a subcommand or a flag of slipway, that does not exist:
// another version of slipway may have renamed it. It reads lines that begin with make or slipway, and no others.
func (t Tree) checkPipelines() (problem string, err error) {
	targets, err := t.targets(magefiles)
	if err != nil {
		return "", err
	}
	c, err := catalog.Load(t.Root)
	if err != nil {
		return "", err
	}
	var goals []string
	for _, target := range targets {
		goals = append(goals, target.name)
	}
	for _, b := range c.Binaries {
		goals = append(goals, b.Name)
	}
	var problems []string
	for _, pattern := range pipelines {
		files, err := fs.Glob(os.DirFS(t.Root), pattern)
		if err != nil {
			return "", err
		}
		for _, file := range files {
			data, err := os.ReadFile(filepath.Join(t.Root, filepath.FromSlash(file)))
			if err != nil {
				return "", err
			}
			var document yaml.Node
			if err := yaml.Unmarshal(data, &document); err != nil {
				problems = append(problems, fmt.Sprintf("%s: %v", file, err))
				continue
			}
			eachCommand(&document, false, func(line int, command string) {
				if err := checkCommand(strings.Fields(command), goals); err != nil {
					problems = append(problems, fmt.Sprintf("%s:%d: %s: %v", file, line, command, err))
				}
			})
		}
	}
	return strings.Join(problems, "\n"), nil
}

// eachCommand calls f with each line of the commands in a node, and with the node's line in the file.
func eachCommand(n *yaml.Node, commands bool, f func(line int, command string)) {
	if commands && n.Kind == yaml.ScalarNode {
		for command := range strings.Lines(n.Value) {
			f(n.Line, strings.TrimSpace(command))
		}
	}
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode {
			if i%2 == 1 {
				eachCommand(child, slices.Contains(commandKeys, n.Content[i-1].Value), f)
			}
			continue
		}
		eachCommand(child, commands, f)
	}
}

// checkCommand returns what is wrong with a command, if it is make or slipway. It reads the words up to the first that a shell would expand
// or take for more than a word.
func checkCommand(words, goals []string) error {
	if end := slices.IndexFunc(words, func(w string) bool { return strings.ContainsAny(w, "\"'$`;&|<>()") }); end >= 0 {
		words = words[:end]
	}
	if len(words) == 0 {
		return nil
	}
	switch path.Base(words[0]) {
	case "make":
		for _, goal := range words[1:] {
			if !strings.Contains(goal, "=") && !strings.HasPrefix(goal, "-") && !slices.Contains(goals, goal) {
				return suggest.Unknown("target of make", goal, goals)
			}
		}
	case "slipway":
		c, rest, err := cli.New(session.IO{Getenv: os.Getenv}).Find(words[1:])
		if err != nil {
			return err
		}
		c.InitDefaultHelpFlag()
		if c.HasSubCommands() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
			return fmt.Errorf("unknown command %q for %q", rest[0], c.CommandPath())
		}
		if err := c.ParseFlags(rest); err != nil && !strings.Contains(err.Error(), "needs an argument") { // which was left out
			return err
		}
	}
	return nil
}
