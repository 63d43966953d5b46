package lint

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
)

// hunk matches the line that begins a hunk of a unified diff.
var hunk = regexp.MustCompile(`^@@ -\S+ \+(\d+)`)

// changedLines returns the numbers, from 1, of the lines of a file that its older content does not have.
func changedLines(old, now []byte) map[int]bool {
	changed := map[int]bool{}
	row := 0
	for line := range strings.Lines(string(diff.Diff("old", old, "now", now))) {
		if m := hunk.FindStringSubmatch(line); m != nil {
			row, _ = strconv.Atoi(m[1])
		} else if row > 0 && line[0] != '-' && line[0] != '\\' {
			changed[row] = line[0] == '+'
			row++
		}
	}
	return changed
}
