package govulns

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
)

func TestSeverityIsThatOfTheDatabase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "ID"), 0o755); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	t.Cleanup(server.Close)
	for entry, want := range map[string]string{
		`{"id": "GO-1"}`: "",
		`{"severity": [{"type": "CVSS_V3", "score": "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H"}]}`: "critical", // 9.8
		`{"severity": [{"type": "CVSS_V3", "score": "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:N/I:N/A:H"}]}`: "high",     // 7.5
		`{"severity": [{"type": "CVSS_V3", "score": "CVSS:3.0/AV:N/AC:L/PR:N/UI:N/S:U/C:N/I:N/A:L"}]}`: "medium",   // 5.3
		`{"severity": [{"type": "CVSS_V3", "score": "CVSS:3.1/AV:L/AC:H/PR:L/UI:R/S:U/C:L/I:N/A:N"},
			{"type": "CVSS_V2", "score": "AV:L/AC:H/Au:M/C:P/I:N/A:N"}]}`: "low",
		`{"severity": [{"type": "CVSS_V3", "score": "CVSS:3.1/AV:L/AC:H/PR:L/UI:R/S:U/C:L/I:N/A:N"},
			{"type": "CVSS_V4", "score": "CVSS:4.0/AV:N/AC:L/AT:N/PR:N/UI:N/VC:H/VI:H/VA:H/SC:N/SI:N/SA:N"}]}`: "critical", // 9.3
		`{"database_specific": {"severity": "MODERATE"}}`:               "medium",
		`{"database_specific": {"severity": "?"}}`:                      "",
		`{"severity": [{"type": "CVSS_V3", "score": "CVSS:3.1/AV:N"}]}`: "error",
		`{"severity": [{"type": "Ubuntu", "score": "high"}]}`:           "",
		`{`: "error",
	} {
		if err := os.WriteFile(filepath.Join(dir, "ID", "GO-1.json"), []byte(entry), 0o644); err != nil {
			t.Fatal(err)
		}
		for _, db := range []string{"file://" + dir, server.URL} {
			got, err := Severity(t.Context(), db, "GO-1")
			if (err != nil) != (want == "error") || err == nil && got != want {
				t.Errorf("%s: %q, %v, want %q", entry, got, err, want)
			}
		}
	}
	for _, db := range []string{"file://" + dir, server.URL} {
		if _, err := Severity(t.Context(), db, "GO-2"); err == nil {
			t.Errorf("%s: an entry that is not there has a severity", db)
		}
	}
}
