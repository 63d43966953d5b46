// Command slipway builds a complete Kubernetes cluster from source and packs it into release tarballs.
// See package slipway.build/pkg/cli, or run it with --help.
package main

import (
	"os"

	"slipway.build/pkg/cli"
)

func main() { os.Exit(cli.Main()) }
