package recipe

import (
	"embed"
	"regexp"
	"runtime/debug"
	"testing"
)

//go:embed recipe.go
var some embed.FS

//go:embed recipe.go recipe_test.go
var withTests embed.FS

func TestARecipeIsASumOfSourcesWithoutTests(t *testing.T) {
	t.Parallel()
	if got := Of(some); !regexp.MustCompile("^[0-9a-f]{64}$").MatchString(got) || got != Of(withTests) {
		t.Errorf("recipe %q, with tests %q", got, Of(withTests))
	}
	if Of(some) == Of(some, "example.com/a") {
		t.Error("a module that takes part makes no difference")
	}
}

func TestARecipeFollowsVersionsAndReplacements(t *testing.T) {
	t.Parallel()
	info := &debug.BuildInfo{Deps: []*debug.Module{
		{Path: "example.com/a", Version: "v1.0.0", Sum: "h1:a"},
		{Path: "example.com/b", Version: "v1.0.0", Replace: &debug.Module{Path: "example.com/fork", Version: "v2.0.0", Sum: "h1:f"}},
	}}
	tests := []struct {
		info         *debug.BuildInfo
		module, want string
	}{
		{info, "example.com/a", "example.com/a@v1.0.0 h1:a"},
		{info, "example.com/b", "example.com/fork@v2.0.0 h1:f"},
		{info, "example.com/c", "unknown"},
		{nil, "example.com/a", "unknown"},
	}
	for _, test := range tests {
		if got := version(test.info, test.module); got != test.want {
			t.Errorf("%s: got %q, want %q", test.module, got, test.want)
		}
	}
}
