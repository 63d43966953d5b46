package diff

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// A Verdict is the result of a comparison.
type Verdict int

// The verdicts, from best to worst.
const (
	Identical Verdict = iota
	Equivalent
	Different
)

func (v Verdict) String() string { return [...]string{"identical", "equivalent", "different"}[v] }

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
	Reasons []Reason `json:"reasons,omitempty"` // worst first; none if identical
}

// A Reason is one kind of difference.
type Reason struct {
	Verdict  Verdict  `json:"verdict"`
	Kind     string   `json:"kind"`               // "function", "paths", …
	Detail   string   `json:"detail"`             // what differs, in one line
	Examples []string `json:"examples,omitempty"` // at most maxExamples
}

// maxExamples is how many places are listed for one kind of difference.
const maxExamples = 5

// add appends a difference to f.
func (f *File) add(v Verdict, kind, format string, args ...any) {
	f.Reasons = append(f.Reasons, Reason{Verdict: v, Kind: kind, Detail: fmt.Sprintf(format, args...)})
}

// addAll appends a difference that occurs in several places, or nothing if there are no places.
func (f *File) addAll(v Verdict, kind, format string, places []string) {
	if len(places) == 0 {
		return
	}
	r := Reason{Verdict: v, Kind: kind, Detail: fmt.Sprintf(format, len(places)), Examples: places}
	if len(places) > maxExamples {
		r.Examples = slices.Concat(places[:maxExamples], []string{fmt.Sprintf("and %d more", len(places)-maxExamples)})
	}
	f.Reasons = append(f.Reasons, r)
}

// settle sorts the reasons and derives the verdict from them.
func (f *File) settle() {
	slices.SortStableFunc(f.Reasons, func(a, b Reason) int { return cmp.Compare(b.Verdict, a.Verdict) })
	for _, r := range f.Reasons {
		f.Verdict = max(f.Verdict, r.Verdict)
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

// Text writes r for people: files with differences, worst first, and a summary.
func (r *Report) Text(w io.Writer) error {
	var b strings.Builder
	files := slices.Clone(r.Files)
	slices.SortStableFunc(files, func(a, b File) int { return cmp.Compare(b.Verdict, a.Verdict) })
	var count [Different + 1]int
	for _, f := range files {
		count[f.Verdict]++
		if f.Verdict == Identical {
			continue
		}
		fmt.Fprintf(&b, "%-10s  %s\n", f.Verdict, f.Name)
		for _, reason := range f.Reasons {
			fmt.Fprintf(&b, "            %s: %s\n", reason.Kind, reason.Detail)
			for _, e := range reason.Examples {
				fmt.Fprintf(&b, "              %s\n", strings.ReplaceAll(e, "\n", "\n                "))
			}
		}
	}
	fmt.Fprintf(&b, "%s: ", r.Verdict)
	if len(files) == 1 {
		fmt.Fprintf(&b, "%s and %s\n", r.A, r.B)
	} else {
		fmt.Fprintf(&b, "%d files: %d different, %d equivalent, %d identical\n", len(files), count[Different], count[Equivalent], count[Identical])
	}
	_, err := io.WriteString(w, b.String())
	return err
}
