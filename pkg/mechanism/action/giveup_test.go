package action

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// What takes much longer to fetch than it took to make is made, from then on without the cache.
func TestSlowCacheIsGivenUp(t *testing.T) {
	t.Parallel()
	c := newMemory()
	chain(t, c).did("folder package program", "", "")
	for key, text := range c.results {
		r := new(Result)
		if err := json.Unmarshal([]byte(text), r); err != nil || r.Took <= 0 {
			t.Errorf("result %s took %v, %v", key, r.Took, err)
		}
	}
	const said = "no more results are fetched from the cache in this run: fetching the rest would take "
	for _, tc := range []struct {
		took  time.Duration
		delay time.Duration
		ran   string
	}{
		{time.Second, 100 * time.Millisecond, ""},
		{0, 100 * time.Millisecond, ""}, // nobody knows
		{time.Nanosecond, time.Hour, "folder package program"},
	} {
		c.took, c.delay, c.readOnly = &tc.took, tc.delay, true
		b := chain(t, c, "out/package")
		var texts []string
		err := b.Run(t.Context(), Options{Cache: c, Wanted: b.wanted, patience: 20 * time.Millisecond, Events: func(e Event) {
			b.events = append(b.events, e)
			texts = append(texts, e.Text)
		}})
		if err != nil {
			t.Fatal(err)
		}
		b.want("out/package", "[[1]][[1]][t]")
		if got := strings.Join(b.ids(Done), " "); got != tc.ran {
			t.Errorf("made in %v, fetched in %v: %q ran, want %q", tc.took, tc.delay, got, tc.ran)
		}
		if got := strings.Count(strings.Join(texts, "\n"), said); got != len(strings.Fields(tc.ran))/3 {
			t.Errorf("made in %v, fetched in %v: it says so %d times: %q", tc.took, tc.delay, got, texts)
		}
	}
}

// One action fetches what two need. The other one only waits for it, and does not judge the speed.
func TestWaitingForAFetchIsNotSlow(t *testing.T) {
	t.Parallel()
	c := newMemory()
	graph := func() *bench {
		b := newBench(t)
		b.write("src/main", strings.Repeat("1", 1<<20)) // so that the speed of one that waits would be low
		program := join("program", "out/program", "src/main")
		one, two := join("one", "out/one", "out/program"), join("two", "out/two", "out/program")
		one.Local, two.Local = true, true
		b.Actions = []*Action{program, one, two}
		return b
	}
	if err := graph().Run(t.Context(), Options{Cache: c}); err != nil {
		t.Fatal(err)
	}
	took := time.Second
	c.took, c.delay, c.readOnly = &took, 200*time.Millisecond, true
	b := graph()
	err := b.Run(t.Context(), Options{Budget: Budget{CPU: 4}, Cache: c, patience: 20 * time.Millisecond,
		Events: func(e Event) { b.events = append(b.events, e) }})
	if err != nil {
		t.Fatal(err)
	}
	if ran, fetched := strings.Join(b.ids(Done), " "), strings.Join(b.ids(Fetched), " "); ran != "one two" || fetched != "program" {
		t.Errorf("%q ran, %q were fetched", ran, fetched)
	}
}
