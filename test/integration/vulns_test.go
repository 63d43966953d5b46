//go:build integration

package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A vulnerability is one of a package of a module, before a version.
type vulnerability struct{ id, module, pkg, fixed string }

// vulnerabilities writes a database of Go's vulnerabilities, in the form of https://go.dev/doc/security/vuln/database, and returns its
// address.
func vulnerabilities(t *testing.T, all ...vulnerability) string {
	t.Helper()
	dir := t.TempDir()
	write := func(name string, value any) {
		t.Helper()
		data, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	type object = map[string]any
	const day = "2026-01-01T00:00:00Z"
	modules, list := map[string][]object{}, []object{}
	for _, v := range all {
		modules[v.module] = append(modules[v.module], object{"id": v.id, "modified": day, "fixed": v.fixed})
		list = append(list, object{"id": v.id, "modified": day})
		write("ID/"+v.id+".json", object{
			"schema_version": "1.3.1", "id": v.id, "modified": day, "published": day, "aliases": []string{"CVE-" + v.id},
			"summary": "Bad", "details": "Bad.",
			"affected": []object{{
				"package":            object{"name": v.module, "ecosystem": "Go"},
				"ranges":             []object{{"type": "SEMVER", "events": []object{{"introduced": "0"}, {"fixed": v.fixed}}}},
				"ecosystem_specific": object{"imports": []object{{"path": v.pkg, "symbols": []string{"Some"}}}},
			}},
		})
	}
	var index []object
	for path, vulns := range modules {
		index = append(index, object{"path": path, "vulns": vulns})
	}
	write("index/db.json", object{"modified": day})
	write("index/modules.json", index)
	write("index/vulns.json", list)
	return "file://" + dir
}

// Of what a database knows, a release has what its programs link and its images hold, and nothing else.
func TestVulnerabilitiesOfARelease(t *testing.T) {
	rare(t, "it reads all programs and SBOMs several times; a script of pkg/cli does it with a small release")
	containerLane.join(t)
	r := baseline(t)
	db := vulnerabilities(t,
		vulnerability{"GO-1", "golang.org/x/net", "golang.org/x/net/http2", "0.999.0"},
		vulnerability{"GO-2", "golang.org/x/net", "golang.org/x/net/xsrftoken", "0.999.0"}, // no program links it, though all have the module
		vulnerability{"GO-3", "golang.org/x/net", "golang.org/x/net/http2", "0.1.0"},
		vulnerability{"GO-4", "stdlib", "crypto/tls", "9.0.0"},
		vulnerability{"GO-5", "github.com/coredns/coredns", "github.com/coredns/coredns/plugin/forward", "1.999.0"}, // in an image alone
	)
	tracker := filepath.Join(t.TempDir(), "tracker.json")
	status := `{"iptables": {"CVE-1": {"releases": {"trixie": {"status": "open"}}}, "CVE-2": {"releases": {"trixie": {"status": "resolved", "fixed_version": "1.8.0"}}}}}`
	if err := os.WriteFile(tracker, []byte(status), 0o644); err != nil {
		t.Fatal(err)
	}
	documents := t.TempDir()
	ask := []string{"vulns", "--db", db, "--tracker", tracker, "--openvex", documents + "/vex.json", "--author", "test", "--sarif",
		documents + "/sarif.json", "--json"}
	var report struct {
		Binaries, Packages int
		Found              []struct {
			ID, Component, Mend string
			Linked              []string
			In                  []struct {
				Artifact string
				Tarballs []string
			}
		}
	}
	said := r.slipway(t, ask...).fails(t, 1, "without an exception").stdout
	if err := json.Unmarshal([]byte(said), &report); err != nil {
		t.Fatal(err)
	}
	found := map[string][]string{}
	for _, f := range report.Found {
		for _, p := range f.In {
			found[f.ID+" "+f.Component] = append(found[f.ID+" "+f.Component], p.Artifact)
		}
	}
	on := "linux/" + hostArch + "/"
	for what, in := range map[string]string{
		"GO-1 golang.org/x/net": on + "kubelet", "GO-4 stdlib": on + "etcdctl", "GO-5 github.com/coredns/coredns": on + "coredns",
		"CVE-1 iptables": "registry.k8s.io/kube-proxy-" + hostArch,
	} {
		if !slices.ContainsFunc(found[what], func(artifact string) bool { return strings.HasPrefix(artifact, in) }) {
			t.Errorf("%s is not found in %s: %q", what, in, found)
		}
	}
	for what := range found {
		if id, _, _ := strings.Cut(what, " "); slices.Contains([]string{"GO-2", "GO-3", "CVE-2"}, id) {
			t.Errorf("%s is claimed of %q", what, found[what])
		}
	}
	if binaries := len(r.described(t).of("binary")); report.Binaries != binaries || report.Packages < 20 {
		t.Errorf("it looked at %d of %d binaries and %d packages", report.Binaries, binaries, report.Packages)
	}
	read := func(said string) {
		t.Helper()
		if err := os.WriteFile(documents+"/report.json", []byte(said), 0o644); err != nil {
			t.Fatal(err)
		}
		run(t, "../clients", nil, client(t, "findings"), documents+"/vex.json", documents+"/sarif.json", documents+"/report.json",
			r.path(tars+"/release.json")).ok(t)
	}
	read(said)

	var exceptions strings.Builder
	exceptions.WriteString("exceptions:\n")
	for id, status := range map[string]string{"GO-1": "fixed", "GO-4": "not_affected, justification: inline_mitigations_already_exist",
		"GO-5": "under_investigation", "CVE-1": "affected"} {
		fmt.Fprintf(&exceptions, "- {id: %s, status: %s, reason: a test, until: 2999-12-31}\n", id, status)
	}
	file := filepath.Join(documents, "vulns.yaml")
	if err := os.WriteFile(file, []byte(exceptions.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	read(r.slipway(t, append(ask, "--exceptions", file)...).ok(t).stdout)
}
