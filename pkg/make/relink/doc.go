// Package relink links a program once for all versions that have the same length.
//
// A new commit changes the version in every program, and often nothing else. Linking all of them again takes most of the time of such a
// release. The linker places a string that -X sets by its name and its length. So programs that differ only in the values of such strings
// have the same bytes but for these values, the build ID, which is a digest of what was linked and of the result, and the signature of a
// Mach-O file.
//
// # Linking
//
// With the flag that [Flag] returns, the go command calls this program instead of the linker (go help build, -toolexec). It calls the
// linker with values of the same lengths that no other part of a program contains, finds them in the result, and writes the real ones
// there. The result is what the linker makes of the real ones. A record says where they are, and what the build ID is a digest of.
//
// Other programs are linked as usual, without a record: those that an external linker links, for example. Values shorter than [Shortest]
// are not replaced.
//
// # Copying
//
// [Links] keep programs that were linked, with their records. Their keys cover everything that decides the bytes except the values: see
// [Mask]. For other values, a program is copied, and a few places are overwritten. The build ID and the signature of the copy are
// computed as the go command and the linker do. Before that, those of the program itself are computed in the same way, and must be the
// ones that it has, which covers every byte. So if another version of Go computes them differently, programs are linked as usual.
//
// Links are kept on this machine, and in a cache that machines share.
//
// The go command starts the program that is running as its linker. Such a program calls [Main] first; in others, [Flag] is an error.
//
// What must never be in here: what a version is, which programs there are, how a road compiles them, and how results travel.
package relink

import (
	"embed"

	"slipway.build/pkg/mechanism/recipe"
)

//go:embed *.go
var sources embed.FS

// Code is part of keys: what this package computes decides bytes.
var Code = recipe.Of("make/relink", sources)
