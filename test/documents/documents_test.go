package documents

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"slipway.build/pkg/cli"
	"slipway.build/pkg/cli/session"
	"slipway.build/pkg/tree/catalog"
)

// root is the top folder of the tree.
var root = filepath.Join("..", "..")

func TestDocumentsNameWhatExists(t *testing.T) {
	t.Parallel()
	tree := known(t)
	counted := 0
	for _, name := range documents(t) {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		snippets := snippets(string(text))
		counted += len(snippets)
		for _, s := range snippets {
			if err := tree.check(s, string(text)); err != nil {
				t.Errorf("%s:%d: %s: %v", name, s.line, s.text, err)
			}
		}
		if strings.Contains(string(text), "```go\n") {
			t.Errorf("%s has a snippet in Go, which nothing compiles: make it an Example function", name)
		}
		for _, err := range links(name, string(text)) {
			t.Error(err)
		}
	}
	if counted < 300 {
		t.Errorf("found only %d commands and names in documents", counted)
	}
}

func TestMadeUpCommandsAreFound(t *testing.T) {
	t.Parallel()
	tree := known(t)
	for text, want := range map[string]string{
		"slipway launch":                              "unknown command",
		"slipway release --fast":                      "unknown flag: --fast",
		"slipway release --quick=perhaps":             "invalid",
		"slipway verify a b":                          "at most 1 arg",
		"slipway catalog bugs":                        "invalid argument",
		"sudo slipway cluster fly --nodes 2":          "unknown command",
		"export KUBECONFIG=$(slipway cluster config)": "unknown command",
		"make slipway # or: slipway realease":         "unknown command",
		"A=b ROAD=local make launch":                  "launch",
		"make WHAT=cmd/kubecuttle":                    "kubecuttle",
		"make test WHAT=./pkg/nothing":                "pkg/nothing",
		"slipway run -- make launch":                  "launch",
		"slipway bazel -- build //cmd/nothing":        "cmd/nothing",
		"bazel test //pkgs/...":                       "pkgs",
		"cd images/etc && go mod tidy":                "images/etc",
		"go test ./docs":                              "no Go files",
		"go test -tags integration ./test/integral":   "test/integral",
		"$ make quick-releases":                       "quick-releases",
	} {
		document := "# A document\n\n```sh\n" + text + "\n```\n"
		err := errors.New("no command found")
		if found := snippets(document); len(found) == 1 {
			err = tree.check(found[0], document)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", text, err, want)
		}
	}
	for text, want := range map[string]string{
		"Run `make lunch`.":                 "lunch",
		"See `pkg/tree/nothing`.":           "pkg/tree/nothing",
		"    make lunch\n":                  "lunch",
		"```console\n$ make lunch\nok\n```": "lunch",
	} {
		found := snippets("Text.\n\n" + text)
		if len(found) != 1 {
			t.Errorf("%q: found %v", text, found)
		} else if err := tree.check(found[0], text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %q", text, err, want)
		}
	}
	if errs := links("docs/new.md", "[one](missing.md), [two](../README.md#where), [three](https://example.com/x)"); len(errs) != 1 {
		t.Errorf("links: %v", errs)
	}
}

// documents lists the documents that people write: docs/reference is generated, from the command tree itself.
func documents(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, pattern := range []string{"*.md", "docs/*.md", "images/*/README.md", "release/manifests/README.md"} {
		found, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v, %v", pattern, found, err)
		}
		for _, name := range found {
			rel, err := filepath.Rel(root, name)
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, filepath.ToSlash(rel))
		}
	}
	return names
}

// A snippet is a line of commands, or a name in running text.
type snippet struct {
	line   int
	text   string
	inline bool
}

var (
	codeSpan  = regexp.MustCompile("`([^`]+)`")
	plainName = regexp.MustCompile(`^[\w.@/-]+$`)
)

// snippets returns the commands of a document: the lines of blocks of sh and of indented blocks, those after a prompt in
// blocks of console, and the code in running text that is a command or the name of a file.
func snippets(text string) []snippet {
	var found []snippet
	fence, continued, before := "", "", ""
	for i, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		indented := strings.HasPrefix(line, "    ")
		switch {
		case strings.HasPrefix(trimmed, "```"):
			if fence == "" {
				fence = strings.TrimPrefix(trimmed, "```") + " "
			} else {
				fence = ""
			}
		case fence == "sh " || fence == "console " || fence == "" && indented && (before == "" || strings.HasPrefix(before, "    ")):
			command, prompted := strings.CutPrefix(trimmed, "$ ")
			if fence == "console " && !prompted {
				break
			}
			if joined, more := strings.CutSuffix(command, `\`); more {
				continued += joined
				break
			}
			if command = continued + command; isCommand(command) {
				found = append(found, snippet{line: i + 1, text: command})
			}
			continued = ""
		case fence == "":
			for _, m := range codeSpan.FindAllStringSubmatch(line, -1) {
				message := strings.Contains(m[1], ": ")
				if isCommand(m[1]) && !message || plainName.MatchString(m[1]) && inTree(m[1]) {
					found = append(found, snippet{line: i + 1, text: m[1], inline: true})
				}
			}
		}
		before = line
	}
	return found
}

// isCommand reports whether a line has a command that this test checks.
func isCommand(line string) bool {
	for _, words := range commands(line) {
		if slices.Contains([]string{"slipway", "make", "bazel", "go", "cd"}, filepath.Base(words[0])) {
			return true
		}
	}
	return false
}

// shellWord is a word of a shell's line, or what separates commands. Quotes are kept, and so is $(…) in them.
var shellWord = regexp.MustCompile(`"[^"]*"|'[^']*'|\$\(|&&|\|\||[;|()<>]|[^\s;|()<>"']+(?:"[^"]*"|'[^']*')?`)

// commands splits a line into commands, each a list of words. A command in a comment begins with "or:".
func commands(line string) [][]string {
	code, comment, _ := strings.Cut(line, " #")
	code = strings.TrimSuffix(strings.TrimSpace(code), "…")
	var all [][]string
	var words []string
	end := func() {
		for len(words) > 0 && (slices.Contains([]string{"sudo", "env", "export", "then", "do", "if"}, words[0]) || assignment(words[0])) {
			words = words[1:]
		}
		if len(words) > 0 {
			all = append(all, words)
		}
		words = nil
	}
	if strings.HasPrefix(code, "#") {
		code, comment = "", code[1:]
	}
	for _, word := range shellWord.FindAllString(code, -1) {
		switch {
		case strings.ContainsAny(word[:1], `;|()<>&`) || word == "$(" || strings.HasSuffix(word, "=$"):
			end()
		case strings.HasPrefix(word, `"$(`):
			all = append(all, commands(strings.TrimSuffix(word[3:], `)"`))...)
			words = append(words, "SUBSTITUTED")
		default:
			words = append(words, word)
		}
	}
	end()
	if _, other, ok := strings.Cut(comment, "or: "); ok {
		all = append(all, commands(other)...)
	}
	return all
}

func assignment(word string) bool {
	name, _, ok := strings.Cut(word, "=")
	return ok && regexp.MustCompile(`^[A-Z_]+$`).MatchString(name)
}

// existing holds what commands in documents may name.
type existing struct {
	targets    map[string]bool
	components map[string]bool
	slipway    func() *cobra.Command
}

// known reads what exists from the make targets, release.yaml and the command tree.
func known(t *testing.T) existing {
	t.Helper()
	makefile, err := os.ReadFile(filepath.Join(root, "build", "targets.mk"))
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(makefile), "\nTARGETS := ")
	list, _, _ = strings.Cut(list, "\n\n")
	if !strings.Contains(list, "quick-release") {
		t.Fatalf("build/targets.mk has no TARGETS: %q", list)
	}
	all, err := catalog.Load(root)
	if err != nil {
		t.Fatal(err)
	}
	found := existing{targets: map[string]bool{}, components: map[string]bool{}}
	for _, target := range strings.Fields(strings.ReplaceAll(list, "\\", "")) {
		found.targets[target] = true
	}
	for _, binary := range all.Binaries {
		found.components[binary.Name] = true
	}
	found.slipway = func() *cobra.Command {
		c := cli.New(session.IO{Out: io.Discard, Err: io.Discard, Getenv: func(string) string { return "" }})
		c.InitDefaultCompletionCmd()
		return c
	}
	return found
}

var declared = regexp.MustCompile(`\{name: ([\w-]+), package: \./`)

// check returns what is wrong with a snippet. A document may declare components of its own.
func (k existing) check(s snippet, document string) error {
	k.components = maps.Clone(k.components)
	for _, m := range declared.FindAllStringSubmatch(document, -1) {
		if k.components[m[1]] = true; strings.HasPrefix(s.text, "cmd/"+m[1]+"/") {
			return nil
		}
	}
	if s.inline && !isCommand(s.text) {
		return exists(s.text)
	}
	for _, words := range commands(s.text) {
		if err := k.command(words); err != nil {
			return err
		}
	}
	return nil
}

// command checks a command by the command tree, the make targets and the files, without running it.
func (k existing) command(words []string) error {
	name, args := filepath.Base(words[0]), words[1:]
	if i := slices.Index(args, "--"); i >= 0 && (name == "slipway" && len(args) > 0 && args[0] == "run") {
		if rest := commands(strings.Join(args[i+1:], " ")); len(rest) > 0 {
			if err := k.command(rest[0]); err != nil {
				return err
			}
		}
	}
	switch name {
	case "slipway":
		for _, arg := range args {
			if err := label(arg); err != nil {
				return err
			}
		}
		return k.subcommand(args)
	case "make":
		return k.goals(args)
	case "bazel":
		for _, arg := range args {
			if err := label(arg); err != nil {
				return err
			}
		}
	case "go":
		if len(args) > 0 && (args[0] == "test" || args[0] == "vet") {
			for _, arg := range args[1:] {
				if strings.HasPrefix(arg, "./") {
					if err := goPackage(arg); err != nil {
						return err
					}
				}
			}
			return nil
		}
	}
	for _, arg := range args {
		if plainName.MatchString(arg) && inTree(arg) {
			if err := exists(arg); err != nil {
				return err
			}
		}
	}
	return nil
}

// subcommand checks the arguments of slipway.
func (k existing) subcommand(args []string) error {
	for i, arg := range args {
		args[i] = strings.Trim(arg, `"'`)
	}
	c, rest, err := k.slipway().Find(args)
	if err != nil {
		return err
	}
	if c.HasSubCommands() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		return fmt.Errorf("unknown command %q for %s", rest[0], c.CommandPath())
	}
	c.InitDefaultHelpFlag()
	if err := c.ParseFlags(rest); err != nil {
		return err
	}
	if len(c.Flags().Args()) == 0 { // a mention of the subcommand
		return nil
	}
	return c.ValidateArgs(c.Flags().Args())
}

// goals checks the arguments of make.
func (k existing) goals(args []string) error {
	other := slices.ContainsFunc(args, func(goal string) bool { // WHAT names upstream's suites there, parts, or checks
		return slices.Contains([]string{"test-cmd", "soak", "verify", "update"}, goal)
	})
	for _, arg := range args {
		arg = strings.Trim(arg, `"'`)
		if arg == "TARGET" || strings.HasPrefix(arg, "-") {
			continue
		}
		if variable, value, ok := strings.Cut(arg, "="); ok {
			if variable != "WHAT" || other {
				continue
			}
			for _, what := range strings.Fields(strings.Trim(value, `"'`)) {
				if strings.HasPrefix(what, "./") {
					if err := goPackage(what); err != nil {
						return err
					}
				} else if strings.HasPrefix(what, "k8s.io/") {
					if err := required(what); err != nil {
						return err
					}
				} else if !k.components[strings.TrimPrefix(what, "cmd/")] {
					return fmt.Errorf("no component %s", what)
				}
			}
		} else if !k.targets[arg] && !k.components[arg] && arg != "NAME" {
			return fmt.Errorf("no target or component %s", arg)
		}
	}
	return nil
}

// required checks that the components' go.mod requires the module of one of Kubernetes' packages.
func required(pkg string) error {
	elements := strings.SplitN(pkg, "/", 3)
	data, err := os.ReadFile(filepath.Join(root, "cmd", "go.mod"))
	if err == nil && !bytes.Contains(data, []byte("\t"+elements[0]+"/"+elements[1]+" v")) {
		return fmt.Errorf("cmd/go.mod requires no module of %s", pkg)
	}
	return err
}

// label checks that a label of Bazel is in a folder of the tree.
func label(arg string) error {
	_, path, ok := strings.Cut(arg, "//")
	if !ok || strings.Contains(arg, "://") || strings.HasPrefix(arg, "@") {
		return nil
	}
	path, _, _ = strings.Cut(path, ":")
	if path = strings.TrimSuffix(strings.TrimSuffix(path, "..."), "/"); path == "" {
		return nil
	}
	return exists(path)
}

// goPackage checks that a pattern such as ./pkg/... names Go packages.
func goPackage(pattern string) error {
	dir, deep := strings.CutSuffix(pattern, "/...")
	if err := exists(dir); err != nil || deep {
		return err
	}
	if files, _ := filepath.Glob(filepath.Join(root, dir, "*.go")); len(files) == 0 {
		return fmt.Errorf("%s has no Go files", dir)
	}
	return nil
}

// inTree reports whether a name is of a file in one of the tree's folders. Names in capitals stand for others.
func inTree(name string) bool {
	first, rest, ok := strings.Cut(strings.TrimPrefix(name, "./"), "/")
	return ok && !strings.HasPrefix(name, "release/checks") && name != "release/lines.yaml" && // only distributions have these
		rest != "" && !regexp.MustCompile(`\b[A-Z]{2,}\b`).MatchString(strings.TrimSuffix(name, ".md")) &&
		slices.Contains([]string{"build", "cmd", "completions", "docs", "images", "magefiles", "pkg", "release", "test"}, first)
}

func exists(name string) error {
	_, err := os.Stat(filepath.Join(root, filepath.FromSlash(name)))
	return err
}

var linked = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// links returns the relative links of a document that lead nowhere.
func links(document, text string) []error {
	var wrong []error
	for _, m := range linked.FindAllStringSubmatch(text, -1) {
		name, _, _ := strings.Cut(m[1], "#")
		if name == "" || strings.Contains(name, "://") || strings.HasPrefix(name, "mailto:") {
			continue
		}
		if err := exists(filepath.Join(filepath.Dir(filepath.FromSlash(document)), filepath.FromSlash(name))); err != nil {
			wrong = append(wrong, fmt.Errorf("%s: link to %s: %w", document, m[1], err))
		}
	}
	return wrong
}
