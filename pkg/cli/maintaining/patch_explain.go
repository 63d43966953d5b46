package maintaining

import (
	"errors"
	"fmt"
	"path"
	"strings"

	gomod "golang.org/x/mod/module"

	"slipway.build/pkg/cli/session"
	"slipway.build/pkg/maintain/patching"
	"slipway.build/pkg/make/upstream"
	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/tree/patch"
)

// explain adds to an error of a patch command what to do next.
func (o commands) explain(err error, w *patching.Workspace, from string) error {
	var stopped *patching.StoppedError
	var notYet *patching.NotYetError
	switch {
	case session.Is[*patching.NoCopyError](err):
		return fmt.Errorf("%w: %s makes one", err, command("edit", w))
	case errors.As(err, &notYet):
		return fmt.Errorf("%w: run %s, which starts over, or %s", err, command("edit", w),
			PatchCommand("drop "+path.Base(notYet.Patch), w.Project))
	case errors.As(err, &stopped):
		at := o.relative(stopped.Copy)
		var b strings.Builder
		fmt.Fprintf(&b, "\n%s waits in %s:", stopped.Patch, at)
		if len(stopped.Files) > 0 {
			fmt.Fprintf(&b, "\n\tresolve %s", strings.Join(stopped.Files, ", "))
		}
		for _, name := range stopped.LeftOut {
			fmt.Fprintf(&b, "\n\tdecide about %s, whose new content is unknown without the old one", name)
		}
		fmt.Fprintf(&b, "\n\tgit -C %s add --all && git -C %s am --continue", at, at)
		if stopped.Later > 0 {
			fmt.Fprintf(&b, "    # goes on with the %s after it", patches(stopped.Later))
		}
		fmt.Fprintf(&b, "\n\t%s", command("save", w))
		return fmt.Errorf("%w%s", err, &b)
	case session.Is[*patching.UnsavedError](err) && from == "save":
		return fmt.Errorf("%w: finish and commit that work there, and run %s again", err, command("save", w))
	case session.Is[*patching.UnsavedError](err):
		return fmt.Errorf("%w: finish and commit it, and run %s; or throw it away with %s --force", err, command("save", w), command("edit", w))
	case session.Is[*patching.ChangedError](err):
		return fmt.Errorf("%w: look at it with git diff; %s --force replaces it", err, command("save", w))
	case raises(err) != nil && from == "add":
		return fmt.Errorf("%w\nIt was not added. To override these modules, add --overrides; or first run%s", err,
			overrideCommands(err, w.GoModule()))
	case session.Is[*patch.Conflict](err) && from == "add":
		return fmt.Errorf("%w\nIt was not added. To resolve it, add it with --force, and then run %s", err, command("edit", w))
	case session.Is[*patch.NoEffectError](err) && from == "add":
		return fmt.Errorf("%w\nIt was not added", err)
	case session.Is[*patch.Conflict](err) && from == "drop":
		return fmt.Errorf("%w\nIt was not removed. To remove it all the same, add --force, and then run %s", err, command("edit", w))
	case session.Is[*patch.InvalidError](err) && badrequest.Is(err) && !strings.Contains(err.Error(), "git format-patch"):
		return fmt.Errorf("%w: give a file of git format-patch, git diff, or a pull request's .patch", err)
	case session.Is[*patch.InvalidError](err) && from == "save":
		return fmt.Errorf("%w: change the commit in %s", err, o.relative(w.Folder()))
	}
	return err
}

// raises returns what a patch requires that the tree lacks.
func raises(err error) []gomod.Version {
	if lacking, ok := errors.AsType[*patch.Conflict](err); ok {
		return lacking.Raises
	}
	return nil
}

func overrideCommands(err error, folder string) (text string) {
	for _, m := range raises(err) {
		text += fmt.Sprintf("\n\tslipway override %s --in %s", m, folder)
	}
	return text
}

// command returns a command of the project, as a user types it.
func command(name string, w *patching.Workspace) string {
	text := PatchCommand(name, w.Project)
	if w.Copy != "" {
		text += " --dir " + w.Copy
	}
	return text
}

// PatchCommand returns a command for a project's patches, as a user types it. Kubernetes, which is also "", is the default. Commands
// that take a name take the project as a flag.
func PatchCommand(command, project string) string {
	text := "slipway patch " + command
	switch {
	case project == "" || project == upstream.Kubernetes:
		return text
	case strings.Contains(command, " "):
		return text + " --project " + project
	}
	return text + " " + project
}
