package vulns

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/mechanism/platform"
	"slipway.build/pkg/release"
)

const patchedNet, otherNet = "v0.60.0-patched.p6f9619ff8b86.cd011c8e1f7ac", "v0.58.0-patched.p111111111111.c222222222222"

// patchedRelease is a release with a patch of golang.org/x/net for Kubernetes that mends CVE-2026-1111, and with what more adds.
func patchedRelease(more ...release.Input) *release.Release {
	on := platform.Platform{OS: "linux", Arch: "amd64"}
	module := func(version string) release.Input {
		return release.Input{Kind: release.Module, Name: "golang.org/x/net", Version: version}
	}
	binary := func(name string, purls ...string) release.Artifact {
		return release.Artifact{Name: "linux/amd64/" + name, Kind: release.Binary, Platform: on, SHA256: name, Inputs: purls}
	}
	plain, fixed := module("v0.60.0"), module(patchedNet)
	return &release.Release{
		Version: "v1.37.1+acme.1", Commit: "0123abcd", Date: time.Unix(0, 0),
		Inputs: append([]release.Input{plain, fixed, {Kind: release.Patch, Name: "patches/0001-net.patch", SHA256: "77",
			Changes: []string{"golang.org/x/net"}, Fixes: []string{"CVE-2026-1111"}}}, more...),
		Artifacts: []release.Artifact{
			binary("kubelet", fixed.PURL()), binary("etcd", plain.PURL()),
			{Name: "acme.io/kubelet:v1", Kind: release.Image, Of: []string{"linux/amd64/kubelet"}, SHA256: "99"},
		},
	}
}

// reportOf returns a report on a release in which a database has found GO-2026-1, also known as the CVE, in each version of
// golang.org/x/net.
func reportOf(described *release.Release, exceptions ...Exception) *Report {
	r := &Report{Release: described.Version, artifacts: map[string]release.Artifact{}}
	for _, a := range described.Artifacts {
		r.artifacts[a.Name] = a
	}
	for _, in := range described.Inputs {
		for _, a := range described.Artifacts {
			if slices.Contains(a.Inputs, in.PURL()) {
				f := Found{ID: "GO-2026-1", Aliases: []string{"CVE-2026-1111"}, Component: in.Name, Version: in.Version, PURL: in.PURL()}
				f.Mend = "bump"
				r.add(f, r.places(described, a))
			}
		}
	}
	r.Fixes = r.fixesOf(described)
	r.except(exceptions, time.Now())
	r.mended()
	return r
}

// stated returns what an OpenVEX document says, by vulnerability and product.
func stated(t *testing.T, r *Report) map[string]string {
	t.Helper()
	var text bytes.Buffer
	if err := OpenVEX(&text, "me", r); err != nil {
		t.Fatal(err)
	}
	var document struct {
		Statements []struct {
			Vulnerability struct{ Name string }
			Status        string
			Notes         string `json:"status_notes"`
			Products      []struct {
				Hashes        map[string]string
				Subcomponents []struct {
					ID string `json:"@id"`
				}
			}
		}
	}
	if err := json.Unmarshal(text.Bytes(), &document); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, s := range document.Statements {
		for _, p := range s.Products {
			if len(p.Subcomponents) == 0 {
				t.Errorf("%+v has no component", s)
			}
			all[s.Vulnerability.Name+" "+p.Hashes["sha-256"]] = strings.TrimSpace(s.Status + " " + s.Notes)
		}
	}
	return all
}

func TestPatchThatMendsIsFixedWithEvidence(t *testing.T) {
	t.Parallel()
	const evidence = "fixed patches/0001-net.patch, sha256:77, in the tree at commit 0123abcd"
	r := reportOf(patchedRelease())
	got := stated(t, r)
	for where, want := range map[string]string{"GO-2026-1 kubelet": evidence, "GO-2026-1 99": evidence, "GO-2026-1 etcd": "affected"} {
		if got[where] != want {
			t.Errorf("%s: %q, want %q", where, got[where], want)
		}
	}
	if r.OK() {
		t.Error("etcd, which links the module without the patch, is taken for fixed")
	}
	var text, sarif bytes.Buffer
	if err := r.Text(&text); err != nil ||
		!strings.Contains(text.String(), "in       linux/amd64/kubelet: fixed by patches/0001-net.patch\n") {
		t.Errorf("%v, %s", err, &text)
	}
	suppressed := `"justification": "` + strings.Replace(evidence, "fixed ", "fixed: ", 1)
	if err := SARIF(&sarif, r); err != nil || strings.Count(sarif.String(), suppressed) != 2 {
		t.Errorf("%v, %s", err, &sarif)
	}
}

func TestOverrideThatMendsIsFixedInWhatIsAsNew(t *testing.T) {
	t.Parallel()
	described := patchedRelease()
	described.Overrides = []release.Override{
		{Module: "golang.org/x/net", Version: "v0.60.0", Fixes: []string{"CVE-2026-2222"}},
		{Module: "golang.org/x/net", Version: "v0.60.1", Fixes: []string{"CVE-2026-3333"}},
		{Module: "golang.org/x/sys", Version: "v0.40.0", With: "acme.io/sys@v0.40.0-acme.1", Fixes: []string{"CVE-2026-4444"}},
	}
	described.Inputs = append(described.Inputs,
		release.Input{Kind: release.Module, Name: "acme.io/sys", Version: "v0.40.0-acme.1", Replaces: "golang.org/x/sys@v0.40.0"},
		release.Input{Kind: release.Module, Name: "golang.org/x/sys", Version: "v0.41.0"}) // of a project without the fork
	r := reportOf(described)
	got := map[string]int{}
	for _, f := range r.Fixes {
		got[f.ID+" "+f.evidence()] = len(f.Modules)
	}
	want := map[string]int{
		"CVE-2026-1111 patches/0001-net.patch, sha256:77, in the tree at commit 0123abcd":                  1,
		"CVE-2026-2222 golang.org/x/net@v0.60.0 in release/release.yaml, in the tree at commit 0123abcd":   2, // a patched one is as new
		"CVE-2026-3333 golang.org/x/net@v0.60.1 in release/release.yaml, in the tree at commit 0123abcd":   0,
		"CVE-2026-4444 acme.io/sys@v0.40.0-acme.1 in release/release.yaml, in the tree at commit 0123abcd": 1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("fixes (-want +got):\n%s", diff)
	}
}

func TestPeopleKnowBetterThanAPatch(t *testing.T) {
	t.Parallel()
	r := reportOf(patchedRelease(),
		Exception{ID: "GO-2026-1", Component: "kubelet", Status: "affected", Reason: "half of it", Until: "2999-01-01"})
	if got := stated(t, r)["GO-2026-1 kubelet"]; got != "affected" {
		t.Errorf("kubelet: %s", got)
	}
}

// A fix for what no database knows yet is stated, too.
func TestFixOfWhatNobodyKnowsIsStated(t *testing.T) {
	t.Parallel()
	described := patchedRelease()
	described.Inputs[2].Fixes = []string{"CVE-2026-9999"}
	r := reportOf(described)
	got := stated(t, r)
	if !strings.HasPrefix(got["CVE-2026-9999 kubelet"], "fixed patches/0001-net.patch") || got["CVE-2026-9999 etcd"] != "" {
		t.Errorf("%q", got)
	}
	if got["GO-2026-1 kubelet"] != "affected" {
		t.Errorf("a fix of another vulnerability counts: %q", got)
	}
}

// Of two patched versions of a module nobody knows which has the patch, unless the patches of both have the fix.
func TestFixCountsIfAllPatchedVersionsHaveIt(t *testing.T) {
	t.Parallel()
	other := release.Input{Kind: release.Module, Name: "golang.org/x/net", Version: otherNet}
	unrelated := release.Input{Kind: release.Patch, Name: "images/etcd/patches/0001-x.patch", Changes: []string{"golang.org/x/net"}}
	r := reportOf(patchedRelease(other, unrelated))
	if got := stated(t, r)["GO-2026-1 kubelet"]; got != "affected" {
		t.Errorf("kubelet: %s", got)
	}
	var text bytes.Buffer
	if err := r.Text(&text); err != nil ||
		!strings.Contains(text.String(), "0001-net.patch says that it mends CVE-2026-1111, which counts nowhere") {
		t.Errorf("%v, %s", err, &text)
	}
	unrelated.Fixes = []string{"CVE-2026-1111"}
	if got := stated(t, reportOf(patchedRelease(other, unrelated)))["GO-2026-1 kubelet"]; !strings.HasPrefix(got, "fixed") {
		t.Errorf("kubelet: %s", got)
	}
}

func TestSeverityDecidesWhatFails(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		failOn, severity string
		ok               bool
	}{
		{"", "", false}, {"", "low", false}, {"high", "", false}, {"high", "medium", true}, {"high", "high", false},
		{"high", "critical", false}, {"critical", "high", true}, {"low", "low", false},
	} {
		r := &Report{FailOn: tt.failOn, Found: []*Found{{ID: "GO-1", Severity: tt.severity, In: []Place{{Artifact: "kubelet"}}}}}
		if r.OK() != tt.ok {
			t.Errorf("%+v: OK is %t", tt, r.OK())
		}
		r.Expired = []Exception{{ID: "GO-2"}}
		if r.OK() {
			t.Errorf("%+v: an expired exception does not fail", tt)
		}
	}
	_, err := Find(t.Context(), Options{Release: &release.Release{}, FailOn: "hihg"})
	if err == nil || !strings.Contains(err.Error(), "high") {
		t.Errorf("a severity that there is not: %v", err)
	}
}

func TestDocumentsAreOfSeveralReleases(t *testing.T) {
	t.Parallel()
	one, two := reportOf(patchedRelease()), reportOf(patchedRelease())
	two.Release, two.date = "v1.36.9+acme.1", time.Unix(1, 0)
	var vex, sarif bytes.Buffer
	if err := OpenVEX(&vex, "me", one, two); err != nil {
		t.Fatal(err)
	}
	if err := SARIF(&sarif, one, two); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"v1.37.1%2Bacme.1", "v1.36.9%2Bacme.1", `"timestamp": "1970-01-01T00:00:01Z"`} {
		if !strings.Contains(vex.String(), want) {
			t.Errorf("no %s in %s", want, &vex)
		}
	}
	if n := strings.Count(sarif.String(), `"uri": "v1.36.9+acme.1/linux/amd64/kubelet"`); n != 1 {
		t.Errorf("%d results in kubelet of v1.36.9: %s", n, &sarif)
	}
	if n := strings.Count(sarif.String(), `"id": "GO-2026-1"`); n != 1 {
		t.Errorf("%d rules", n)
	}
}
