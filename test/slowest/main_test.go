package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTableHasTheSlowestTestsFirst(t *testing.T) {
	t.Parallel()
	const said = `=== RUN   TestQuick
--- PASS: TestQuick (0.50s)
=== RUN   TestPatient
=== ATTR  TestPatient waited 60.00
=== RUN   TestSlow
=== RUN   TestSlow/part
    a_test.go:1: fine
=== RUN   TestSlow/short
=== NAME  TestSlow
=== PAUSE TestSlow
=== RUN   TestQuick
=== ATTR  TestSlow waited 0.00
    a_test.go:9: got 1,
        want 2
--- FAIL: TestSlow (50.00s)
    --- PASS: TestSlow/part (45.00s)
    --- SKIP: TestSlow/short (3.00s)
--- PASS: TestPatient (61.25s)
processor 12.5 (the release)
=== ATTR  TestSlow processor 3.0
=== ATTR  TestSlow free 71.3
processor 40.0 (a copy)
ok  	example.test/a	72.000s`
	var out strings.Builder
	rows, of, err := copyRows(strings.NewReader(said), &out)
	if err != nil || out.String() != said {
		t.Errorf("copied %q, %v", out.String(), err)
	}
	out.Reset()
	if err := table(&out, rows, of); err != nil {
		t.Fatal(err)
	}
	const want = `
  seconds processor GB free  test
     50.0       3.0    71.3  TestSlow FAIL
     45.0                    TestSlow/part
      1.2                    TestPatient
      0.5                    TestQuick
               40.0          (a copy)
               12.5          (the release)
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	out.Reset()
	if err := failures(&out, rows); err != nil {
		t.Fatal(err)
	}
	if want := "\nTestSlow has failed:\n    a_test.go:9: got 1,\n        want 2\n"; out.String() != want {
		t.Errorf("failures %q, want %q", out.String(), want)
	}
}
