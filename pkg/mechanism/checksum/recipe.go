package checksum

import (
	"embed"

	"slipway.build/pkg/mechanism/recipe"
)

//go:embed *.go
var sources embed.FS

// Recipe stands for the code here that decides what a file of checksums holds.
var Recipe = recipe.Of(sources)
