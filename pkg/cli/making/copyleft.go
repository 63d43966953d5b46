package making

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"slipway.build/pkg/cli/session"
	"slipway.build/pkg/make/plan"
	"slipway.build/pkg/make/project"
	"slipway.build/pkg/mechanism/archive"
	"slipway.build/pkg/mechanism/atomicfile"
	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/mechanism/debian"
)

// debianSources is the name of the tarball of Debian's source packages, and without its end of the folder in it.
const debianSources = "kubernetes-debian-sources.tar"

// checkCopyleftFlags refuses flags that mean nothing with --copyleft.
func checkCopyleftFlags(changed func(flag string) bool) error {
	for _, flag := range []string{"modules", "host", "cache", "cache-upload", "no-cache", "dry-run"} {
		if changed(flag) {
			return badrequest.Mark(fmt.Errorf("--copyleft makes no kubernetes-inputs.tar: leave out --%s", flag))
		}
	}
	return nil
}

// packDebianSources packs the sources of the Debian packages in images, or lists them.
func (o commands) packDebianSources(ctx context.Context, f makeFlags, list bool) error {
	p, planned, err := o.plan(ctx, f, plan.Request{Inputs: true, NoHosts: true})
	if err != nil {
		return err
	}
	var all []debian.SourcePackage
	for _, lock := range planned.Inputs.Debian {
		if list {
			all = append(all, debian.SourcesOf(&lock)...)
			continue
		}
		found, err := debian.FetchSources(ctx, p.Settings.Debian, &lock, o.Say)
		if err != nil {
			return err
		}
		all = append(all, found...)
	}
	if len(all) == 0 {
		return errors.New("no image of the tree has files of Debian packages")
	}
	if list {
		return o.Answer(all, func(w io.Writer) error {
			return session.WriteTable(w, "SOURCE\tVERSION\tPACKAGES", func(row func(...string)) {
				for _, s := range all {
					row(s.Name, s.Version, strings.Join(s.Packages, " "))
				}
			})
		})
	}
	to := filepath.Join(p.Abs(project.Output), debianSources)
	if f.output != "" {
		to = filepath.Join(f.output, debianSources)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if err := atomicfile.Write(to, 0o644, func(w io.Writer) error { return archive.Tar(w, sourceEntries(all), time.Time{}) }); err != nil {
		return err
	}
	return o.Answer(all, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s: %d source packages\n", to, len(all))
		return err
	})
}

// sourceEntries returns the members of the tarball: a folder for each source package, their sums, and what is built from which.
func sourceEntries(all []debian.SourcePackage) []archive.Entry {
	top := strings.TrimSuffix(debianSources, path.Ext(debianSources))
	var entries []archive.Entry
	var sums, packages bytes.Buffer
	seen := map[string]bool{} // a source may be in several locks
	for _, s := range all {
		folder := s.Name + "_" + strings.ReplaceAll(s.Version, ":", "%3a") // as apt names files of a version with an epoch
		for _, name := range s.Packages {
			if line := folder + " " + name + "\n"; !seen[line] {
				seen[line] = true
				packages.WriteString(line)
			}
		}
		for _, f := range s.Files {
			name := path.Join(folder, path.Base(f.Path))
			if seen[name] {
				continue
			}
			seen[name] = true
			fmt.Fprintf(&sums, "%s  %s\n", f.SHA256, name)
			entries = append(entries, archive.Entry{Name: path.Join(top, name), Mode: 0o644, Path: f.File, Sum: f.SHA256})
		}
	}
	entries = append(entries, archive.Entry{Name: top + "/SHA256SUMS", Mode: 0o644, Data: sums.Bytes()},
		archive.Entry{Name: top + "/packages.txt", Mode: 0o644, Data: packages.Bytes()})
	slices.SortFunc(entries, func(a, b archive.Entry) int { return strings.Compare(a.Name, b.Name) })
	return entries
}
