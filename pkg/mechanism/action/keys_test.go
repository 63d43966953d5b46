package action

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestOwnResultsAreMadeAgain(t *testing.T) {
	t.Parallel()
	c := newMemory()
	chain(t, c).did("folder package program", "", "")
	b := chain(t, c, "out/package")
	b.Actions[2].Local = true
	b.did("package", "folder program", "folder program")
	taken, err := b.Taken([]string{"out/package"})
	if err != nil || !slices.Equal(taken, []string{"folder", "program"}) {
		t.Fatalf("taken from the cache are %v, %v", taken, err)
	}
	own := func(want string) {
		t.Helper()
		b.events = nil
		events := func(e Event) { b.events = append(b.events, e) }
		if err := b.Run(t.Context(), Options{Events: events, NoCachedResults: true, Cache: c}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(b.ids(Done), " "); got != want {
			t.Errorf("%q ran, want %q", got, want)
		}
	}
	own("folder program")
	b.because("program", "a cache had its result")
	own("")
	if taken, err := b.Taken([]string{"out/package", "out/nothing"}); err != nil || len(taken) > 0 {
		t.Errorf("taken from the cache are %v, %v", taken, err)
	}
}

// A record that does not say where the bytes come from must not count as one that says that they were made here.
func TestRecordsOfAnotherVersionAreNotOwn(t *testing.T) {
	t.Parallel()
	b := chain(t, newMemory())
	b.did("folder package program", "", "")
	outputs := []string{"out/package"}
	if taken, err := b.Taken(outputs); err != nil || len(taken) > 0 {
		t.Fatalf("taken from the cache are %v, %v", taken, err)
	}
	name := b.ledger().name("program", ".json")
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for what, damaged := range map[string]string{
		"another version of slipway": strings.Replace(string(data), `"format":2`, `"format":1`, 1),
		name:                         string(data[:len(data)/2]),
	} {
		if err := os.WriteFile(name, []byte(damaged), 0o644); err != nil {
			t.Fatal(err)
		}
		if taken, err := b.Taken(outputs); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("taken %v, error %v, want %q", taken, err, what)
		}
	}
	// It does not count once another action has made the output.
	old := strings.NewReplacer(`"format":2`, `"format":1`, `"id":"program"`, `"id":"compile program"`).Replace(string(data))
	other := b.ledger().name("compile program", ".json")
	if err := errors.Join(os.WriteFile(name, data, 0o644), os.WriteFile(other, []byte(old), 0o644)); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for _, tt := range []struct {
		written time.Time
		want    string
	}{{now.Add(-time.Hour), ""}, {now.Add(time.Hour), "another version of slipway"}} {
		if err := os.Chtimes(other, tt.written, tt.written); err != nil {
			t.Fatal(err)
		}
		taken, err := b.Taken(outputs)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) || len(taken) > 0 {
			t.Errorf("taken %v, error %v, want %q", taken, err, tt.want)
		}
	}
}

// Of two actions that have made an output, one after the other, the last one says where its bytes come from.
func TestTheLastMakerOfAnOutputCounts(t *testing.T) {
	t.Parallel()
	b := chain(t, newMemory())
	b.did("folder package program", "", "")
	data, err := os.ReadFile(b.ledger().name("program", ".json"))
	if err != nil {
		t.Fatal(err)
	}
	cached := strings.NewReplacer(`"id":"program"`, `"id":"link"`, `"key":`, `"origin":"cached","key":`).Replace(string(data))
	other := b.ledger().name("link", ".json")
	if err := os.WriteFile(other, []byte(cached), 0o644); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for _, tt := range []struct {
		written time.Time
		want    []string
	}{{now.Add(-time.Hour), nil}, {now.Add(time.Hour), []string{"link"}}} {
		if err := os.Chtimes(other, tt.written, tt.written); err != nil {
			t.Fatal(err)
		}
		if taken, err := b.Taken([]string{"out/package"}); err != nil || !slices.Equal(taken, tt.want) {
			t.Errorf("taken %v, %v, want %v", taken, err, tt.want)
		}
	}
}

// A run that is killed between the two files of a record leaves inputs of another key.
func TestARecordThatIsNotWholeIsNotOwn(t *testing.T) {
	t.Parallel()
	b := chain(t, newMemory())
	b.did("folder package program", "", "")
	name := b.ledger().name("package", ".from")
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(strings.Replace(string(data), `"key":"`, `"key":"0`, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	if taken, err := b.Taken([]string{"out/package"}); err == nil || !strings.Contains(err.Error(), "is not whole") {
		t.Errorf("taken %v, error %v", taken, err)
	}
}

func TestKeysAreThoseOfOtherTrees(t *testing.T) {
	t.Parallel()
	c := newMemory()
	first := chain(t, c)
	states := func(b *cachedBench) (string, []string) {
		t.Helper()
		keys, err := b.Keys(t.Context(), Options{Cache: b.cache})
		if err != nil {
			t.Fatal(err)
		}
		var states, sums []string
		for _, k := range keys {
			states, sums = append(states, string(k.State)), append(sums, k.Key)
		}
		return strings.Join(states, ", "), sums
	}
	if got, _ := states(first); got != "unmade, open, open" {
		t.Errorf("before it is made: %s", got)
	}
	first.did("folder package program", "", "")
	got, sums := states(first)
	if got != "here, here, here" {
		t.Errorf("where it is made: %s", got)
	}
	second := chain(t, c)
	if got, others := states(second); got != "in cache, in cache, in cache" || !slices.Equal(sums, others) {
		t.Errorf("in another tree: %s, %q, want %q", got, others, sums)
	}
	second.absent("out", "_output")
}

func TestFetchOnlyRunsNothing(t *testing.T) {
	t.Parallel()
	c := newMemory()
	chain(t, c).did("folder package program", "", "")
	b := chain(t, c)
	b.write("src/text", "u")
	run := func() {
		t.Helper()
		b.events = nil
		if err := b.Run(t.Context(), Options{Cache: c, FetchOnly: true, Events: func(e Event) { b.events = append(b.events, e) }}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(b.ids(Fetched), " "); got != "folder program" || len(b.ids(Done)) > 0 {
			t.Errorf("%q were fetched, %q ran", got, b.ids(Done))
		}
	}
	run()
	b.absent("out/package")
}

func TestActionsRunAgain(t *testing.T) {
	t.Parallel()
	c := newMemory()
	chain(t, c).did("folder package program", "", "")
	b := chain(t, c, "out/package")
	b.did("", "folder package program", "package")
	b.events = nil
	for _, id := range []string{"program", "package"} {
		b.events = nil
		if err := b.Run(t.Context(), Options{Cache: c, Wanted: b.wanted, Audit: []string{id},
			Events: func(e Event) { b.events = append(b.events, e) }}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(b.ids(Done), " "); got != id {
			t.Errorf("%q ran, want %s", got, id)
		}
	}
}

// What is made again, because a cache is not trusted or is audited, gets no parts from the cache.
func TestPartsOfTheCacheAreNotForWhatIsMadeAgain(t *testing.T) {
	t.Parallel()
	c := newMemory()
	c.readOnly = true
	for _, again := range []Options{{Cache: c, NoCachedResults: true}, {Cache: c, Audit: []string{"program"}}} {
		b := newBench(t)
		b.Actions = []*Action{{ID: "program", Outputs: []string{"out/program"}, Run: func(_ context.Context, task *Task) error {
			text := "made here"
			if task.Cache() != nil {
				task.Use(Derived)
				text = "made of parts"
			}
			return os.WriteFile(task.Path("out/program"), []byte(text), 0o644)
		}}}
		for _, step := range []struct {
			options Options
			want    string
		}{
			{Options{Cache: c}, "made of parts"}, {again, "made here"}, {Options{Cache: c}, "made here"},
		} {
			if err := b.Run(t.Context(), step.options); err != nil {
				t.Fatal(err)
			}
			b.want("out/program", step.want)
		}
	}
}

// What a program has made that came from a cache is made again, too.
func TestProgramOfACacheMakesNothingOfItsOwn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.write("src/main", "1")
	b.Actions = []*Action{join("program", "out/program", "src/main")}
	for _, step := range []struct {
		options Options
		ran     string
		taken   int
	}{
		{Options{Program: Cached}, "program", 1}, {Options{}, "", 1},
		{Options{NoCachedResults: true}, "program", 0}, {Options{NoCachedResults: true}, "", 0},
	} {
		b.events = nil
		step.options.Events = func(e Event) { b.events = append(b.events, e) }
		if err := b.Run(t.Context(), step.options); err != nil {
			t.Fatal(err)
		}
		taken, err := b.Taken([]string{"out/program"})
		if got := strings.Join(b.ids(Done), " "); err != nil || got != step.ran || len(taken) != step.taken {
			t.Errorf("%+v: %q ran, taken from a cache are %q, %v", step.options, got, taken, err)
		}
	}
}
