package license

import (
	"embed"

	"slipway.build/pkg/mechanism/recipe"
)

//go:embed *.go
var sources embed.FS

// Recipe stands for the code here that decides what a LICENSES folder holds.
var Recipe = recipe.Of(sources)
