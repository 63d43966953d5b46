package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/mechanism/report"
)

func TestBuildEventsSayWhichPackagesFail(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "test.log")
	if err := os.WriteFile(log, []byte("--- FAIL: TestA\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	events := `{"id":{"started":{}},"started":{"uuid":"1"}}
{"id":{"testResult":{"label":"@@io_k8s_api//core/v1:v1_test"}},"testResult":{"testActionOutput":[{"name":"test.log","uri":"file://` + log + `"}]}}
{"id":{"testSummary":{"label":"@@io_k8s_api//core/v1:v1_test"}},"testSummary":{"overallStatus":"FAILED","totalRunDurationMillis":"1500"}}
{"id":{"testSummary":{"label":"@io_k8s_api//core:core_test"}},"testSummary":{"overallStatus":"PASSED","totalRunDurationMillis":"250"}}
{"id":{"testSummary":{"label":"@@io_k8s_other//x:x_test"}},"testSummary":{"overallStatus":"PASSED"}}
`
	got, err := bazelUnits(strings.NewReader(events), []string{"k8s.io/api/core", "k8s.io/api/core/v1", "k8s.io/api/none"},
		[]string{"@io_k8s_api//core:all", "@io_k8s_api//core/v1:all", "@io_k8s_api//none:all"})
	if err != nil {
		t.Fatal(err)
	}
	want := []unit{
		{Package: "k8s.io/api/core", Outcome: report.Passed, Seconds: 0.25},
		{Package: "k8s.io/api/core/v1", Outcome: report.Failed, Seconds: 1.5, Output: "FAILED\n--- FAIL: TestA\n"},
		{Package: "k8s.io/api/none", Outcome: report.Failed, Output: "Bazel has no result for it: there is no target, or it was not built"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("units (-want +got):\n%s", diff)
	}
}
