package generate

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/magefile/mage/parse"
)

// Help prints every target of make with the first sentence of its comment in the magefiles.
func Help(w io.Writer, magefiles string) error {
	entries, err := os.ReadDir(magefiles)
	if err != nil {
		return err
	}
	var names []string
	for _, e := range entries {
		if filepath.Ext(e.Name()) == ".go" {
			names = append(names, e.Name())
		}
	}
	info, err := parse.PrimaryPackage("go", magefiles, names, false)
	if err != nil {
		return err
	}
	fmt.Fprint(w, "usage: make [TARGET] [VARIABLE=value ...]      (make -n TARGET prints what would be done)\n\n")
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range info.Funcs {
		fmt.Fprintf(table, "  %s\t%s\n", target(f.Name), f.Synopsis)
	}
	fmt.Fprintf(table, "  COMPONENT\tcompiles one component: make kubectl. `slipway catalog` lists them.\n")
	return table.Flush()
}

// target is the name that make has for a mage target: QuickRelease is quick-release.
func target(name string) string {
	var b strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
