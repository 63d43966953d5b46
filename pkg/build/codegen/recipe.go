package codegen

import (
	"embed"

	"slipway.build/pkg/build/upstream"
	"slipway.build/pkg/mechanism/recipe"
)

//go:embed *.go
var code embed.FS

// Recipe identifies the code that decides what generators make.
var Recipe = recipe.Of(code) + upstream.Recipe
