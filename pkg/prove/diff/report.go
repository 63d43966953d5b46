package diff

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// A Verdict is the result of a comparison.
type Verdict int

// The verdicts.
const (
	Same Verdict = iota
	Different
)

func (v Verdict) String() string { return [...]string{"the same bytes", "different"}[v] }

// MarshalText returns the word for the verdict, for JSON.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// A Report is the comparison of two files or folders.
type Report struct {
	A       string  `json:"a"`
	B       string  `json:"b"`
	Verdict Verdict `json:"verdict"`
	Files   []File  `json:"files"` // by name
}

// A File is the comparison of two files of the same name.
type File struct {
	Name    string   `json:"name"` // for a member of an archive: the archive's name, a colon, the member's name
	Verdict Verdict  `json:"verdict"`
	Reasons []Reason `json:"reasons,omitempty"` // none if the bytes are the same
}

// A Reason is one kind of difference.
type Reason struct {
	Kind     string   `json:"kind"`               // "functions", "modules", …
	Detail   string   `json:"detail"`             // what differs, in one line
	Examples []string `json:"examples,omitempty"` // at most maxExamples
}

// maxExamples is how many places are listed for one kind of difference.
const maxExamples = 20

// add appends a difference to f.
func (f *File) add(kind, format string, args ...any) {
	f.Reasons = append(f.Reasons, Reason{Kind: kind, Detail: fmt.Sprintf(format, args...)})
}

// addAll appends a difference that occurs in several places, or nothing if there are no places.
func (f *File) addAll(kind, format string, places []string) {
	if len(places) == 0 {
		return
	}
	r := Reason{Kind: kind, Detail: fmt.Sprintf(format, len(places)), Examples: places}
	if len(places) > maxExamples {
		r.Examples = slices.Concat(places[:maxExamples], []string{fmt.Sprintf("and %d more", len(places)-maxExamples)})
	}
	f.Reasons = append(f.Reasons, r)
}

// settle derives the verdict from the reasons.
func (f *File) settle() {
	if len(f.Reasons) > 0 {
		f.Verdict = Different
	}
}

func (r *Report) settle() {
	slices.SortFunc(r.Files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	for _, f := range r.Files {
		r.Verdict = max(r.Verdict, f.Verdict)
	}
}

// JSON writes r as one JSON value.
func (r *Report) JSON(w io.Writer) error { return json.NewEncoder(w).Encode(r) }

// Text writes r for people: files with differences, and a summary.
func (r *Report) Text(w io.Writer) error {
	var b strings.Builder
	different := 0
	for _, f := range r.Files {
		if f.Verdict == Same {
			continue
		}
		different++
		fmt.Fprintf(&b, "%s  %s\n", f.Verdict, f.Name)
		for _, reason := range f.Reasons {
			fmt.Fprintf(&b, "           %s: %s\n", reason.Kind, reason.Detail)
			for _, e := range reason.Examples {
				fmt.Fprintf(&b, "             %s\n", strings.ReplaceAll(e, "\n", "\n               "))
			}
		}
	}
	fmt.Fprintf(&b, "%s: ", r.Verdict)
	if len(r.Files) == 1 {
		fmt.Fprintf(&b, "%s and %s\n", r.A, r.B)
	} else {
		fmt.Fprintf(&b, "%d files, %d of them different\n", len(r.Files), different)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
