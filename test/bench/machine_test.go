package main

import "testing"

const allBefore = "cpu  100 0 50 800 20 0 5 0 0 0\ncpu0 100 0 50 800 20 0 5 0 0 0\n"

func TestShareOfOthers(t *testing.T) {
	t.Parallel()
	before := readTicks([]byte(allBefore), []byte("42 (a (b) c) S 1 42 42 0 -1 4194304 1 2 3 4 10 5 20 5 20 0 8 0 99"))
	if want := (ticks{everybody: 155, own: 40, nobody: 820}); before != want {
		t.Fatalf("%+v, want %+v", before, want)
	}
	for _, test := range []struct {
		name     string
		all, own string
		want     float64
	}{
		{"all of it was ours", "cpu  200 0 50 900 20 0 5 0 0 0\n", "42 (x) S 1 42 42 0 -1 4194304 1 2 3 4 10 5 100 25", 0},
		{"half of the busy half was others'", "cpu  200 0 50 900 20 0 5 0 0 0\n", "42 (x) S 1 42 42 0 -1 4194304 1 2 3 4 10 5 70 5", 0.25},
		{"waiting for a disk is idle", "cpu  200 0 50 800 120 0 5 0 0 0\n", "42 (x) S 1 42 42 0 -1 4194304 1 2 3 4 10 5 70 5", 0.25},
		{"no time has passed", allBefore, "42 (x) S 1 42 42 0 -1 4194304 1 2 3 4 10 5 20 5", 0},
		{"not linux", "", "42 (x) S 1", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := readTicks([]byte(test.all), []byte(test.own)).others(before); got != test.want {
				t.Errorf("%v, want %v", got, test.want)
			}
		})
	}
}
