package provenance

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

var rebuilt = time.Date(2026, 11, 2, 3, 4, 5, 0, time.FixedZone("", 3600))

// summary returns a statement, and the summary of its rebuild.
func summary(t testing.TB) (statement, summary []byte) {
	t.Helper()
	made, err := Of(small(), []byte("description"))
	if err != nil {
		t.Fatal(err)
	}
	summary, err = Summarize(made[0].Content, rebuilt)
	if err != nil {
		t.Fatal(err)
	}
	return made[0].Content, summary
}

func TestSummariesAreOfOneStatement(t *testing.T) {
	t.Parallel()
	statement, good := summary(t)
	if err := CheckSummary(good, statement); err != nil {
		t.Error(err)
	}
	for _, want := range []string{
		`"timeVerified": "2026-11-02T02:04:05Z"`, `"verificationResult": "PASSED"`, `"resourceUri": "pkg:generic/kubernetes@v1.37.1+acme.1"`,
		`"SLSA_BUILD_LEVEL_1"`, `"id": "https://slipway.build/docs/provenance#rebuild"`,
	} {
		if !strings.Contains(string(good), want) {
			t.Errorf("no %s in %s", want, good)
		}
	}
	for what, tt := range map[string]struct{ old, now, problem string }{
		"failed":           {`"PASSED"`, `"FAILED"`, "its result is FAILED"},
		"another verifier": {`provenance#rebuild"`, `provenance#other"`, "it is no summary of a rebuild"},
		"another type":     {SummaryType, "https://example.com", "it is no summary of a rebuild"},
		"another digest":   {strings.Repeat("a", 64), strings.Repeat("c", 64), "it is about other files"},
		"another name":     {`"node.tar.gz"`, `"edon.tar.gz"`, "it is about other files"},
		"more levels":      {`"SLSA_BUILD_LEVEL_1"`, `"SLSA_BUILD_LEVEL_3"`, "it is about another provenance, or not as slipway states it"},
		"no time":          {`"2026-11-02T02:04:05Z"`, `"today"`, "the time of the rebuild"},
		"more":             {`"slsaVersion"`, `"more": 1, "slsaVersion"`, `unknown field "more"`},
	} {
		bad := strings.Replace(string(good), tt.old, tt.now, 1)
		if err := CheckSummary([]byte(bad), statement); bad == string(good) || err == nil || !strings.Contains(err.Error(), tt.problem) {
			t.Errorf("%s: error %v, want %q", what, err, tt.problem)
		}
	}
	var dropped Summary
	if err := json.Unmarshal(good, &dropped); err != nil {
		t.Fatal(err)
	}
	dropped.Subject = dropped.Subject[1:]
	data, err := json.MarshalIndent(dropped, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if err := CheckSummary(append(data, '\n'), statement); err == nil || err.Error() != "it is about other files" {
		t.Errorf("a subject was dropped: error %v", err)
	}
	other := strings.Replace(string(statement), "v1.37.1+acme.1", "v1.37.1+acme.2", 1)
	if err := CheckSummary(good, []byte(other)); err == nil {
		t.Error("it is of another release, too")
	}
	if _, err := Summarize([]byte("{}"), rebuilt); err == nil {
		t.Error("anything is summarized")
	}
}

func FuzzCheckSummary(f *testing.F) {
	statement, good := summary(f)
	f.Add(good)
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := CheckSummary(data, statement); err == nil {
			again, err := Summarize(statement, rebuilt)
			if err != nil || len(again) != len(data) {
				t.Errorf("%q is accepted", data)
			}
		}
	})
}
