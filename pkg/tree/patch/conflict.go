package patch

import (
	"fmt"
	"strings"
)

// A Conflict says where a patch does not apply.
type Conflict struct {
	Patch  string // name of the file
	Commit string // title; empty if the patch has one commit
	File   string // repository path

	// The hunk that does not apply. Hunk is 0 if the whole file is in the way, such as one that exists already; then Why says all.
	Hunk, Hunks int    // the first is 1
	Header      string // "@@ -1,4 +1,5 @@ func main"
	Line        int    // where the file, as patched so far, is most like the hunk

	Expected string // what the hunk expects there: a line without its end, or words
	Found    string // what is there
	Why      string // words instead of Found
}

func (c *Conflict) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "patch %s does not apply", c.Patch)
	if c.Commit != "" {
		fmt.Fprintf(&b, " (commit %q)", c.Commit)
	}
	fmt.Fprintf(&b, ": %s", c.File)
	if c.Hunk == 0 {
		fmt.Fprintf(&b, ": %s", c.Why)
		return b.String()
	}
	fmt.Fprintf(&b, ", hunk %d of %d (%s), at line %d\n\texpected: %s\n\tthere is: ", c.Hunk, c.Hunks, c.Header, c.Line, c.Expected)
	if c.Why != "" {
		b.WriteString(c.Why)
	} else {
		b.WriteString(c.Found)
	}
	return b.String()
}

// conflict makes a Conflict of a mismatch. The caller adds the patch.
func (m *mismatch) conflict(file string, of int) *Conflict {
	return &Conflict{
		File: file, Hunk: m.hunk + 1, Hunks: of, Header: m.title, Line: m.line,
		Expected: visible(m.expected, m.found), Found: visible(m.found, m.expected), Why: m.why,
	}
}

// visible returns a line without its end, except if only the ends of two lines differ.
func visible(text, other string) string {
	if bare(text) == bare(other) {
		return fmt.Sprintf("%q", text)
	}
	return bare(text)
}

func bare(text string) string { return strings.TrimRight(text, "\r\n") }
