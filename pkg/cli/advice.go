package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"slipway.build/pkg/build/plan"
	"slipway.build/pkg/build/road"
	"slipway.build/pkg/mechanism/suggest"
	"slipway.build/pkg/prove/cluster"
)

// advise adds to an error which command or flag to use next. The packages below this one only say what failed.
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
	var missing *cluster.MissingError
	switch {
	case errors.As(err, &unknown) && (unknown.Kind == "component" || unknown.Kind == "platform"):
		return "see slipway catalog " + unknown.Kind + "s"
	case errors.As(err, &goflag) && strings.Trim(goflag.Flag, "-") == "n":
		return "--dry-run, or make -n, shows a plan"
	case errors.As(err, &noTree):
		return "run slipway inside a tree, or name one with -C"
	case errors.As(err, &missing):
		return "make quick-release makes the server tarball, make release all; or name their folder with --from"
	case errors.Is(err, cluster.ErrRoot):
		return "run the command with sudo, or add --control-plane-only"
	case errors.Is(err, cluster.ErrOther):
		return "slipway cluster down removes it"
	case errors.Is(err, cluster.ErrNotReady):
		return "on a slow machine, --wait gives it more time"
	}
	return ""
}

// nearFlag suggests what was meant by a flag that does not exist, if that is the error; cobra does so for commands only.
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
