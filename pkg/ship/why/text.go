package why

import (
	"fmt"
	"io"
	"strings"

	"slipway.build/pkg/release"
)

// Text writes an answer for people.
func (a *Answer) Text(w io.Writer) error {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("%s", Place{a.Name, a.Member})
	say := func(what, value string) {
		if value != "" {
			line("  %-10s %s", what, value)
		}
	}
	release_ := a.Release
	if a.Commit != "" {
		release_ += ", commit " + a.Commit
	}
	say("release", release_)
	if a.Kind != "" {
		kind := string(a.Kind)
		if p := a.Platform.String(); p != "/" {
			kind += " for " + p
		}
		say("is", kind)
	}
	say("sha256", a.SHA256)
	say("leads to", a.Link)
	say("made by", a.Action)
	say("package", a.Package)
	say("flags", strings.Join(quoted(a.Flags), " "))
	say("layer", a.Layer)
	if a.Source != "" {
		say("is", "the file "+a.Source+" of the sources")
	}
	if a.License != "" {
		say("is", "the license of the module "+a.License)
	}
	if a.Debian != nil {
		say("is of", "the Debian package "+describe(*a.Debian))
	}
	for _, p := range a.In {
		say("stands", p.String())
	}
	if len(a.Inputs) > 0 {
		line("  made of")
	}
	for _, in := range a.Inputs {
		line("    %-10s %s", in.Kind, describe(in))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// describe returns a line about an input.
func describe(in release.Input) string {
	text := in.Name
	if in.Version != "" {
		text += " " + in.Version
	}
	if in.Replaces != "" {
		text += " (for " + in.Replaces + ")"
	}
	for _, more := range []string{in.Sum, in.SHA256, in.Commit, in.License} {
		if more != "" {
			text += "  " + more
		}
	}
	return text
}

func quoted(flags []string) []string {
	var all []string
	for _, f := range flags {
		if strings.Contains(f, " ") {
			f = "'" + f + "'"
		}
		all = append(all, f)
	}
	return all
}

// Text writes an answer for people.
func (a *ModuleAnswer) Text(w io.Writer) error {
	var b strings.Builder
	for _, in := range a.Inputs {
		fmt.Fprintln(&b, describe(in))
	}
	for _, in := range a.MadeOf {
		fmt.Fprintf(&b, "  made of commit %s of %s\n", in.Commit, in.Name)
	}
	for _, o := range a.Overrides {
		fmt.Fprintf(&b, "  %s is %s\n", o.Version, o)
	}
	for _, in := range a.Patches {
		fmt.Fprintf(&b, "  changed by %s\n", describe(in))
	}
	for _, l := range a.Links {
		version := ""
		if len(a.Inputs) > 1 {
			version = " has " + l.Version
		}
		fmt.Fprintf(&b, "%s%s\n", l.Binary, version)
		for i, p := range l.Chain {
			word := "imports"
			if i == 0 {
				word = "through"
			}
			fmt.Fprintf(&b, "  %-8s %s\n", word, p)
		}
		if l.Problem != "" {
			fmt.Fprintf(&b, "  no chain of imports: %s\n", l.Problem)
		}
		for _, p := range l.In {
			fmt.Fprintf(&b, "  %-8s %s\n", "stands", p)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
