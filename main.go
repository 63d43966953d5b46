// Command slipway builds a complete Kubernetes cluster from source and packs it into release tarballs.
// See package slipway.build/pkg/cli, or run it with --help.
package main

import (
	"os"

	"slipway.build/pkg/cli"
	"slipway.build/pkg/cli/generate"
	"slipway.build/pkg/cli/packer"
	"slipway.build/pkg/cli/session"
	"slipway.build/pkg/maintain/lint/vettool"
	"slipway.build/pkg/make/relink"
)

func main() {
	packer.Hook()
	relink.Main()
	vettool.Main()
	s := session.Std()
	s.UpdateBazel, s.StaleForBazel = generate.UpdateBazel, generate.StaleForBazel
	os.Exit(cli.Main(s))
}
