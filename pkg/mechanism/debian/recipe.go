package debian

import (
	"embed"

	"slipway.build/pkg/mechanism/recipe"
)

//go:embed *.go
var sources embed.FS

// Recipe stands for the code here and in its libraries that decides which files of a package are unpacked.
var Recipe = recipe.Of(sources, "github.com/ulikunitz/xz", "github.com/klauspost/compress")
