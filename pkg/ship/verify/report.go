package verify

import (
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
)

// A Status is the result of checking a file.
type Status string

// The statuses of files.
const (
	OK        Status = "ok"
	Missing   Status = "missing"
	Short     Status = "cut short"           // smaller than the release says
	Changed   Status = "changed"             // its size or a digest differs
	Stranger  Status = "not of this release" // the release does not name it
	BadSigned Status = "bad signature"
	Unchecked Status = "not checked" // a signature, without a key to check it by
)

// A File is the status of a file in a release's folder.
type File struct {
	Path   string `json:"path"`
	Status Status `json:"status"`
	Detail string `json:"detail,omitempty"` // what was found instead
}

// A Report is the status of a release's folder.
type Report struct {
	Folder    string    `json:"folder"`
	Version   string    `json:"version"`
	Commit    string    `json:"commit,omitempty"`
	Valid     bool      `json:"ok"`
	Signature Signature `json:"signature,omitempty"` // of a whole folder
	Keys      []string  `json:"keys,omitempty"`      // whose signatures it has, of those that count, as their hints in bundles
	Problem   string    `json:"problem,omitempty"`   // why it is not the release that was wanted
	Withdrawn string    `json:"withdrawn,omitempty"` // why nobody should use it any more, as the place says that it was published to
	Files     []File    `json:"files"`               // by path

	Rebuilders []string `json:"rebuilders,omitempty"` // hints of the wanted keys whose owners have made it again

	Image bool `json:"image,omitempty"` // the folder is an image's name
}

// A Signature says what is known of a release's signatures.
type Signature string

// What may be known.
const (
	Unsigned     Signature = "not signed"
	NotChecked   Signature = "not checked" // there was no key to check them by
	Good         Signature = "good"
	NotConvinced Signature = "bad" // a signature is missing, or wrong
)

// OK reports whether the folder holds the whole release and nothing else.
func (r *Report) OK() bool { return r.Valid }

// problem adds why it is not the release that was wanted.
func (r *Report) problem(text string) {
	if r.Problem != "" {
		text = r.Problem + ", and " + text
	}
	r.Problem = text
}

// finish sorts the files, and draws the conclusion.
func (r *Report) finish() {
	slices.SortFunc(r.Files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	r.Valid = r.Problem == "" && !r.bad()
}

func (r *Report) bad() bool {
	return slices.ContainsFunc(r.Files, func(f File) bool { return f.Status.bad() })
}

func (s Status) bad() bool { return s != OK && s != Unchecked }

// Text writes a line for each file, one for all files of a folder below that are the same or whose signatures are wrong alike, and a
// summary.
func (r *Report) Text(w io.Writer) error {
	type group struct{ dir, text string }
	bad := 0
	groups := map[group][]string{} // paths
	var order []group
	for _, f := range r.Files {
		g := group{f.Path, string(f.Status)}
		if f.Status == OK {
			g.text = "OK"
		}
		if f.Detail != "" {
			g.text += ": " + f.Detail
		}
		if f.Status.bad() {
			bad++
		}
		if dir := path.Dir(f.Path); f.Status == BadSigned {
			g.dir = ""
		} else if dir != "." && !f.Status.bad() {
			g.dir = dir + "/"
		}
		if groups[g] == nil {
			order = append(order, g)
		}
		groups[g] = append(groups[g], f.Path)
	}
	for _, g := range order {
		names, files := []string{g.dir}, len(groups[g])
		switch {
		case g.dir == "" && files > 3:
			names = []string{fmt.Sprintf("%s and %d more", groups[g][0], files-1)}
		case g.dir == "":
			names = groups[g]
		case strings.HasSuffix(g.dir, "/") && files == 1:
			g.text += ", 1 file"
		case strings.HasSuffix(g.dir, "/"):
			g.text += fmt.Sprintf(", %d files", files)
		}
		for _, name := range names {
			if _, err := fmt.Fprintf(w, "%s: %s\n", name, g.text); err != nil {
				return err
			}
		}
	}
	what := "release " + r.Version
	switch {
	case r.Version == "": // inputs that are too damaged to say what they are, an image without signatures
		what = r.Folder
	case r.Image:
		what = r.Folder + " of " + what
	}
	sum := fmt.Sprintf("%s: %d files as described", what, len(r.Files))
	switch r.Signature {
	case Good:
		sum += ", signed by the key " + strings.Join(r.Keys, " and the key ")
	case NotChecked:
		sum += "; signatures not checked"
	case Unsigned:
		sum += "; intact, not signed"
	}
	if n := len(r.Rebuilders); n > 0 {
		sum += fmt.Sprintf(", rebuilt by the owners of %d keys", n)
		if n == 1 {
			sum = strings.TrimSuffix(sum, "owners of 1 keys") + "owner of 1 key"
		}
	}
	if r.Withdrawn != "" {
		sum += fmt.Sprintf("; withdrawn: %q", r.Withdrawn)
	}
	if r.Problem != "" {
		sum += "; but " + r.Problem
	}
	if bad > 0 {
		sum = fmt.Sprintf("%s: %d of %d files are not as described", what, bad, len(r.Files))
	}
	_, err := fmt.Fprintln(w, sum)
	return err
}
