// Package buildid computes the build IDs of the go command.
//
// A package has the build ID ACTION/CONTENT, and a program ACTION/(that of its main package)/CONTENT. An action ID is a digest of what
// decides the bytes: names, flags, versions, the content IDs of what is imported or linked. A content ID is a digest of the file with zeros
// in place of the build ID. So the build ID of a program depends on the content IDs of all its packages, and on the action ID of no package
// but main.
//
//   - [Compile] and [Link] have what the action IDs of a main package and of a program are digests of. [Imported] and [Linked] return the
//     packages in the order of the go command.
//   - [CompletePackage] and [CompleteProgram] write content IDs into files. [Layout] is for those who write other things into a program, too.
//   - [OfPackage] and [OfProgram] read build IDs.
//   - [Known] says for which versions of Go all of this is so. The go command documents none of it, but GODEBUG=gocachehash=1 prints the input of
//     each digest: the tests compare it with that of this package.
//
// Two programs need this. Package relink writes other versions into linked programs. And the builder of rules_go makes the bytes of go
// build: `make update` copies the files of this package that [Sources] returns into it, as a patch. So they import nothing but the standard
// library, their exported names are unusual ones, and they are Go that the pinned toolchain compiles.
//
// What must never be in here: which programs there are, how they are compiled, and where files are.
package buildid

import (
	"embed"

	"slipway.build/pkg/mechanism/recipe"
)

//go:embed *.go
var sources embed.FS

// Code is part of keys: what this package computes decides bytes.
var Code = recipe.Of("make/buildid", sources)

// A Source is a file of this package.
type Source struct{ Name, Text string }

// Sources returns the files that compute build IDs. They need no other file.
func Sources() []Source {
	var files []Source
	for _, name := range []string{"file.go", "id.go"} {
		text, err := sources.ReadFile(name)
		if err != nil {
			panic(err) // it is embedded
		}
		files = append(files, Source{name, string(text)})
	}
	return files
}
