package report_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/mechanism/report"
)

var grouped = report.Results{
	{Group: "pets", Name: "cat", Outcome: report.Passed, Seconds: 0.25},
	{Group: "pets", Name: "unicorn", Outcome: report.Skipped, Message: "there are none"},
	{Group: "farm", Name: "cow", Outcome: report.Failed, Seconds: 12, Message: "does not <moo>\nat all", Details: "1 cow\n  asleep\n"},
}

var long = report.Results{
	{Name: "a", Outcome: report.Passed, Seconds: 1},
	{Name: "b", Outcome: report.Failed, Message: "1\n2\n3\n4\n5\n6\n7\n8\n", Location: "b.go:1", Output: "said"},
	{Name: "c", Outcome: report.Skipped, Message: "why"},
	{Name: "d", Outcome: report.NotRun},
}

func TestTableAlignsResultsAsTheyCome(t *testing.T) {
	t.Parallel()
	var plain, colored bytes.Buffer
	table, inColor := report.NewTable(&plain, grouped, false), report.NewTable(&colored, grouped, true)
	for _, r := range grouped {
		table.Write(r)
		inColor.Write(r)
	}
	want := `RESULT    GROUP   CHECK       TIME
passed    pets    cat         0.2s
skipped   pets    unicorn     0.0s   there are none
failed    farm    cow        12.0s   does not <moo>
`
	if diff := cmp.Diff(want, plain.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	stripped := strings.NewReplacer("\x1b[32m", "", "\x1b[31m", "", "\x1b[33m", "", "\x1b[m", "").Replace(colored.String())
	if stripped != want || strings.Count(colored.String(), "\x1b[m") != len(grouped) {
		t.Errorf("in color:\n%q", colored.String())
	}
}

func TestLongNamesAreCountedInstead(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	for i, r := range long {
		report.WriteCounted(&b, r, i+8, 11, false)
	}
	want := " 8/11   passed      1.0s   a\n 9/11   failed             b\n10/11   skipped            c\n11/11   not run            d\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestExplainNamesReasons(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := grouped.Explain(&b, report.Failed); err != nil {
		t.Fatal(err)
	}
	if err := long.Explain(&b, report.Failed, report.Skipped, report.NotRun); err != nil {
		t.Fatal(err)
	}
	want := `
failed: farm/cow
    does not <moo>
    at all
    1 cow
      asleep

failed: b
    at b.go:1
    1
    2
    3
    4
    5
    6
    … 2 more lines

skipped: c
    why

not run: d
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestSummaryCountsOutcomes(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{
		grouped.Summary("checks", 61400*time.Millisecond): "3 checks in 1m1s: 1 passed, 1 failed, 1 skipped",
		long.Summary("specs", time.Second):                "4 specs in 1s: 1 passed, 1 failed, 1 skipped, 1 not run",
		report.Results(nil).Summary("checks", 0):          "0 checks in 0s: 0 passed, 0 failed, 0 skipped",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if n := long.Count(report.Failed, report.NotRun); n != 2 {
		t.Errorf("%d failed or did not run, want 2", n)
	}
}

func TestJSONHasTheFieldsThatAreSet(t *testing.T) {
	t.Parallel()
	got, err := json.Marshal(append(grouped[1:2:2], long[1]))
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"group":"pets","name":"unicorn","result":"skipped","message":"there are none"},` +
		`{"name":"b","result":"failed","message":"1\n2\n3\n4\n5\n6\n7\n8\n","location":"b.go:1"}]`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestJUnitHasASuiteForEachGroup(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := grouped.JUnit(&b, "zoo v1", "zoo", 61400*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	want := `<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="zoo v1" tests="3" failures="1" skipped="1" time="61.400">
  <testsuite name="pets" tests="2" failures="0" skipped="1" time="0.250">
    <testcase classname="zoo.pets" name="cat" time="0.250"></testcase>
    <testcase classname="zoo.pets" name="unicorn" time="0.000">
      <skipped message="there are none"></skipped>
    </testcase>
  </testsuite>
  <testsuite name="farm" tests="1" failures="1" skipped="0" time="12.000">
    <testcase classname="zoo.farm" name="cow" time="12.000">
      <failure message="does not &lt;moo&gt;">does not &lt;moo&gt;&#xA;at all&#xA;1 cow&#xA;  asleep&#xA;</failure>
    </testcase>
  </testsuite>
</testsuites>
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestJUnitWithoutGroupsIsOneSuite(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := long.JUnit(&b, "specs v1", "specs", 7*time.Second, report.Property{Name: "image", Value: "ours"}); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		`<testsuite name="specs v1" tests="4" failures="1" skipped="2" time="7.000">`, `<testcase classname="specs" name="b"`,
		`<property name="image" value="ours"></property>`,
		`<failure message="1">1&#xA;2`, "b.go:1</failure>", "<system-out>said</system-out>", `<skipped message="why">`,
		`<skipped message="not run">`,
	} {
		if !strings.Contains(b.String(), part) {
			t.Errorf("lacks %s:\n%s", part, b.String())
		}
	}
}

func ExampleTable() {
	planned := report.Results{{Group: "dns", Name: "lookup"}, {Group: "dns", Name: "reverse"}}
	table := report.NewTable(os.Stdout, planned, false)
	for _, r := range planned {
		r.Outcome = report.Passed
		table.Write(r)
	}
	// Output:
	// RESULT    GROUP   CHECK       TIME
	// passed    dns     lookup      0.0s
	// passed    dns     reverse     0.0s
}

func ExampleResults_Explain() {
	results := report.Results{
		{Group: "dns", Name: "lookup", Outcome: report.Passed},
		{Group: "dns", Name: "reverse", Outcome: report.Failed, Message: "no answer", Details: "server: 10.0.0.10"},
	}
	results.Explain(os.Stdout, report.Failed)
	fmt.Println("\n" + results.Summary("checks", 3*time.Second))
	// Output:
	// failed: dns/reverse
	//     no answer
	//     server: 10.0.0.10
	//
	// 2 checks in 3s: 1 passed, 1 failed, 0 skipped
}
