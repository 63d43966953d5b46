package recipe_test

import (
	"embed"
	"fmt"

	"slipway.build/pkg/mechanism/recipe"
)

//go:embed *.go
var sources embed.FS

// The recipe of each action of this package begins with its code.
var code = recipe.Of("mechanism/recipe", sources)

func ExampleOf() {
	spec := struct{ Name string }{"a.tar"}
	fmt.Println(code.Recipe(spec)[1])
	// Output: Name="a.tar"
}
