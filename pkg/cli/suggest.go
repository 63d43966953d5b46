package cli

import (
	"errors"

	"github.com/agnivade/levenshtein"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// nearFlag suggests what was meant by a flag that does not exist, if that is the error; cobra does so for commands only.
func nearFlag(c *cobra.Command, err error) string {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return ""
	}
	typed := unknown.GetSpecifiedName()
	best, near := 3, "" // three typing mistakes are another word
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if d := levenshtein.ComputeDistance(typed, f.Name); d < best && d < len(typed) && !f.Hidden {
			best, near = d, f.Name
		}
	})
	if near == "" {
		return ""
	}
	return "; did you mean --" + near + "?"
}
