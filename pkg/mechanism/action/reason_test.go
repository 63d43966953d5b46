package action

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRecipeChangesAreNamedByField(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 61)
	digest := func(c string) string { return strings.Repeat(c, 64) }
	for name, c := range map[string]struct {
		was, is []string
		want    []Change
		text    string
	}{
		"a field": {[]string{`A="1"`, `B=2`}, []string{`A="1"`, `B=3`}, []Change{{"B", Edited, "2", "3"}}, ": B=3, was 2"},
		"two fields": {[]string{`A=1`, `B=2`}, []string{`A=3`, `B=4`}, []Change{{"A", Edited, "1", "3"}, {"B", Edited, "2", "4"}},
			": A=3, was 1; B=4, was 2"},
		"another order":  {[]string{`A=1`, `B=2`}, []string{`B=2`, `A=1`}, nil, ""},
		"a new field":    {[]string{`A=1`}, []string{`A=1`, `B=2`}, []Change{{"B", Added, "", "2"}}, ": B=2 (new)"},
		"a removed one":  {[]string{`A=1`, `B=2`}, []string{`A=1`}, []Change{{"B", Removed, "2", ""}}, ": B (gone)"},
		"a long value":   {[]string{`A=1`}, []string{`A=` + long}, []Change{{"A", Edited, "", ""}}, ": A"},
		"repeated flags": {[]string{`-X=1`, `-X=2`}, []string{`-X=1`, `-X=3`}, []Change{{"-X", Edited, "1 2", "1 3"}}, ": -X=1 3, was 1 2"},
		"no name": {[]string{`go1.26`, `A=1`}, []string{`go1.27`, `A=1`}, []Change{{"", Edited, "go1.26", "go1.27"}},
			": go1.27, was go1.26"},
		"code":           {[]string{digest("a"), `A=1`}, []string{digest("b"), `A=1`}, nil, ""},
		"code and field": {[]string{digest("a"), `A=1`}, []string{digest("b"), `A=2`}, []Change{{"A", Edited, "1", "2"}}, ": A=2, was 1"},
		"prose": {[]string{`say "a=1" and x`}, []string{`say "a=1" and y`}, []Change{{"", Edited, `say "a=1" and x`, `say "a=1" and y`}},
			`: say "a=1" and y, was say "a=1" and x`},
	} {
		got := recipeChanges(c.was, c.is)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if text := changed(RecipeChanged, got).String(); text != "recipe changed"+c.text {
			t.Errorf("%s: in words %q, want %q", name, text, "recipe changed"+c.text)
		}
	}
}

func TestReasonListsTenChangesAndCountsTheOthers(t *testing.T) {
	t.Parallel()
	var was, is []string
	for i := range 13 {
		was, is = append(was, fmt.Sprintf("%c=1", 'a'+i)), append(is, fmt.Sprintf("%c=2", 'a'+i))
	}
	r := changed(RecipeChanged, recipeChanges(was, is))
	if len(r.Changes) != 10 || r.More != 3 {
		t.Errorf("%d changes and %d more, want 10 and 3", len(r.Changes), r.More)
	}
	if got, want := r.String(), "recipe changed: a=2, was 1; b=2, was 1; c=2, was 1 (+10 more)"; got != want {
		t.Errorf("in words %q, want %q", got, want)
	}
}

// Programs read these fields instead of the text.
func TestStartOfABatchHasTypedReasons(t *testing.T) {
	t.Parallel()
	b, _ := newBatchBench(t)
	b.run()
	b.write("src/a", "A")
	b.write("out/c", "damaged")
	b.run()
	i := slices.IndexFunc(b.events, func(e Event) bool { return e.Kind == Started && e.Action == "letters" })
	data, err := json.Marshal(b.events[i])
	if err != nil {
		t.Fatal(err)
	}
	_, got, _ := strings.Cut(string(data), `"kind":"started",`)
	want := `"action":"letters","phase":"letter","text":"2 of 3: inputs changed: src/a; output out/c was edited",` +
		`"reasons":[{"kind":"inputs-changed","changes":[{"name":"src/a","kind":"edited"}]},{"kind":"output-edited","path":"out/c"}],` +
		`"stale":2,"members":3}`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestReasonsOfABatchAreCutInWords(t *testing.T) {
	t.Parallel()
	e := Event{Stale: 5, Members: 7, Reasons: []Reason{{Kind: New}, {Kind: RecordDamaged}, {Kind: KeyChanged}, {Kind: OutputsChanged}}}
	if got, want := e.why(), "5 of 7: new; its record cannot be read; 2 other reasons"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
