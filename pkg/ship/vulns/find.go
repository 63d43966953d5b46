package vulns

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"slipway.build/pkg/mechanism/checksum"
	"slipway.build/pkg/mechanism/govulns"
	"slipway.build/pkg/mechanism/suggest"
	"slipway.build/pkg/mechanism/unpack"
	"slipway.build/pkg/release"
	"slipway.build/pkg/tree/catalog"
	"slipway.build/pkg/tree/module"
)

// maxProgram is the size, in bytes, of the largest program that is read.
const maxProgram = 1 << 30

// Off is the Tracker of those who look at Go code alone.
const Off = "off"

// Options say where to look.
type Options struct {
	Dir        string // of the release
	Release    *release.Release
	DB         string // address of a database of Go's vulnerabilities
	Tracker    string // file of Debian's security tracker, or Off; needed if there are Debian packages
	Exceptions []Exception
	Now        time.Time
	FailOn     string // the least of catalog.Severities that is a failure; "" is any
	Bump       string // the command that moves to another version of what is named after it
	Override   string // the command that raises a module, and says with --fixes what for

	// Project returns the name that Bump has for a binary's project if a module is of that, and "" otherwise. Nil: nobody knows.
	Project func(binary, module string) string
}

// A Report says what is known against a release.
type Report struct {
	Release      string      `json:"release"`
	Commit       string      `json:"commit,omitempty"`
	Binaries     int         `json:"binaries"`     // looked at
	Packages     int         `json:"packages"`     // of Debian, looked at
	NotAsked     int         `json:"notAsked"`     // of Debian, as the tracker is Off
	Undetermined []string    `json:"undetermined"` // of Debian: nobody knows yet whether these are vulnerable
	Found        []*Found    `json:"found"`
	Expired      []Exception `json:"expired"`
	Unused       []Exception `json:"unused"` // exceptions for what is not found
	Fixes        []*Fix      `json:"fixes"`  // what the tree mends, found or not

	FailOn string `json:"failOn,omitempty"`

	date      time.Time // of the release
	artifacts map[string]release.Artifact
}

// A Found vulnerability is one of a component of a version.
type Found struct {
	ID        string   `json:"id"`
	Aliases   []string `json:"aliases,omitempty"`
	Summary   string   `json:"summary,omitempty"`
	Severity  string   `json:"severity,omitempty"` // one of catalog.Severities, if the database says so
	Component string   `json:"component"`          // a module, "stdlib", or a Debian package
	Version   string   `json:"version"`
	PURL      string   `json:"purl"`
	Fixed     string   `json:"fixed,omitempty"`  // version; empty if there is none yet
	Linked    []string `json:"linked,omitempty"` // packages of the module that are linked and that it names
	Mend      string   `json:"mend,omitempty"`   // what to do
	In        []Place  `json:"in"`
}

// A Place is an artifact with the component.
type Place struct {
	Artifact  string     `json:"artifact"`
	Tarballs  []string   `json:"tarballs,omitempty"`
	Exception *Exception `json:"exception,omitempty"`
	FixedBy   string     `json:"fixedBy,omitempty"` // a Fix, by its By

	fix *Fix
}

// short returns the name of the artifact without its registry, platform and tag.
func (p Place) short() string {
	name, _, _ := strings.Cut(path.Base(p.Artifact), ":")
	return name
}

// Open returns where there is neither an exception nor a fix.
func (f *Found) Open() []Place {
	return slices.DeleteFunc(slices.Clone(f.In), func(p Place) bool { return p.Exception != nil || p.fix != nil })
}

// OK reports whether nothing is found but what is excepted, mended, or not bad enough.
func (r *Report) OK() bool { return len(r.Expired) == 0 && len(r.Failures()) == 0 }

// Failures returns what is bad enough to fail, and neither excepted nor mended. What is of no known severity is bad enough.
func (r *Report) Failures() []*Found {
	least := slices.Index(catalog.Severities(), r.FailOn)
	return slices.DeleteFunc(slices.Clone(r.Found), func(f *Found) bool {
		return len(f.Open()) == 0 || f.Severity != "" && slices.Index(catalog.Severities(), f.Severity) < least
	})
}

// Find looks for vulnerabilities. Each binary of the release must be in a tarball that is in its folder.
func Find(ctx context.Context, o Options) (*Report, error) {
	r := &Report{
		Release: o.Release.Version, Commit: o.Release.Commit, date: o.Release.Date, artifacts: map[string]release.Artifact{},
		FailOn: o.FailOn, Undetermined: []string{}, Found: []*Found{}, Expired: []Exception{}, Unused: []Exception{},
	}
	for _, a := range o.Release.Artifacts {
		r.artifacts[a.Name] = a
	}
	if o.FailOn != "" && !slices.Contains(catalog.Severities(), o.FailOn) {
		return nil, suggest.Unknown("severity", o.FailOn, catalog.Severities())
	}
	if err := errors.Join(govulns.Check(o.DB), o.checkTracker()); err != nil {
		return nil, err
	}
	if err := r.binaries(ctx, o); err != nil {
		return nil, err
	}
	known := map[string]string{}
	for _, f := range r.Found {
		severity, ok := known[f.ID]
		if !ok {
			var err error
			if severity, err = govulns.Severity(ctx, o.DB, f.ID); err != nil {
				return nil, err
			}
			known[f.ID] = severity
		}
		f.Severity = severity
	}
	if err := r.debian(o); err != nil {
		return nil, err
	}
	slices.SortFunc(r.Found, func(a, b *Found) int {
		return slices.Compare([]string{a.Component, a.Version, a.ID}, []string{b.Component, b.Version, b.ID})
	})
	r.Fixes = r.fixesOf(o.Release)
	r.except(o.Exceptions, o.Now)
	r.mended()
	return r, nil
}

// except applies the exceptions.
func (r *Report) except(exceptions []Exception, now time.Time) {
	for _, e := range exceptions {
		used := false
		for _, f := range r.Found {
			for i := range f.In {
				if !e.is(f, f.In[i]) {
					continue
				}
				used = true
				if !e.expired(now) && f.In[i].Exception == nil {
					f.In[i].Exception = &e
				}
			}
		}
		switch {
		case !used:
			r.Unused = append(r.Unused, e)
		case e.expired(now):
			r.Expired = append(r.Expired, e)
		}
	}
}

// A scan looks at the binaries of a release.
type scan struct {
	*Report
	Options
	modules map[string]release.Input    // by package URL
	wanted  map[string]release.Artifact // binaries that were not found yet, by name
}

// binaries looks at each binary, in the first tarball that has it.
func (r *Report) binaries(ctx context.Context, o Options) error {
	s := scan{r, o, map[string]release.Input{}, map[string]release.Artifact{}}
	for _, a := range o.Release.Artifacts {
		if a.Kind == release.Binary {
			s.wanted[a.Name] = a
		}
	}
	for _, in := range o.Release.Inputs {
		if in.Kind == release.Module {
			s.modules[in.PURL()] = in
		}
	}
	isWanted := func(artifact string) bool { _, ok := s.wanted[artifact]; return ok }
	if err := s.tarballs(ctx, isWanted, s.look); err != nil {
		return err
	}
	// The others are in images: in the archives of these in the tarballs.
	err := s.tarballs(ctx, func(artifact string) bool {
		archive := r.artifacts[artifact]
		return archive.Kind == release.Archive && slices.ContainsFunc(archive.Of, func(image string) bool {
			return slices.ContainsFunc(r.artifacts[image].Of, isWanted)
		})
	}, s.archive)
	if err != nil {
		return err
	}
	for name := range s.wanted {
		return fmt.Errorf("no tarball in %s holds %s, or an image with it, so what it links is unknown", o.Dir, name)
	}
	return nil
}

// tarballs calls see for the wanted artifacts in the tarballs that are in the folder.
func (s *scan) tarballs(ctx context.Context, want func(artifact string) bool,
	see func(ctx context.Context, m unpack.Member, artifact string) error) error {
	for _, t := range s.Options.Release.Artifacts {
		members := map[string]string{}
		for _, m := range t.Members {
			if t.Kind == release.Tarball && want(m.Artifact) {
				members[m.Path] = m.Artifact
			}
		}
		if len(members) == 0 {
			continue
		}
		file := filepath.Join(s.Dir, filepath.FromSlash(t.Path))
		for m, err := range unpack.MembersOf(ctx, file) {
			if errors.Is(err, fs.ErrNotExist) {
				break
			}
			if err != nil {
				return err
			}
			if artifact, ok := members[m.Name]; ok && want(artifact) && m.Typeflag == tar.TypeReg {
				if err := see(ctx, m, artifact); err != nil {
					return fmt.Errorf("%s: %s: %w", file, m.Name, err)
				}
			}
		}
	}
	return nil
}

// archive looks at the wanted binaries in the layers of an image's archive.
func (s *scan) archive(ctx context.Context, from unpack.Member, _ string) error {
	for layer, err := range unpack.Members(ctx, from) {
		if err != nil {
			return err
		}
		if layer.Typeflag != tar.TypeReg || !strings.HasSuffix(layer.Name, ".tar") {
			continue
		}
		for m, err := range unpack.Members(ctx, layer) {
			if err == nil && m.Typeflag == tar.TypeReg {
				err = s.look(ctx, m, "")
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// look asks about a file if it is a wanted binary. One that is named must be that.
func (s *scan) look(ctx context.Context, content unpack.Member, artifact string) error {
	f, err := os.CreateTemp("", "slipway-vulns-") // since a program is read at random places
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	sum, size, err := checksum.SHA256(io.TeeReader(io.LimitReader(content, maxProgram+1), f))
	if err == nil && size > maxProgram {
		err = fmt.Errorf("it has more than %d bytes", maxProgram)
	}
	if err != nil {
		return err
	}
	for name, a := range s.wanted {
		if a.SHA256 == sum && (artifact == "" || artifact == name) {
			delete(s.wanted, name)
			return s.ask(ctx, a, f)
		}
	}
	if artifact != "" {
		return fmt.Errorf("it is not the %s of release.json: its SHA-256 is %s, want %s", artifact, sum, s.wanted[artifact].SHA256)
	}
	return nil
}

// ask asks the database about a binary.
func (s *scan) ask(ctx context.Context, a release.Artifact, program io.ReaderAt) error {
	packages, err := module.Packages(program)
	if err != nil {
		return err
	}
	described := s.Options.Release
	b := govulns.Binary{Package: a.Package, Go: described.Go, OS: a.Platform.OS, Arch: a.Platform.Arch, Packages: packages}
	inputs := map[string]release.Input{} // by module path and version, as the database is asked about
	for _, purl := range a.Inputs {
		in := s.modules[purl]
		m := asked(in)
		b.Modules = append(b.Modules, m)
		if m.Replace != nil {
			m = *m.Replace
		}
		inputs[m.Path+"@"+m.Version] = in
	}
	found, known, err := govulns.Scan(ctx, s.DB, b)
	if err != nil {
		return err
	}
	s.Binaries++
	for _, f := range found {
		in := inputs[f.Module+"@"+f.Version]
		purl, component, version := in.PURL(), in.Name, in.Version
		if in.Kind == "" {
			purl, component, version = described.StandardLibrary(), f.Module, described.Go
		}
		v := known[f.ID]
		s.add(Found{
			ID: f.ID, Aliases: v.Aliases, Summary: v.Summary, Component: component, Version: version, PURL: purl, Fixed: f.Fixed,
			Linked: []string{f.Package}, Mend: s.mend(a, in, f, v),
		}, s.places(described, a))
	}
	return nil
}

// asked returns a module as the database knows it. A patched module counts as the one that was patched: whether a patch mends something is
// for people to say.
func asked(in release.Input) govulns.Module {
	m := govulns.Module{Path: in.Name}
	m.Version, _ = module.Unpatched(in.Version)
	if in.Replaces == "" {
		return m
	}
	old := govulns.Module{}
	old.Path, old.Version, _ = strings.Cut(in.Replaces, "@")
	if old.Path != m.Path && m.Version != "" {
		fork := m
		old.Replace = &fork
	}
	return old
}

// mend says what mends a vulnerability in a binary: a command.
func (s *scan) mend(a release.Artifact, in release.Input, f govulns.Finding, v govulns.Vulnerability) string {
	staging := module.Staging(s.Options.Release.Kubernetes)
	has, _ := module.Unpatched(in.Version)
	switch {
	case f.Fixed == "":
		return "nothing yet: no version is fixed"
	case f.Module == "stdlib":
		return s.Bump + " go@go" + strings.TrimPrefix(f.Fixed, "v")
	case f.Module == "k8s.io/kubernetes":
		return s.Bump + " " + f.Fixed
	case strings.HasPrefix(f.Module, "k8s.io/") && has == staging:
		return s.Bump + " v1" + strings.TrimPrefix(f.Fixed, "v0")
	case s.Project != nil && s.Project(path.Base(a.Name), f.Module) != "":
		return s.Bump + " " + s.Project(path.Base(a.Name), f.Module) + "@" + f.Fixed
	}
	if of, _, ok := strings.Cut(in.Replaces, "@"); ok && of != in.Name && f.Module == in.Name {
		return fmt.Sprintf("%s %s --with %s@%s --fixes %s", s.Override, in.Replaces, f.Module, f.Fixed, v.Name())
	}
	return fmt.Sprintf("%s %s@%s --fixes %s", s.Override, f.Module, f.Fixed, v.Name())
}

// places returns a binary with the tarballs that hold it, and the images that do.
func (r *Report) places(described *release.Release, a release.Artifact) []Place {
	places := []Place{{Artifact: a.Name}}
	for _, t := range described.Artifacts {
		if slices.ContainsFunc(t.Members, func(m release.Member) bool { return m.Artifact == a.Name }) {
			places[0].Tarballs = append(places[0].Tarballs, t.Name)
		}
		if t.Kind == release.Image && slices.Contains(t.Of, a.Name) {
			places = append(places, Place{Artifact: t.Name})
		}
	}
	return places
}

// add adds a vulnerability, or the places of a known one.
func (r *Report) add(f Found, places []Place) {
	i := slices.IndexFunc(r.Found, func(known *Found) bool {
		return known.ID == f.ID && known.Component == f.Component && known.Version == f.Version
	})
	if i < 0 {
		r.Found = append(r.Found, &f)
		i = len(r.Found) - 1
	}
	known := r.Found[i]
	for _, p := range f.Linked {
		if !slices.Contains(known.Linked, p) {
			known.Linked = append(known.Linked, p)
		}
	}
	for _, p := range places {
		if !slices.ContainsFunc(known.In, func(k Place) bool { return k.Artifact == p.Artifact }) {
			known.In = append(known.In, p)
		}
	}
}
