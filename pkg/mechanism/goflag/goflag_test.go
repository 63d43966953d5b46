package goflag

import "testing"

func TestWordsAreQuotedAsTheGoCommandSplitsThem(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{
		"": "''", "-s": "-s", "a b": "'a b'", "a\tb": "'a\tb'", "it's": `"it's"`, "a.b=c": "a.b=c", `a.b="c"`: `'a.b="c"'`,
		`say "x"`: `'say "x"'`, `it's "x"`: "",
	} {
		if got, err := Quote(word); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v; want %q", word, got, err, want)
		}
	}
}
