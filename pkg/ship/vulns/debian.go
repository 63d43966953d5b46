package vulns

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	version "github.com/knqyf263/go-deb-version"

	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/release"
)

// A tracked entry is what Debian's security tracker knows of a vulnerability of a source package.
type tracked struct {
	Description string `json:"description"`
	Releases    map[string]struct {
		Status  string `json:"status"` // open, resolved, undetermined
		Fixed   string `json:"fixed_version"`
		Urgency string `json:"urgency"` // such as medium, or "not yet assigned"
	} `json:"releases"`
}

// binaryBuild is at the end of a package's version that was built again of the same sources. Older releases do not say the version of
// these.
var binaryBuild = regexp.MustCompile(`\+b[0-9]+$`)

// checkTracker returns an error if there are packages to ask about, and nobody says where, or if the file is not there.
func (o Options) checkTracker() error {
	if o.Tracker != "" && o.Tracker != Off {
		if _, err := os.Stat(o.Tracker); err != nil {
			return badrequest.Mark(fmt.Errorf("file of Debian's security tracker: %w", err))
		}
	}
	if o.Tracker != "" || !slices.ContainsFunc(o.Release.Inputs, func(in release.Input) bool { return in.Kind == release.Debian }) {
		return nil
	}
	return badrequest.Mark(errors.New("the release has Debian packages in its images: " +
		"name a file of Debian's security tracker with --tracker FILE, " +
		"or --tracker=" + Off + " to look at Go code alone; docs/vulns.md says where there is one"))
}

// debian looks at the Debian packages in images.
func (r *Report) debian(o Options) error {
	sources := map[string][]release.Input{} // packages by their sources
	for _, in := range o.Release.Inputs {
		if in.Kind != release.Debian {
			continue
		}
		if o.Tracker == Off {
			r.NotAsked++
			continue
		}
		if in.Source == "" || in.Suite == "" {
			return fmt.Errorf("release.json does not say of which source and suite %s is: make the release again", in.Name)
		}
		r.Packages++
		sources[in.Source] = append(sources[in.Source], in)
	}
	if len(sources) == 0 {
		return nil
	}
	data, err := os.ReadFile(o.Tracker)
	if err != nil {
		return err
	}
	tracker, err := readTracker(data, sources)
	if err != nil {
		return fmt.Errorf("%s: %w", o.Tracker, err)
	}
	asked, known := map[string]bool{}, map[string]bool{} // suites
	for source, entries := range tracker {
		for id, e := range entries {
			for suite := range e.Releases {
				known[suite] = true
			}
			for _, in := range sources[source] {
				asked[in.Suite] = true
				if err := r.compare(o, id, e, in); err != nil {
					return fmt.Errorf("%s: %s, %s: %w", o.Tracker, in.Name, id, err)
				}
			}
		}
	}
	for suite := range asked {
		if !known[suite] {
			return fmt.Errorf("%s: it has nothing about Debian's %s: is it of today, and is the suite still supported?", o.Tracker, suite)
		}
	}
	slices.Sort(r.Undetermined)
	r.Undetermined = slices.Compact(r.Undetermined)
	return nil
}

// compare adds a vulnerability of a source package if a package's version has it.
func (r *Report) compare(o Options, id string, e tracked, in release.Input) error {
	known, ok := e.Releases[in.Suite]
	if !ok {
		return nil
	}
	switch known.Status {
	case "open":
	case "undetermined":
		r.Undetermined = append(r.Undetermined, id+" "+in.Source)
		return nil
	case "resolved":
		if known.Fixed == "0" { // never vulnerable
			return nil
		}
		have, err := version.NewVersion(cmp.Or(in.SourceVersion, binaryBuild.ReplaceAllString(in.Version, "")))
		if err != nil {
			return err
		}
		fixed, err := version.NewVersion(known.Fixed)
		if err != nil {
			return err
		}
		if !have.LessThan(fixed) {
			return nil
		}
	default:
		return fmt.Errorf("the status %q is not known", known.Status)
	}
	summary, _, _ := strings.Cut(e.Description, "\n")
	f := Found{ID: id, Summary: summary, Component: in.Name, Version: in.Version, PURL: in.PURL(), Mend: o.Bump + " debian"}
	switch known.Urgency {
	case "low", "medium", "high":
		f.Severity = known.Urgency
	case "unimportant":
		f.Severity = "low"
	}
	if known.Status == "resolved" {
		f.Fixed = known.Fixed
	} else {
		f.Mend = "nothing yet: " + in.Suite + " has no fixed version"
	}
	var places []Place
	for _, a := range o.Release.Artifacts {
		if a.Kind == release.Image && slices.Contains(a.Inputs, in.PURL()) {
			places = append(places, Place{Artifact: a.Name})
		}
	}
	r.add(f, places)
	return nil
}

// readTracker reads what the tracker's file knows of sources, by their names and the IDs of vulnerabilities.
func readTracker(data []byte, sources map[string][]release.Input) (map[string]map[string]tracked, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, fmt.Errorf("it is not a file of Debian's security tracker: %w", err)
	}
	if len(all) == 0 {
		return nil, errors.New("it is empty")
	}
	found := map[string]map[string]tracked{}
	for source := range sources {
		if all[source] == nil {
			continue
		}
		entries := map[string]tracked{}
		if err := json.Unmarshal(all[source], &entries); err != nil {
			return nil, fmt.Errorf("%s: %w", source, err)
		}
		found[source] = entries
	}
	return found, nil
}
