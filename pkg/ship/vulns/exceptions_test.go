package vulns

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const good = `exceptions:
- id: CVE-2026-1
  component: kubelet
  status: not_affected
  justification: vulnerable_code_not_in_execute_path
  reason: the kubelet parses no such files
  until: 2027-01-31
- id: GO-2
  status: fixed
  reason: patches/0003-fix.patch
  until: 2027-02-28
`

func TestExceptionsAreReadStrictly(t *testing.T) {
	t.Parallel()
	got, err := parseExceptions([]byte(good))
	if err != nil {
		t.Fatal(err)
	}
	want := []Exception{
		{"CVE-2026-1", "kubelet", "not_affected", "vulnerable_code_not_in_execute_path", "the kubelet parses no such files", "2027-01-31"},
		{"GO-2", "", "fixed", "", "patches/0003-fix.patch", "2027-02-28"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for what, tt := range map[string]struct{ old, now, problem string }{
		"no id":     {"id: CVE-2026-1", `id: ""`, "line 2: an exception needs an id"},
		"no reason": {"reason: patches/0003-fix.patch", `reason: ""`, "line 8: the exception for GO-2 needs a reason"},
		"no such status": {"status: fixed", "status: ignored",
			`its status is not_affected, fixed, affected or under_investigation, not "ignored"`},
		"no justification": {"  justification: vulnerable_code_not_in_execute_path\n", "", "has the justification"},
		"justification fixed": {"status: fixed", "status: fixed\n  justification: component_not_present",
			"only what is not_affected has a justification"},
		"no day":        {"until: 2027-02-28", "until: 2027-02-29", `until "2027-02-29", want a day such as 2027-01-31`},
		"unknown field": {"  component: kubelet", "  komponent: kubelet", "komponent"},
		"unknown list":  {"exceptions:", "exeptions:", "exeptions"},
		"two documents": {"exceptions:", "---\n---\nexceptions:", "more than one document"},
		"two of a key":  {"  status: fixed", "  status: fixed\n  status: fixed", "already"},
	} {
		if _, err := parseExceptions([]byte(strings.Replace(good, tt.old, tt.now, 1))); err == nil || !strings.Contains(err.Error(), tt.problem) {
			t.Errorf("%s: error %v, want %q", what, err, tt.problem)
		}
	}
	if none, err := ReadExceptions(filepath.Join(t.TempDir(), "none.yaml")); err != nil || len(none) > 0 {
		t.Errorf("no file: %v, error %v", none, err)
	}
	if none, err := parseExceptions(nil); err != nil || len(none) > 0 {
		t.Errorf("an empty file: %v, error %v", none, err)
	}
	large := filepath.Join(t.TempDir(), "large.yaml")
	if err := os.WriteFile(large, make([]byte, maxExceptions+1), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadExceptions(large); err == nil {
		t.Error("a large file is read")
	}
}

func TestExceptionsExpire(t *testing.T) {
	t.Parallel()
	e := Exception{ID: "GO-1", Until: "2027-01-31"}
	for at, want := range map[string]bool{"2027-01-30T00:00:00Z": false, "2027-01-31T23:59:59Z": false, "2027-02-01T00:00:00Z": true} {
		now, err := time.Parse(time.RFC3339, at)
		if err != nil {
			t.Fatal(err)
		}
		if e.expired(now) != want {
			t.Errorf("on %s it has expired: %t", at, !want)
		}
	}
}

func FuzzExceptions(f *testing.F) {
	f.Add([]byte(good))
	f.Fuzz(func(_ *testing.T, data []byte) { _, _ = parseExceptions(data) })
}
