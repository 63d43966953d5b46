package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"slipway.build/pkg/build/kubecross"
	"slipway.build/pkg/build/plan"
	"slipway.build/pkg/build/road"
	bazelroad "slipway.build/pkg/build/road/bazel"
	"slipway.build/pkg/build/road/container"
	"slipway.build/pkg/mechanism/debian"
	"slipway.build/pkg/mechanism/engine"
	"slipway.build/pkg/mechanism/suggest"
)

// advise adds to an error which command or flag to use next. Other packages only say what failed.
func advise(err error) error {
	if text := advice(err); text != "" {
		return fmt.Errorf("%w: %s", err, text)
	}
	return err
}

func advice(err error) string {
	var unknown *suggest.UnknownError
	var goflag *road.FlagError
	var noTree *plan.NoTreeError
	var unsupported *road.UnsupportedError
	var outside *container.OutsideError
	var base *kubecross.BaseError
	var connect *engine.ConnectError
	switch {
	case errors.As(err, &unknown) && (unknown.Kind == "component" || unknown.Kind == "platform"):
		return "see slipway catalog " + unknown.Kind + "s"
	case errors.As(err, &goflag) && strings.Trim(goflag.Flag, "-") == "n":
		return "--dry-run, or make -n, shows a plan"
	case errors.As(err, &noTree):
		return "run slipway inside a tree, or name one with -C"
	case errors.As(err, &unsupported):
		return "choose another road, such as ROAD=local"
	case errors.As(err, &outside):
		return "move it into the tree, or compile here with ROAD=local"
	case errors.As(err, &base):
		return "set KUBE_CROSS_BASE to an image of Debian that the engine has or can pull"
	case errors.As(err, &connect):
		return "without an engine, compile here with ROAD=local"
	case errors.Is(err, bazelroad.ErrStale):
		return "run make update"
	case errors.Is(err, debian.ErrLock):
		return "run make update-debian-locks, or set SLIPWAY_DEBIAN_MIRROR to a mirror that keeps old versions"
	}
	return ""
}

// nearFlag suggests flags if the error is an unknown flag. Cobra suggests only commands.
func nearFlag(c *cobra.Command, err error) string {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
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
