package recipe_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/mechanism/recipe"
	"slipway.build/pkg/mechanism/recipe/recipetest"
)

type spec struct {
	Name    string
	Members []member
	Time    time.Time
	Labels  map[string]string `json:",omitempty"`
}

type member struct {
	From, To string
	Fill     bool
}

func TestSpecHasALineForEachValue(t *testing.T) {
	t.Parallel()
	got := recipe.Spec(spec{
		Name: "a b", Members: []member{{From: "x"}}, Time: time.Unix(7, 0).UTC(), Labels: map[string]string{"k": "v\n"},
	}, "code", "more")
	want := []string{
		"code", "more", `Labels.k="v\n"`, "Members[0].Fill=false", `Members[0].From="x"`, `Members[0].To=""`, `Name="a b"`,
		`Time="1970-01-01T00:00:07Z"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestSpecsThatDifferHaveDifferentRecipes(t *testing.T) {
	t.Parallel()
	recipetest.EachField(t, spec{})
	if cmp.Equal(recipe.Spec(spec{Members: []member{}}), recipe.Spec(spec{})) {
		t.Error("an empty list and none have one recipe")
	}
}
