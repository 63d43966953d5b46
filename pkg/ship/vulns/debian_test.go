package vulns

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/mechanism/platform"
	"slipway.build/pkg/release"
)

const tracker = `{
"curl": {"CVE-2026-9": {"releases": {"trixie": {"status": "open"}}}},
"iptables": {
 "CVE-2026-1": {"description": "Packets\npass.", "releases": {"trixie": {"status": "open"}, "bookworm": {"status": "resolved", "fixed_version": "0"}}},
 "CVE-2026-2": {"releases": {"trixie": {"status": "resolved", "fixed_version": "1.8.11-3", "urgency": "medium"}}},
 "CVE-2026-3": {"releases": {"trixie": {"status": "resolved", "fixed_version": "1.8.11-2"}}},
 "CVE-2026-4": {"releases": {"trixie": {"status": "resolved", "fixed_version": "0"}}},
 "CVE-2026-5": {"releases": {"trixie": {"status": "undetermined"}}},
 "CVE-2026-6": {"releases": {"sid": {"status": "open"}}}
},
"libbpf": {
 "CVE-2026-7": {"releases": {"trixie": {"status": "resolved", "fixed_version": "1.5.0-3+deb13u1", "repositories": {"trixie": "1.5.0-3", "trixie-security": "1.5.0-3+deb13u1"}}}}
}}`

func TestPackagesOfDebianAreComparedBySource(t *testing.T) {
	t.Parallel()
	on := platform.Platform{OS: "linux", Arch: "amd64"}
	in := release.Input{Kind: release.Debian, Name: "libxtables12", Version: "1.8.11-2+b1", Platform: on, Source: "iptables", Suite: "trixie"}
	bpf := release.Input{ // its version has an epoch, and that of its source has none
		Kind: release.Debian, Name: "libbpf1", Version: "1:1.5.0-3", Platform: on, Source: "libbpf", SourceVersion: "1.5.0-3", Suite: "trixie",
	}
	fixed := bpf // from the archive of security fixes
	fixed.Version, fixed.SourceVersion, fixed.Platform.Arch = "1:1.5.0-3+deb13u1", "1.5.0-3+deb13u1", "arm64"
	described := &release.Release{
		Inputs:    []release.Input{in, bpf, fixed},
		Artifacts: []release.Artifact{{Name: "acme.io/proxy:v1", Kind: release.Image, Inputs: []string{in.PURL(), bpf.PURL()}}},
	}
	file := filepath.Join(t.TempDir(), "tracker.json")
	if err := os.WriteFile(file, []byte(tracker), 0o644); err != nil {
		t.Fatal(err)
	}
	r := &Report{}
	if err := r.debian(Options{Release: described, Tracker: file, Bump: "bump"}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range r.Found {
		got = append(got, strings.Join([]string{f.ID, f.Summary, f.Component, f.Fixed, f.Severity, f.Mend, f.In[0].Artifact}, "|"))
	}
	slices.Sort(got)
	want := []string{
		"CVE-2026-1|Packets|libxtables12|||nothing yet: trixie has no fixed version|acme.io/proxy:v1",
		"CVE-2026-2||libxtables12|1.8.11-3|medium|bump debian|acme.io/proxy:v1",
		"CVE-2026-7||libbpf1|1.5.0-3+deb13u1||bump debian|acme.io/proxy:v1",
	}
	if !slices.Equal(got, want) || !slices.Equal(r.Undetermined, []string{"CVE-2026-5 iptables"}) || r.Packages != 3 {
		t.Errorf("%q, %+v", got, r)
	}

	none := &Report{}
	if err := none.debian(Options{Release: described, Tracker: Off}); err != nil || none.NotAsked != 3 || none.Packages != 0 {
		t.Errorf("nobody asks: %+v, error %v", none, err)
	}
	if err := (Options{Release: described}).checkTracker(); !badrequest.Is(err) || !strings.Contains(err.Error(), "--tracker=off") {
		t.Errorf("without a tracker: error %v", err)
	}
	if err := (Options{Release: described, Tracker: "nowhere"}).checkTracker(); !badrequest.Is(err) {
		t.Errorf("a file that is not there: error %v", err)
	}
	if err := (Options{Release: &release.Release{}}).checkTracker(); err != nil {
		t.Errorf("without packages, no tracker is needed: %v", err)
	}
	for _, text := range []string{"", "[]", "{", "{}", `{"iptables": {"CVE-1": {"releases": {"sid": {"status": "open"}}}}}`,
		`{"iptables": []}`, `{"iptables": {"CVE-1": {"releases": {"trixie": {"status": "odd"}}}}}`,
		`{"iptables": {"CVE-1": {"releases": {"trixie": {"status": "resolved", "fixed_version": ""}}}}}`} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := (&Report{}).debian(Options{Release: described, Tracker: file, Bump: "bump"}); err == nil {
			t.Errorf("%q is read", text)
		}
	}
}

func FuzzTracker(f *testing.F) {
	f.Add(tracker)
	f.Fuzz(func(_ *testing.T, text string) {
		_, _ = readTracker([]byte(text), map[string][]release.Input{"glibc": nil})
	})
}
