package recipe_test

import (
	"embed"
	"fmt"

	"slipway.build/pkg/mechanism/recipe"
)

//go:embed *.go
var sources embed.FS

// Recipe is part of the key of each action that runs this package's code.
var Recipe = recipe.Of(sources, "github.com/klauspost/compress")

func ExampleOf() {
	fmt.Println(len(Recipe), "hexadecimal digits")
	// Output: 64 hexadecimal digits
}
