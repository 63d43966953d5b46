package vulns

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// Text writes what is found, with what mends it, and a summary.
func (r *Report) Text(w io.Writer) error {
	var b strings.Builder
	open := 0
	for _, f := range r.Found {
		if len(f.Open()) > 0 {
			open++
		}
		name := f.ID
		if len(f.Aliases) > 0 {
			name += " (" + strings.Join(f.Aliases, ", ") + ")"
		}
		fmt.Fprintf(&b, "%s: %s %s", name, f.Component, f.Version)
		if f.Fixed != "" {
			fmt.Fprintf(&b, ", fixed in %s", f.Fixed)
		}
		if f.Severity != "" {
			fmt.Fprintf(&b, ", severity %s", f.Severity)
		}
		fmt.Fprintf(&b, "\n  %s\n", oneLine(f.Summary))
		if len(f.Linked) > 0 {
			fmt.Fprintf(&b, "  package  %s\n", strings.Join(f.Linked, ", "))
		}
		for _, p := range f.In {
			fmt.Fprintf(&b, "  in       %s", p.Artifact)
			if len(p.Tarballs) > 0 {
				fmt.Fprintf(&b, ", which is in %s", strings.Join(p.Tarballs, ", "))
			}
			if p.Exception != nil {
				fmt.Fprintf(&b, ": %s until %s, %s", p.Exception.Status, p.Exception.Until, oneLine(p.Exception.Reason))
			}
			if p.fix != nil {
				fmt.Fprintf(&b, ": fixed by %s", p.fix.By)
			}
			fmt.Fprintln(&b)
		}
		if len(f.Open()) > 0 {
			fmt.Fprintf(&b, "  mend     %s\n", f.Mend)
		}
	}
	for _, f := range r.Fixes {
		if len(f.In) == 0 {
			fmt.Fprintf(&b, "%s says that it mends %s, which counts nowhere: not all programs with the modules that it changes have it\n",
				f.By, f.ID)
		}
	}
	for _, f := range r.only() {
		fmt.Fprintf(&b, "%s: fixed by %s, in %d artifacts; no database knows it here\n", f.ID, f.By, len(f.In))
	}
	for _, e := range r.Expired {
		fmt.Fprintf(&b, "the exception for %s has expired on %s: look again\n", e.ID, e.Until)
	}
	for _, e := range r.Unused {
		fmt.Fprintf(&b, "the exception for %s is for nothing that is found: remove it\n", e.ID)
	}
	fmt.Fprintf(&b, "release %s: %d known vulnerabilities, %d of them without an exception, in %d binaries and %d Debian packages\n",
		r.Release, len(r.Found), open, r.Binaries, r.Packages)
	if r.FailOn != "" {
		fmt.Fprintf(&b, "of severity %s and worse, or of none that is known: %d\n", r.FailOn, len(r.Failures()))
	}
	if r.NotAsked > 0 {
		fmt.Fprintf(&b, "NOT LOOKED AT: %d Debian packages in images, as by --tracker=off\n", r.NotAsked)
	}
	if n := len(r.Undetermined); n > 0 {
		fmt.Fprintf(&b, "of %d more, Debian has not determined whether packages here have them: --json lists them\n", n)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// JSON writes the report as JSON.
func (r *Report) JSON(w io.Writer) error { return writeJSON(w, r) }

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
