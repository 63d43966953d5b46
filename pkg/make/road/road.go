// Package road defines roads: ways to compile Go packages into binaries. A road describes itself here, so that no caller needs to
// know which one it is.
//
// What must never be in here: a road itself (they are in the folders below), and what a release holds.
package road

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"slipway.build/pkg/make/toolchain"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/recipe"
	"slipway.build/pkg/tree/catalog"
)

// A Road compiles Go packages of one tree into binaries. It may also be a [Limiter], a [Preparer], a [Borrower] or an [Explainer].
type Road interface {
	Info() Info
	// Recipe returns what decides the bytes of a binary besides its sources, for the key of its compile: that of the function [Recipe],
	// and more only where the road cannot promise the bytes of the others.
	Recipe(spec Spec, bin Binary) []string
	// Compile makes every target's Output, or returns an error. Messages of the Go command go to r.Output unchanged.
	Compile(ctx context.Context, c Compilation, r action.Report) error
}

// An Info describes a road.
type Info struct {
	Name   string // by which users choose it
	Output string // folder of its binaries, OS/ARCH/NAME, relative to the tree's root
	Label  string // what the names of its compiles end with, so that each road has its own records; empty for the default road
	Linked bool   // _output/bin leads to its binaries for the host
}

// A Limiter is a road that does not support everything. Its errors are of type *[UnsupportedError].
type Limiter interface {
	CheckOptions(o Options) error
	CheckBinary(bin Binary) error
}

// A Preparer is a road that needs programs or services besides Go.
type Preparer interface {
	// Ready looks for them, and makes nothing. It returns within seconds, and its error says what is missing.
	Ready(ctx context.Context) error
}

// A Borrower is a road whose compiles may take parts that other machines have made, which Compile cannot tell.
type Borrower interface {
	Borrows() bool
}

// An Explainer is a road that can show how it would compile.
type Explainer interface {
	// Commands returns shell command lines that do what Compile would do, in their order. It runs and contacts nothing.
	Commands(c Compilation) []string
}

// CheckOptions returns an error, a *[FlagError] or an *[UnsupportedError], if the road cannot honor the options.
func CheckOptions(r Road, o Options) error {
	if err := o.validate(); err != nil {
		return err
	}
	if l, ok := r.(Limiter); ok {
		return l.CheckOptions(o)
	}
	return nil
}

// CheckBinary returns an *[UnsupportedError] if the road cannot make a binary.
func CheckBinary(r Road, bin Binary) error {
	if l, ok := r.(Limiter); ok {
		return l.CheckBinary(bin)
	}
	return nil
}

// An UnsupportedError reports something that a road does not support.
type UnsupportedError struct {
	Road string
	What string
	Why  string // may be empty
}

func (e *UnsupportedError) Error() string {
	text := fmt.Sprintf("%s: not supported by the %s road", e.What, e.Road)
	if e.Why != "" {
		text += ": " + e.Why
	}
	return text
}

// BadRequest marks the error as the request's fault: see package badrequest.
func (*UnsupportedError) BadRequest() {}

// A Spec holds what decides the bytes of a compilation's binaries, besides the sources and which packages they are of.
type Spec struct {
	Module   string // folder of go.mod, relative to the tree's root
	ModFile  string `json:",omitempty"` // instead of its go.mod: relative to the root, or absolute; empty for its own
	Platform catalog.Platform
	Tags     []string // build tags
	LDFlags  string   // for the linker: the version stamp
	Options  Options
}

// A Binary names the package that a binary is compiled from.
type Binary struct {
	Package string // import path, or ./path in the module
	Test    bool   // the package's compiled tests rather than its main package
}

// A Compilation is a request for binaries of one module for one platform.
type Compilation struct {
	Spec
	Targets []Target
	Scratch string // private folder on the file system of the outputs

	// Built, if not nil, is called with each finished binary while others are still being made, by roads that can do so. The
	// file is for reading only, and stays in place until Scratch is removed.
	Built func(file string)

	// Shared, if not nil, has packages that were compiled elsewhere. Only roads that run the go command use it.
	Shared Sharing
}

// A Sharing gives a compile access to a cache that machines share: see [action.Task], which is one.
type Sharing interface {
	Cache() action.Cache
	Use(o action.Origin) // reports that the binaries have parts with an origin
	UploadAsync(ctx context.Context, f func(ctx context.Context, dir string) error)
}

// Options are what a user may change about a compile, with Kubernetes' variables of these names, and what some modules only have.
type Options struct {
	Debug   bool   // DBG: keep symbols and paths, switch optimizations off
	GoFlags string // GOFLAGS of the environment (never of a go/env file)
	LDFlags string // GOLDFLAGS: instead of -s -w
	GCFlags string // GOGCFLAGS: for the compiler, in all packages

	// FIPS is the version of Go's cryptographic module, see toolchain.FIPSEnv. It is the tree's choice, and not the user's.
	FIPS string `json:",omitempty"`
}

// A Target is a binary and where to write it.
type Target struct {
	Binary
	Output   string // absolute
	Previous string // where the last intact output is, or ""

	// Record, if not empty, is where a road may write how it has linked the binary: see package relink.
	Record string
}

// A GoCommand is a run of the Go command that makes some of a compilation's targets.
type GoCommand struct {
	Verb    []string // "build", or "test", "-c", "-vet=off"
	Targets []Target
}

// CollectLess is a variable for the environment of the Go command. It lets heaps grow to three times what is in use, instead of twice,
// before garbage is collected. A linker takes a seventh less time by it, and 1 % more memory. A compiler, which without the variable begins
// with a large heap, is as fast as before, and that of the largest package takes up to a fifth more memory. The figures are in
// docs/measurements.md.
const CollectLess = "GOGC=200"

// GoCommands returns the runs that make all targets: one for all main packages, so that the Go command shares what they have in
// common and links in parallel, then one for all test packages. Tests are not vetted, as vet would look at all dependencies.
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

// Args returns the arguments of a run that writes its binaries into a folder, which ends with a separator.
func (g GoCommand) Args(s Spec, folder string) []string {
	args := append(slices.Clone(g.Verb), "-v")
	args = append(args, s.BuildFlags()...)
	args = append(args, "-o", folder)
	for _, t := range g.Targets {
		args = append(args, t.Package)
	}
	return args
}

// File returns the name that the Go command gives a binary in a folder named by -o.
func (s Spec) File(bin Binary) string {
	return s.Platform.Exe(catalog.GoName(bin.Package, bin.Test))
}

// BuildFlags returns the flags of go build (and go test -c) that all roads that call it share. They are those of upstream's
// release binaries; -buildvcs and -mod are written out because GOFLAGS may say otherwise.
func (s Spec) BuildFlags() []string {
	tags := slices.Clone(s.Tags)
	ldflags := s.Options.LDFlags
	flags := []string{"-buildvcs=false", "-mod=readonly"}
	if s.ModFile != "" {
		flags = append(flags, s.ModFlag())
	}
	gcflags := s.Options.GCFlags
	if s.Options.Debug {
		gcflags = strings.TrimSpace("-N -l " + gcflags)
		tags = slices.DeleteFunc(tags, func(t string) bool { return t == "grpcnotrace" })
	} else {
		flags = append(flags, "-trimpath")
		if ldflags == "" {
			ldflags = "-s -w"
		}
	}
	if gcflags != "" {
		flags = append(flags, "-gcflags=all="+gcflags)
	}
	tags = append(tags, UserTags(s.Options.GoFlags)...)
	if len(tags) > 0 {
		flags = append(flags, "-tags="+strings.Join(tags, ","))
	}
	return append(flags, "-ldflags="+strings.TrimSpace(ldflags+" "+s.LDFlags))
}

// ModFlag returns the flag that makes a Go command in the module's folder use ModFile.
func (s Spec) ModFlag() string {
	if path.IsAbs(s.ModFile) {
		return "-modfile=" + s.ModFile
	}
	up := strings.Repeat("../", strings.Count(path.Clean(s.Module), "/")+1)
	return "-modfile=" + up + s.ModFile
}

// A key is all that decides a binary's bytes besides its sources. The flags follow from the spec by code, so they stand for that code.
type key struct {
	Go     string   // version
	Levels []string // settings of the Go command, see toolchain.Levels
	Flags  []string // see BuildFlags
	Spec   Spec
	Binary Binary
	Paths  []string `json:",omitempty"` // of this machine, where binaries hold them
}

// Recipe returns what decides the bytes of a binary besides its sources, if a version of Go, such as go1.26.8, compiles it. Every road
// makes the same bytes, so it names no road. Paths are those of this machine that the binary holds, if any.
func Recipe(goVersion string, spec Spec, bin Binary, paths ...string) []string {
	return recipe.Spec(key{goVersion, toolchain.Levels(), spec.BuildFlags(), spec, bin, paths}, "go")
}

// ShellCommand returns a command line for a POSIX shell that runs a command in a folder with an environment.
func ShellCommand(dir string, env []string, args ...string) string {
	var words []string
	if dir != "" {
		words = append(words, "cd", shellWord(dir), "&&")
	}
	if len(env) > 0 {
		words = append(words, "env")
	}
	for _, word := range slices.Concat(env, args) {
		words = append(words, shellWord(word))
	}
	return strings.Join(words, " ")
}

func shellWord(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_=+./:,@%", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
