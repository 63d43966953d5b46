package patch

import (
	"fmt"
	"strings"
)

// A Conflict says where a patch does not apply.
type Conflict struct {
	Patch  string `json:"-"`    // name of the file
	Commit string `json:"-"`    // title; empty if the patch has one commit
	File   string `json:"file"` // repository path

	// The hunk that does not apply. Hunk is 0 if the whole file is in the way, such as one that exists already; then Why says all.
	Hunk   int    `json:"hunk,omitempty"` // the first is 1
	Hunks  int    `json:"-"`
	Header string `json:"-"`              // "@@ -1,4 +1,5 @@ func main"
	Line   int    `json:"line,omitempty"` // where the file, as patched so far, is most like the hunk

	Expected string `json:"expected,omitempty"` // what the hunk expects there: a line without its end, or words
	Found    string `json:"found,omitempty"`    // what is there
	Why      string `json:"why,omitempty"`      // words instead of Found
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
