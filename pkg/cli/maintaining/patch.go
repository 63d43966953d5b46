package maintaining

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	gomod "golang.org/x/mod/module"

	"slipway.build/pkg/cli/session"
	"slipway.build/pkg/maintain/bump"
	"slipway.build/pkg/maintain/patching"
	"slipway.build/pkg/make/gitsource"
	"slipway.build/pkg/make/patched"
	"slipway.build/pkg/make/project"
	"slipway.build/pkg/make/toolchain"
	"slipway.build/pkg/make/upstream"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/tree/catalog"
	"slipway.build/pkg/tree/input"
	"slipway.build/pkg/tree/patch"
)

func newPatch(o commands) *cobra.Command {
	c := &cobra.Command{
		Use:   "patch",
		Short: "Edit, add, list and drop the patches of the tree",
		Long: `patch edits the patches that the tree makes to upstream's code: patches/*.patch are for Kubernetes, images/NAME/patches/*.patch
for another project. They have the form of "git format-patch", with the paths of upstream's repository, and apply in the
order of their names.

A project is k8s.io/kubernetes, which is the default, a folder below images/, such as etcd, or a module that one of these links:
golang.org/x/net is that of Kubernetes, with patches/golang.org/x/net/*.patch, and etcd/golang.org/x/net that of etcd.`,
		Example: "  slipway patch edit                      # then change and commit in _output/edit/kubernetes\n" +
			"  slipway patch save\n  slipway patch add 12345.patch\n  slipway patch list",
		Args: session.OnlySubcommands,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newPatchEdit(o), newPatchSave(o), newPatchAdd(o), newPatchList(o), newPatchDrop(o))
	return c
}

func newPatchEdit(o commands) *cobra.Command {
	var dir string
	var force bool
	c := &cobra.Command{
		Use:   "edit [project]",
		Short: "Lay out upstream's repository with the patches as commits",
		Long: `edit lays out a project's repository in _output/edit, at the version that the tree takes, as a git repository: upstream's code
is tagged with its version, and each patch is a commit after it. Kubernetes' staging modules are in place. Change and commit
there, also with git rebase, and then run "slipway patch save". Of a module that is linked, edit lays out that alone.

If a patch does not apply, edit stops there as git am does, with conflict markers. Resolve them, and run "git am --continue" in the
copy, which goes on with the patches after it.

An existing copy is used again. Edit never throws away work that is in no patch, unless --force is given.`,
		Example:           "  slipway patch edit\n  slipway patch edit etcd --dir ~/src/etcd\n  slipway patch edit golang.org/x/net",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: o.completeProjects,
		RunE: func(c *cobra.Command, args []string) error {
			edit := func(w *patching.Workspace) (*patching.Edited, error) { return w.Edit(c.Context(), force) }
			return inWorkspace(c.Context(), o, "edit", args, dir, edit, o.sayEdited)
		},
	}
	c.Flags().StringVar(&dir, "dir", "", "the folder to lay it out in (default _output/edit/PROJECT)")
	c.Flags().BoolVar(&force, "force", false, "lay it out anew, and throw away what is in the copy and in no patch")
	return c
}

func (o commands) sayEdited(e *patching.Edited, w *patching.Workspace) error {
	o.notePassedOver(e.PassedOver)
	for _, m := range e.Missing {
		fmt.Fprintln(o.Err, "slipway:", m)
	}
	for _, name := range e.Merged {
		fmt.Fprintf(o.Err, "slipway: %s applies only by a three-way merge: look at its commit, and save it\n", name)
	}
	text := fmt.Sprintf("%s: %s %s with %s", o.relative(e.Copy), w.Project, e.Version, patches(e.Patches))
	if e.State == patching.Kept {
		text += ", laid out before"
	}
	if e.Unsaved != "" {
		text += ", and " + e.Unsaved
	}
	_, err := fmt.Fprintf(o.Out, "%s\nChange and commit there, and then run: %s\n", text, command("save", w))
	return err
}

func patches(n int) string {
	switch n {
	case 0:
		return "no patches"
	case 1:
		return "1 patch"
	}
	return fmt.Sprintf("%d patches", n)
}

func newPatchSave(o commands) *cobra.Command {
	var dir string
	var force bool
	c := &cobra.Command{
		Use:   "save [project]",
		Short: "Write the commits of the copy back as patches",
		Long: `save writes each commit after upstream's as a patch, in the form of "git format-patch", the same bytes on every machine. The
files of commits that did not change stay as they are. Patches whose commits are gone are removed. Everything that changes does so
in one step.`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: o.completeProjects,
		RunE: func(c *cobra.Command, args []string) error {
			save := func(w *patching.Workspace) (*patching.Saved, error) { return w.Save(c.Context(), force) }
			return inWorkspace(c.Context(), o, "save", args, dir, save, o.saySaved)
		},
	}
	c.Flags().StringVar(&dir, "dir", "", "the folder that edit laid out (default _output/edit/PROJECT)")
	c.Flags().BoolVar(&force, "force", false, "also replace patches that have changed since they were laid out")
	return c
}

func (o commands) saySaved(s *patching.Saved, w *patching.Workspace) error {
	o.notePassedOver(s.PassedOver)
	if s.Stale != "" {
		fmt.Fprintf(o.Err, "slipway: %s has %s, but the tree takes %s: run %s to see whether the patches apply to it\n",
			o.relative(s.Copy), s.Version, s.Stale, command("edit", w))
	}
	for _, name := range s.Written {
		fmt.Fprintln(o.Out, "wrote", name)
	}
	for _, r := range s.Renamed {
		fmt.Fprintln(o.Out, "renamed", r.From, "to", r.To)
	}
	for _, name := range s.Removed {
		fmt.Fprintln(o.Out, "removed", name)
	}
	if n := len(s.Kept); n > 0 {
		fmt.Fprintln(o.Out, patches(n), "unchanged")
	} else if len(s.Written)+len(s.Renamed)+len(s.Removed) == 0 {
		fmt.Fprintln(o.Out, "no commits, and no patches")
	}
	return nil
}

func newPatchAdd(o commands) *cobra.Command {
	var project, name string
	var force, overrides bool
	c := &cobra.Command{
		Use:   "add file|-",
		Short: "Add a patch after the others",
		Long: `add copies a patch into the tree: the output of git format-patch, git diff, or a pull request's .patch, from a file or standard
input. It goes after the others, so the name gets a number if it needs one. A patch that does not apply is refused; with --force,
it is added, and "slipway patch edit" resolves it.

If the patch raises modules in a go.mod, these are overrides (see "slipway override"). Add names them and stops; with --overrides, it
declares them, for the go.mod of the project that is patched.`,
		Example: "  slipway patch add 12345.patch\n  git diff | slipway patch add --project etcd --name faster -",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			var data []byte
			var err error
			if args[0] == "-" {
				data, err = io.ReadAll(c.InOrStdin())
			} else {
				data, err = os.ReadFile(args[0])
			}
			if errors.Is(err, fs.ErrNotExist) {
				return badrequest.Mark(fmt.Errorf("%w: name a file, or - for standard input", err))
			}
			if err != nil {
				return err
			}
			if name == "" && args[0] != "-" {
				name = filepath.Base(args[0])
			}
			add := func(w *patching.Workspace) (*patching.Added, error) {
				added, err := w.Add(c.Context(), name, data, force)
				if lacking, ok := errors.AsType[*patch.Conflict](err); overrides && ok && len(lacking.Raises) > 0 {
					return o.addWithOverrides(c.Context(), w, name, data, lacking.Raises)
				}
				return added, err
			}
			return inWorkspace(c.Context(), o, "add", []string{project}, "", add, o.sayAdded)
		},
	}
	c.Flags().StringVar(&project, "project", upstream.Kubernetes, "the project to patch")
	c.Flags().StringVar(&name, "name", "", "the patch's name (default the file's, or the title of its commit)")
	c.Flags().BoolVar(&force, "force", false, "add the patch even if it does not apply, or changes nothing")
	c.Flags().BoolVar(&overrides, "overrides", false, "override the modules that the patch raises in a go.mod")
	c.MarkFlagsMutuallyExclusive("force", "overrides")
	_ = c.RegisterFlagCompletionFunc("project", o.completeProjects)
	return c
}

// addWithOverrides raises modules, and adds a patch that requires that: both, or nothing. If the patch has nothing else, it is not added.
func (o commands) addWithOverrides(ctx context.Context, w *patching.Workspace, name string, data []byte, raises []gomod.Version) (
	*patching.Added, error) {
	added, err := w.Try(ctx, name, data, raises)
	nothingElse := session.Is[*patch.NoEffectError](err)
	if err != nil && !nothingElse {
		return nil, err
	}
	p, err := patch.Parse(name, data)
	if err != nil {
		return nil, err
	}
	fixes, err := p.Fixes()
	if err != nil {
		return nil, err
	}
	reason := cmp.Or(p.Title(), name, "required by a patch")
	if err := o.undoBump(ctx, w.Root); err != nil {
		return nil, err
	}
	var all []catalog.Override
	for _, m := range raises {
		all = append(all, catalog.Override{Module: m.Path, Version: m.Version, Fixes: fixes, Reason: reason, In: []string{w.GoModule()}})
	}
	options := bump.Options{Root: w.Root, Getenv: o.Getenv, Say: o.Say}
	if nothingElse {
		added = &patching.Added{Title: p.Title(), Verdict: patch.NoEffect.String()}
	} else {
		options.Patch, options.PatchData = added.Patch, data
	}
	report, err := bump.Override(ctx, options, all...)
	if err != nil {
		return nil, err
	}
	for _, m := range report.Moves {
		o.Say(fmt.Sprintf("%s: %s to %s (%s)", m.What, m.From, m.To, m.Why))
	}
	return added, nil
}

func (o commands) sayAdded(a *patching.Added, _ *patching.Workspace) error {
	o.notePassedOver(a.PassedOver)
	if a.Patch == "" {
		_, err := fmt.Fprintln(o.Out, "declared overrides, which are all that the patch changes")
		return err
	}
	text := a.Verdict
	if n := a.Offset; n != 0 {
		text += ", moved by " + countLines(n)
	}
	_, err := fmt.Fprintf(o.Out, "added %s: %s\n", a.Patch, text)
	return err
}

func newPatchList(o commands) *cobra.Command {
	return &cobra.Command{
		Use:   "list [project]",
		Short: "List the patches, and whether they apply",
		Long: `list shows of each patch whether it applies to the version that the tree takes, how many lines its hunks have moved at most,
whether upstream has it already, where it conflicts, or that it has no effect on what is compiled. In the last two cases,
the exit code is 1.`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: o.completeProjects,
		RunE: func(c *cobra.Command, args []string) error {
			workspaces, err := o.workspaces(args, "")
			if err != nil {
				return err
			}
			list := []patching.Listed{}
			for _, w := range workspaces {
				some, err := w.List(c.Context())
				if err != nil {
					return err
				}
				list = append(list, some...)
			}
			if err := o.Answer(list, func(w io.Writer) error { return writePatches(w, list) }); err != nil {
				return err
			}
			var unusable []error
			for _, l := range list {
				unusable = append(unusable, l.Err)
			}
			return errors.Join(unusable...)
		},
	}
}

func writePatches(w io.Writer, list []patching.Listed) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(w, "no patches")
		return err
	}
	if err := session.WriteTable(w, "PATCH\tSTATE\tMOVED\tTITLE", func(row func(...string)) {
		for _, l := range list {
			moved := "-"
			if l.Offset != 0 {
				moved = countLines(l.Offset)
			}
			row(l.Patch, l.Verdict, moved, l.Title)
		}
	}); err != nil {
		return err
	}
	for _, l := range list {
		for _, s := range l.PassedOver {
			fmt.Fprintf(w, "%s: passes over %s (%s)\n", l.Patch, s.File, s.Why)
		}
	}
	return nil
}

// countLines returns a signed number of lines in words.
func countLines(n int) string {
	if n == 1 || n == -1 {
		return fmt.Sprintf("%+d line", n)
	}
	return fmt.Sprintf("%+d lines", n)
}

func newPatchDrop(o commands) *cobra.Command {
	var project string
	var force bool
	c := &cobra.Command{
		Use:   "drop name",
		Short: "Remove a patch",
		Long: `drop removes a patch, by its file's name or a part of it that no other has. If patches after it need it, it stays, unless --force
is given.`,
		Example: "  slipway patch drop 0003",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			type dropped struct {
				Patch string `json:"patch"`
			}
			drop := func(w *patching.Workspace) (dropped, error) {
				name, err := w.Drop(c.Context(), args[0], force)
				return dropped{name}, err
			}
			return inWorkspace(c.Context(), o, "drop", []string{project}, "", drop, func(gone dropped, _ *patching.Workspace) error {
				_, err := fmt.Fprintln(o.Out, "removed", gone.Patch)
				return err
			})
		},
	}
	c.Flags().StringVar(&project, "project", upstream.Kubernetes, "the project that it patches")
	c.Flags().BoolVar(&force, "force", false, "remove it even if other patches need it")
	_ = c.RegisterFlagCompletionFunc("project", o.completeProjects)
	return c
}

// inWorkspace carries out a command for a project, under the tree's lock, and prints the result: by show, or as JSON.
func inWorkspace[T any](ctx context.Context, o commands, command string, args []string, dir string,
	do func(*patching.Workspace) (T, error), show func(T, *patching.Workspace) error) error {
	if len(args) == 0 {
		args = []string{upstream.Kubernetes}
	}
	workspaces, err := o.workspaces(args, dir)
	if err != nil {
		return err
	}
	w := workspaces[0]
	var result T
	if err := action.Locked(ctx, w.Root, project.State, o.NoteWaiting, func() (err error) {
		if result, err = do(w); err != nil {
			err = o.explain(err, w, command)
		}
		return err
	}); err != nil {
		return err
	}
	if command != "edit" && patch.SeriesNamed(w.Project).Project == "" {
		o.updateBazel(ctx, w.Root)
	}
	return o.Answer(result, func(io.Writer) error { return show(result, w) })
}

// updateBazel makes Bazel's files those of the patches that there are now, in a tree that has such files. The patches are in place
// already, so a failure is no error: it is printed with what to do.
func (o commands) updateBazel(ctx context.Context, root string) {
	config := filepath.Join(root, filepath.FromSlash(patched.BazelConfig))
	before, err := os.ReadFile(config)
	if o.UpdateBazel == nil || errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err == nil {
		o.Say("updating the files for Bazel")
		err = o.UpdateBazel(ctx, root)
	}
	if err != nil {
		fmt.Fprintf(o.Err, "slipway: the files for Bazel are not those of these patches; run make update when that is mended: %v\n", err)
		return
	}
	if after, err := os.ReadFile(config); err == nil && !bytes.Equal(before, after) {
		o.Say(patched.BazelConfig + " has the patched modules: commit it with the patches")
	}
}

// workspaces returns the workspaces of the named projects, or of all.
func (o commands) workspaces(projects []string, dir string) ([]*patching.Workspace, error) {
	root, declared, err := o.Catalog()
	if err != nil {
		return nil, err
	}
	if len(projects) == 0 {
		if projects, err = patching.Projects(root); err != nil {
			return nil, err
		}
	}
	if dir != "" {
		if dir, err = filepath.Abs(dir); err != nil {
			return nil, err
		}
	}
	inputs, err := input.Find(root, o.Getenv("SLIPWAY_INPUTS"))
	if err != nil {
		return nil, err
	}
	find := func(ctx context.Context) (upstream.Go, error) {
		g, err := toolchain.Find(ctx, toolchain.Pin{Version: declared.Go.Version, Sums: declared.Go.Sums, Modules: inputs.Modules()}, o.Say)
		if err != nil || inputs != "" {
			return g, err
		}
		return g, gitsource.Place(ctx, g, root, declared, o.Say)
	}
	var workspaces []*patching.Workspace
	for _, name := range projects {
		if name == "kubernetes" {
			name = upstream.Kubernetes
		}
		w := &patching.Workspace{Root: root, Components: declared.Module, Project: name, Copy: dir, Go: find, Progress: o.Say}
		if err := w.Check(); err != nil {
			return nil, err
		}
		workspaces = append(workspaces, w)
	}
	return workspaces, nil
}

// notePassedOver names changes that are in patches and that no module has.
func (o commands) notePassedOver(list []patch.Skipped) {
	for _, s := range list {
		fmt.Fprintf(o.Err, "slipway: %s is passed over: %s\n", s.File, s.Why)
	}
}

// relative returns a path relative to the working folder, if it is below it.
func (o commands) relative(name string) string {
	wd, err := os.Getwd()
	if err != nil {
		return name
	}
	if rel, err := filepath.Rel(wd, name); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return name
}

func (o commands) completeProjects(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	root, err := project.FindRoot(o.Dir)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	list, err := patching.Projects(root)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return list, cobra.ShellCompDirectiveNoFileComp
}
