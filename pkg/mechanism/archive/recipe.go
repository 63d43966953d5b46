package archive

import (
	"embed"

	"slipway.build/pkg/mechanism/recipe"
)

//go:embed *.go
var sources embed.FS

// Recipe stands for everything that decides an archive's bytes besides its entries and their time. It belongs into the key
// of every action that packs; the cache keeps apart what other recipes made.
var Recipe = recipe.Of(sources, "github.com/klauspost/compress")
