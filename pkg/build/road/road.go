// Package road says what a road is: a way to compile Go packages into binaries. The roads themselves are
// in folders below; nothing here or there knows what a release is.
package road

import (
	"context"
	"slices"
	"strings"
	"time"

	"slipway.build/pkg/tree/catalog"
)

// A Road compiles Go packages into binaries.
type Road interface {
	// Name is what ROAD= and --road call it.
	Name() string
	// Recipe says what decides the bytes besides the sources, for the key of a compile. The road's name is
	// part of it: no release by one road takes a binary that another made.
	Recipe(c Compilation) []string
	// Compile makes every target's Output, or returns an error. What the Go tool says of the sources goes
	// to r.Output as it is.
	Compile(ctx context.Context, c Compilation, r Report) error
}

// A Compilation is a request for binaries of one module for one platform.
type Compilation struct {
	Root     string // of the tree, absolute
	Module   string // folder of go.mod, relative to Root
	Platform catalog.Platform
	Tags     []string // build tags
	LDFlags  string   // for the linker: the stamp
	Options  Options
	Scratch  string // private folder on the file system of the outputs
	Targets  []Target

	// Built, if not nil, is told of finished binaries while others are still to be made, by roads that can. The file is
	// for reading, and stays where it is until Scratch is removed.
	Built func(file string)
}

// Options are the user's wishes for a compile, from Kubernetes' variables of these names.
type Options struct {
	Debug   bool   // DBG: keep symbols and paths, switch optimizations off
	GoFlags string // GOFLAGS of the environment (never of a go/env file)
	LDFlags string // GOLDFLAGS: instead of -s -w
}

// A Target is a binary to make.
type Target struct {
	Package  string // import path, or ./path in the module
	Test     bool   // the package's compiled tests rather than its main package
	Output   string // where to write it, absolute
	Previous string // where the last intact output is, or ""
}

// A Report is told what happens while a road compiles. An action.Task is one.
type Report interface {
	By(process string)                       // which process, container or invocation does the work
	Progress(done, total int64, text string) // packages so far; total 0 is unknown
	Output(line string)                      // for the user, as the Go tool printed it
	Step(text string, took time.Duration)    // a part of the work is done
	Memory(peak int64)                       // most resident memory of all processes at one time, bytes
}

// A GoCommand is a run of the Go command that makes some of a compilation's targets.
type GoCommand struct {
	Verb    []string // "build", or "test", "-c", "-vet=off"
	Targets []Target
}

// GoCommands are what makes all targets: one run for all main packages, so that the Go tool shares what they have in common
// and links in parallel, then one for all test packages. Tests are not vetted: all of their dependencies would be looked at.
func (c Compilation) GoCommands() []GoCommand {
	mains, tests := GoCommand{Verb: []string{"build"}}, GoCommand{Verb: []string{"test", "-c", "-vet=off"}}
	for _, t := range c.Targets {
		if t.Test {
			tests.Targets = append(tests.Targets, t)
		} else {
			mains.Targets = append(mains.Targets, t)
		}
	}
	return slices.DeleteFunc([]GoCommand{mains, tests}, func(g GoCommand) bool { return len(g.Targets) == 0 })
}

// File is the name that the Go tool gives a target in a folder named by -o.
func (c Compilation) File(t Target) string { return c.Platform.Exe(catalog.GoName(t.Package, t.Test)) }

// BuildFlags are the flags of go build (and go test -c) that all roads that call it share. They are upstream's of
// its release binaries; -buildvcs and -mod are written out because GOFLAGS may say otherwise.
func (c Compilation) BuildFlags() []string {
	tags := slices.Clone(c.Tags)
	ldflags := c.Options.LDFlags
	flags := []string{"-buildvcs=false", "-mod=readonly"}
	if c.Options.Debug {
		flags = append(flags, "-gcflags=all=-N -l")
		tags = slices.DeleteFunc(tags, func(t string) bool { return t == "grpcnotrace" })
	} else {
		flags = append(flags, "-trimpath")
		if ldflags == "" {
			ldflags = "-s -w"
		}
	}
	tags = append(tags, userTags(c.Options.GoFlags)...)
	if len(tags) > 0 {
		flags = append(flags, "-tags="+strings.Join(tags, ","))
	}
	return append(flags, "-ldflags="+strings.TrimSpace(ldflags+" "+c.LDFlags))
}
