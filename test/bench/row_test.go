package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func samples(values ...float64) []Sample {
	var all []Sample
	for _, v := range values {
		all = append(all, Sample{Value: v})
	}
	return all
}

func TestMedian(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		values []float64
		want   float64
	}{
		{nil, 0},
		{[]float64{7}, 7},
		{[]float64{3, 1}, 2},
		{[]float64{9, 1, 2}, 2},
		{[]float64{4, 1, 9, 2}, 3},
	} {
		if got := median(samples(test.values...)); got != test.want {
			t.Errorf("median of %v is %v, want %v", test.values, got, test.want)
		}
	}
}

func TestFigureIsHeldAgainstItsBound(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name         string
		wanted       Bound
		ours, theirs float64
		figure       float64
		ok           bool
	}{
		{"ratio kept", Bound{AtMost, 1.5}, 3, 2, 1.5, true},
		{"ratio missed", Bound{AtMost, 1.4}, 3, 2, 1.5, false},
		{"faster kept", Bound{Faster, 6}, 1, 6, 6, true},
		{"faster missed", Bound{Faster, 6}, 2, 10, 5, false},
		{"seconds kept", Bound{Seconds, 0.15}, 0.1, 0, 0.1, true},
		{"seconds missed", Bound{Seconds, 0.15}, 0.2, 0, 0.2, false},
		{"without a bound", Bound{Kind: NoBound}, 3, 2, 1.5, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			row := Row{Wanted: test.wanted, Ours: samples(test.ours)}
			if test.theirs > 0 {
				row.Theirs = samples(test.theirs)
			}
			if figure, ok := row.Figure(); figure != test.figure || ok != test.ok {
				t.Errorf("figure %v, %t, want %v, %t", figure, ok, test.figure, test.ok)
			}
		})
	}
}

func TestPickKeepsTheOrderOfTheTable(t *testing.T) {
	t.Parallel()
	picked, err := pick(rows(), "pack,noop")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range picked {
		names = append(names, r.Name)
	}
	if diff := cmp.Diff([]string{"noop", "pack"}, names); diff != "" {
		t.Error(diff)
	}
	if _, err := pick(rows(), "noop,nop"); err == nil || !strings.HasPrefix(err.Error(),
		`-rows: "nop" is none of cold, first, first-processor, noop`) {
		t.Errorf("error %v", err)
	}
}

func TestSidesTakeTurnsInGoingFirst(t *testing.T) {
	t.Parallel()
	var steps []string
	step := func(name string) func() error {
		return func() error { steps = append(steps, name); return nil }
	}
	side := func(name string) measurement {
		return func() (Sample, error) { return Sample{Value: float64(len(steps))}, step(name)() }
	}
	var row Row
	c := contest{before: step("before"), ours: side("ours"), theirs: side("theirs"), after: step("after")}
	if err := c.rounds(2, &row); err != nil {
		t.Fatal(err)
	}
	want := "before ours theirs after before theirs ours after"
	if got := strings.Join(steps, " "); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if diff := cmp.Diff([][]Sample{samples(1, 6), samples(2, 5)}, [][]Sample{row.Ours, row.Theirs}); diff != "" {
		t.Error(diff)
	}
	c.after = func() error { return errors.New("not the same") }
	if err := c.rounds(2, &row); err == nil || err.Error() != "not the same" {
		t.Errorf("error %v", err)
	}
}

func TestDisturbedRoundsDoNotCount(t *testing.T) {
	t.Parallel()
	n := 0
	c := contest{ours: func() (Sample, error) {
		n++
		return Sample{Value: float64(n), Others: []float64{0.5, 0}[n%2]}, nil
	}}
	var row Row
	if err := c.rounds(2, &row); err != nil {
		t.Fatal(err)
	}
	if len(row.Ours) != 2 || row.Ours[0].Value != 1 || row.Ours[1].Value != 3 || row.Theirs != nil {
		t.Errorf("samples %v, %v", row.Ours, row.Theirs)
	}
	c.ours = func() (Sample, error) { return Sample{Others: 0.5}, nil }
	if err := c.rounds(2, &Row{}); err == nil || !strings.Contains(err.Error(), "in all but 0 of 6 rounds") {
		t.Errorf("error %v", err)
	}
	c.servers = true
	if err := c.rounds(2, &Row{}); err != nil {
		t.Error(err)
	}
}
