package cli

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"slipway.build/pkg/cli/maintaining"
	"slipway.build/pkg/cli/session"
	"slipway.build/pkg/maintain/bump"
	"slipway.build/pkg/maintain/kubetest"
	"slipway.build/pkg/make/kubecross"
	"slipway.build/pkg/make/patched"
	"slipway.build/pkg/make/project"
	"slipway.build/pkg/make/published"
	"slipway.build/pkg/make/road"
	bazelroad "slipway.build/pkg/make/road/bazel"
	"slipway.build/pkg/make/road/container"
	"slipway.build/pkg/mechanism/debian"
	"slipway.build/pkg/mechanism/engine"
	"slipway.build/pkg/mechanism/suggest"
	"slipway.build/pkg/ship/sign"
	"slipway.build/pkg/tree/patch"
)

// advise adds to an error which command or flag to use next. Other packages only say what failed.
func advise(err error) error {
	text := advice(err)
	switch {
	case text == "":
		return err
	case strings.Contains(err.Error(), "\n"): // the last line is another's
		return fmt.Errorf("%w\n%s", err, text)
	}
	return fmt.Errorf("%w: %s", err, text)
}

func advice(err error) string {
	var unknown *suggest.UnknownError
	var goflag *road.FlagError
	var conflict *patch.Conflict
	var noEffect *patch.NoEffectError
	var fork *bump.NewerThanForkError
	switch {
	case errors.As(err, &unknown) && (unknown.Kind == "component" || unknown.Kind == "platform"):
		return "see slipway catalog " + unknown.Kind + "s"
	case errors.As(err, &unknown) && unknown.Kind == "log":
		return "slipway cluster logs lists them"
	case errors.As(err, &unknown) && unknown.Kind == "package":
		return "name an import path, such as k8s.io/kubernetes/pkg/scheduler/..., or a folder of the tree or of upstream's repository"
	case errors.As(err, &unknown) && unknown.Kind == "suite":
		return "see slipway test-cmd --list"
	case session.Is[*kubetest.MissingError](err):
		return "install them, such as by apt-get install jq curl openssl iproute2"
	case session.Is[*kubetest.PortError](err):
		return "stop the program that listens there; ss -ltnp names it"
	case session.Is[*kubetest.ReplacedError](err):
		return "run make test-cmd in that folder"
	case errors.As(err, &goflag) && strings.Trim(goflag.Flag, "-") == "n":
		return "--dry-run, or make -n, shows a plan"
	case session.Is[*project.NoTreeError](err):
		return "run slipway inside a tree, or name one with -C"
	case session.Is[*road.UnsupportedError](err):
		return "choose another road, such as ROAD=local"
	case session.Is[*container.OutsideError](err):
		return "move it into the tree, or compile here with ROAD=local"
	case session.Is[*kubecross.BaseError](err):
		return "set KUBE_CROSS_BASE to an image of Debian that the engine has or can pull"
	case session.Is[*engine.ConnectError](err):
		return "without an engine, compile here with ROAD=local"
	case session.Is[*published.VersionError](err):
		return "commit what has changed, and tag the commit so, or set KUBE_GIT_VERSION"
	case session.Is[*published.ChangedError](err):
		return "give this release a number of its own"
	case session.Is[*sign.SignedError](err):
		return "sign it with --add, or with --replace"
	case errors.Is(err, bazelroad.ErrStale):
		return "run make update"
	case errors.As(err, &conflict) && len(conflict.Raises) > 0 && !strings.Contains(err.Error(), "slipway override "):
		return "slipway override " + conflict.Raises[0].String() + " raises it"
	case errors.As(err, &conflict) && !strings.Contains(err.Error(), "slipway override ") && !strings.Contains(err.Error(), "slipway patch "):
		return maintaining.PatchCommand("edit", patch.SeriesOf(conflict.Patch).Name()) + " lays the code out to resolve it"
	case errors.As(err, &noEffect) && !strings.Contains(err.Error(), "It was not added"):
		return maintaining.PatchCommand("drop "+path.Base(noEffect.Patch), patch.SeriesOf(noEffect.Patch).Name()) + " removes it"
	case errors.As(err, &fork):
		name := fork.Override.Module
		return fmt.Sprintf("first name a fork of the newer one, slipway override %s@%s --with MODULE@VERSION, or take upstream's, "+
			"slipway override %s --drop", name, fork.Upstream, name)
	case errors.Is(err, patched.ErrStale):
		return "run Bazel with slipway bazel, which makes them"
	case errors.Is(err, debian.ErrLock):
		return "run make update-debian-locks, or set SLIPWAY_DEBIAN_SNAPSHOT to an archive of Debian's past, or SLIPWAY_INPUTS to a folder " +
			"that has the packages"
	}
	return ""
}

// nearFlag suggests flags if the error is an unknown flag. Cobra suggests only commands.
func nearFlag(c *cobra.Command, err error) string {
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return ""
	}
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	near := suggest.Near(unknown.GetSpecifiedName(), names)
	for i, name := range near {
		near[i] = "--" + name
	}
	return suggest.DidYouMean(near)
}
