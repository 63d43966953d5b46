package generate

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/magefile/mage/parse"

	"slipway.build/pkg/cli"
	"slipway.build/pkg/mechanism/suggest"
)

// A target is a mage target, under the name that make has for it.
type target struct {
	name     string
	synopsis string // the first sentence of its comment
	argument bool   // it takes an argument, so make has other goals for it
	function *parse.Function
}

// targets reads the targets in a folder of magefiles, in the order of their names.
func targets(magefiles string) ([]target, error) {
	names, err := fs.Glob(os.DirFS(magefiles), "*.go")
	if err != nil {
		return nil, err
	}
	info, err := parse.PrimaryPackage("go", magefiles, names, false)
	if err != nil {
		return nil, err
	}
	var found []target
	for _, f := range info.Funcs {
		t := target{name: dashed(f.Name), function: f, synopsis: f.Synopsis, argument: len(f.Args) > 0}
		if f.Receiver != "" {
			t.name = dashed(f.Receiver) + "-" + t.name
		}
		if name := strings.ReplaceAll(t.name, "-", "_"); info.Aliases[name] == f { // as Kubernetes spells generated_files
			t.name = name
		}
		if t.name != strings.ToLower(f.TargetName()) && info.Aliases[t.name] != f {
			return nil, fmt.Errorf("%s: target %s has no alias %q", magefiles, f.TargetName(), t.name)
		}
		found = append(found, t)
	}
	for name, f := range info.Aliases { // other names
		is := func(t target) bool { return t.function == f }
		if !slices.ContainsFunc(found, func(t target) bool { return t.name == name }) {
			same := found[slices.IndexFunc(found, is)]
			found = append(found, target{name: name, function: f, synopsis: "is the same as make " + same.name + "."})
		}
	}
	slices.SortFunc(found, func(a, b target) int { return strings.Compare(a.name, b.name) })
	return found, nil
}

// dashed returns a name as make spells it: quick-release for QuickRelease.
func dashed(name string) string {
	var b strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// Help prints every target of make with the first sentence of its comment in the magefiles.
func Help(w io.Writer, magefiles string) error {
	all, err := targets(magefiles)
	if err != nil {
		return err
	}
	fmt.Fprint(w, "usage: make [TARGET] [VARIABLE=value ...]      (make -n TARGET prints what would be done)\n\n")
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, t := range all {
		name := t.name
		if t.argument {
			name = strings.ToUpper(name)
		}
		fmt.Fprintf(table, "  %s\t%s\n", name, t.synopsis)
	}
	return table.Flush()
}

// HelpFor prints the whole comment of a target. A name that is no target's is a component's.
func HelpFor(w io.Writer, magefiles, name string) error {
	all, err := targets(magefiles)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(t target) bool { return t.name == name && !t.argument })
	if i < 0 {
		i = slices.IndexFunc(all, func(t target) bool { return t.argument })
	}
	_, err = fmt.Fprintf(w, "make %s\n\n%s\n", name, strings.TrimSpace(all[i].function.Comment))
	return err
}

// Goal explains the error of a goal of make that was built as a component. A goal that is not a component may be a misspelled target,
// or a target that make does not know yet.
func Goal(root, name string, err error) error {
	unknown, ok := errors.AsType[*suggest.UnknownError](err)
	if !ok || unknown.Kind != "component" {
		return err
	}
	all, failed := targets(filepath.Join(root, "magefiles"))
	if failed != nil {
		return errors.Join(err, failed)
	}
	names := unknown.Near
	for _, t := range all {
		if t.name == name && !t.argument {
			return fmt.Errorf("target %s is not in %s: run make update", name, targetsFile)
		}
		names = append(names, t.name)
	}
	near := "; see make help and slipway catalog"
	if found := suggest.Near(name, names); len(found) > 0 {
		near = suggest.DidYouMean(found)
	}
	return &cli.ExitError{Err: fmt.Errorf("unknown target or component %q%s", name, near), Code: 2}
}
