package codegen

import (
	"embed"

	"slipway.build/pkg/mechanism/recipe"
)

//go:embed *.go
var embedded embed.FS

// The code decides what generators make.
var code = recipe.Of("make/codegen", embedded)
