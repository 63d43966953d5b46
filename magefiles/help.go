//go:build mage

package main

import (
	"os"

	"slipway.build/pkg/cli/generate"
)

// Help lists the targets.
func Help() error { return generate.Help(os.Stdout, "magefiles") }
