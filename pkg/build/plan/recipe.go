package plan

import (
	"embed"

	"slipway.build/pkg/mechanism/recipe"
)

//go:embed *.go
var code embed.FS

// Recipe stands for the code here: it decides what goes into an image or a tarball, and under which name.
var Recipe = recipe.Of(code)
