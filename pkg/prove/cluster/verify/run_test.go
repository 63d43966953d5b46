package verify

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/mechanism/suggest"
)

var fakes = []Check{
	{Group: "pets", Name: "cat"}, {Group: "pets", Name: "dog", Alone: true}, {Group: "pets", Name: "unicorn", Skips: true},
	{Group: "farm", Name: "cow"}, {Group: "farm", Name: "dog"},
}

// results has checks end as a map says.
func results(of map[string]error) func(context.Context, Check) (string, error) {
	return func(_ context.Context, c Check) (string, error) {
		err := of[c.Group+"/"+c.Name]
		if err == nil {
			return "", nil
		}
		return "a log\nof two lines\n", err
	}
}

func report(t *testing.T) Report {
	t.Helper()
	r, err := run(t.Context(), Options{Checks: fakes}, results(map[string]error{
		"pets/unicorn": fmt.Errorf("look: %w", skip("there are none")), "farm/cow": errors.New("does not <moo>"), "farm/dog": skip("no time"),
	}))
	if err != nil {
		t.Fatal(err)
	}
	r.Cluster, r.Version, r.Seconds = "zoo", "v1.36.3", 61.4
	for i := range r.Rows {
		r.Rows[i].Seconds = float64(i)
	}
	return r
}

func TestOnlyWhatMayBeSkippedIs(t *testing.T) {
	t.Parallel()
	r := report(t)
	var got []string
	for _, row := range r.Rows {
		got = append(got, fmt.Sprintf("%s/%s %s %s", row.Group, row.Name, row.Result, row.Message))
	}
	want := []string{
		"pets/cat passed ", "pets/dog passed ", "pets/unicorn skipped look: there are none",
		"farm/cow failed does not <moo>", "farm/dog failed was skipped, but only what a machine may lack can be: no time",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got, want := r.Summary(), "5 checks in 1m1s: 2 passed, 2 failed, 1 skipped"; got != want {
		t.Errorf("the summary is %q, want %q", got, want)
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	table := NewTable(&b, fakes, false)
	r := report(t)
	for _, row := range r.Rows {
		table.Row(row)
	}
	if err := table.End(r); err != nil {
		t.Fatal(err)
	}
	want := `RESULT    GROUP   CHECK       TIME
passed    pets    cat         0.0s
passed    pets    dog         1.0s
skipped   pets    unicorn     2.0s   look: there are none
failed    farm    cow         3.0s   does not <moo>
failed    farm    dog         4.0s   was skipped, but only what a machine may lack can be: no time

farm/cow: does not <moo>
    a log
    of two lines

farm/dog: was skipped, but only what a machine may lack can be: no time
    a log
    of two lines

5 checks in 1m1s: 2 passed, 2 failed, 1 skipped
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}

func TestJSONHasEachRow(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	want := report(t)
	if err := want.JSON(&b); err != nil {
		t.Fatal(err)
	}
	var got Report
	if err := json.Unmarshal(b.Bytes(), &got); err != nil || strings.Count(b.String(), "\n") != 1 {
		t.Fatalf("%v: %s", err, b.String())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestJUnitHasASuiteForEachGroup(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := report(t).JUnit(&b); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Skipped  int `xml:"skipped,attr"`
		Suites   []struct {
			Name     string `xml:"name,attr"`
			Failures int    `xml:"failures,attr"`
			Cases    []struct {
				Name    string `xml:"name,attr"`
				Failure *struct {
					Message string `xml:"message,attr"`
					Text    string `xml:",chardata"`
				} `xml:"failure"`
				Skipped *struct{} `xml:"skipped"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatalf("%v: %s", err, b.String())
	}
	if got.Tests != 5 || got.Failures != 2 || got.Skipped != 1 || len(got.Suites) != 2 || len(got.Suites[0].Cases) != 3 || got.Suites[1].Failures != 2 {
		t.Fatalf("%s", b.String())
	}
	if f := got.Suites[1].Cases[0].Failure; f == nil || f.Message != "does not <moo>" || f.Text != "a log\nof two lines\n" {
		t.Errorf("of a failure it has %+v", f)
	}
	if got.Suites[0].Cases[2].Skipped == nil || got.Suites[0].Cases[0].Skipped != nil {
		t.Errorf("it does not tell who was skipped: %s", b.String())
	}
}

func TestCheckEndsAtItsLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		checks := []Check{{Group: "a", Name: "short"}, {Group: "a", Name: "long", Limit: time.Hour}}
		hang := func(ctx context.Context, c Check) (string, error) {
			return "", until(ctx, func() error { return errors.New("not yet") })
		}
		for _, tt := range []struct {
			limit time.Duration
			want  []string
		}{
			{0, []string{"not done after 3m0s: not yet", "not done after 1h0m0s: not yet"}},
			{time.Minute, []string{"not done after 1m0s: not yet", "not done after 1m0s: not yet"}},
		} {
			r, err := run(t.Context(), Options{Checks: checks, Limit: tt.limit}, hang)
			if err != nil {
				t.Fatal(err)
			}
			for i, row := range r.Rows {
				if row.Result != Failed || row.Message != tt.want[i] {
					t.Errorf("with limit %v: %+v, want %q", tt.limit, row, tt.want[i])
				}
			}
		}
	})
}

func TestChecksRunSideBySideButForThoseAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var checks []Check
		for i := range 10 {
			checks = append(checks, Check{Group: "a", Name: fmt.Sprint(i), Alone: i < 2})
		}
		checks = append(checks, Check{Group: "b", Name: "last"})
		var mu sync.Mutex
		var order []string
		var running, most atomic.Int32
		_, err := run(t.Context(), Options{Checks: checks}, func(ctx context.Context, c Check) (string, error) {
			n := running.Add(1)
			defer running.Add(-1)
			most.Store(max(most.Load(), n))
			time.Sleep(time.Second)
			if c.Alone && running.Load() != 1 {
				t.Errorf("%s is not alone", c.Name)
			}
			mu.Lock()
			defer mu.Unlock()
			order = append(order, c.Name)
			return "", nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if most.Load() != sideBySide {
			t.Errorf("%d ran at once, want %d", most.Load(), sideBySide)
		}
		if got, want := order[8:], []string{"0", "1", "last"}; !slices.Equal(got, want) {
			t.Errorf("at the end ran %q, want %q", got, want)
		}
	})
}

func TestInterruptedRunHasTheRowsThatWereMade(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	r, err := run(ctx, Options{Checks: fakes}, func(ctx context.Context, c Check) (string, error) {
		if c.Name == "dog" {
			cancel()
			return "", ctx.Err()
		}
		return "", nil
	})
	if !errors.Is(err, context.Canceled) || len(r.Rows) != 2 || r.Count(Failed) != 0 {
		t.Errorf("%v: %+v", err, r)
	}
}

func TestSelectByGroupAndName(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		names []string
		want  string
	}{
		{nil, "pets/cat pets/dog pets/unicorn farm/cow farm/dog"},
		{[]string{"farm"}, "farm/cow farm/dog"},
		{[]string{"dog"}, "pets/dog farm/dog"},
		{[]string{"farm/dog", "cat", "farm/dog"}, "pets/cat farm/dog"},
	} {
		checks, err := selectFrom(fakes, tt.names)
		var got []string
		for _, c := range checks {
			got = append(got, c.Group+"/"+c.Name)
		}
		if err != nil || strings.Join(got, " ") != tt.want {
			t.Errorf("%q selects %q, %v, want %s", tt.names, got, err, tt.want)
		}
	}
	for name, near := range map[string]string{"famr": "farm", "farm/dgo": "farm/dog", "unicron": "unicorn", "spaceship": "", "dig": "dog", "foo": "", "": ""} {
		_, err := selectFrom(fakes, []string{name})
		var unknown *suggest.UnknownError
		if !errors.As(err, &unknown) || strings.Join(unknown.Near, " ") != near {
			t.Errorf("for %q: %v, want it to suggest %q", name, err, near)
		}
	}
}

// Namespaces have the names of checks, and those have a limit.
func TestChecksHaveNamesOfTheirOwnThatNamespacesCanHave(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, c := range All() {
		id := c.Group + "/" + c.Name
		if seen[id] || len("verify-"+c.Name+"-xxxxx-more") > 63 || strings.Trim(c.Name, "abcdefghijklmnopqrstuvwxyz-") != "" || c.run == nil {
			t.Errorf("check %s", id)
		}
		seen[id] = true
		if c.Skips && id != "services/proxy-ipvs" {
			t.Errorf("%s may be skipped", id)
		}
	}
	if len(seen) < 50 {
		t.Errorf("there are %d checks only", len(seen))
	}
}
