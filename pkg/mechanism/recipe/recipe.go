// Package recipe names the code that makes an output, for the key of the action that runs it: when a packer changes, what
// it packed is packed again.
//
// A package that decides bytes embeds its own sources (`//go:embed *.go`) and declares
//
//	var Recipe = recipe.Of(sources, "github.com/klauspost/compress")
package recipe

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"runtime"
	"runtime/debug"
	"strings"
)

// Of is the SHA-256, in hex, of a package's sources without tests, of the versions that modules have in this program, and
// of the Go version it was compiled by, whose standard library takes part in everything. Modules of programs that do not
// say (tests do not) count as unknown.
func Of(sources embed.FS, modules ...string) string {
	h := sha256.New()
	names, err := fs.Glob(sources, "*.go")
	if err != nil || len(names) == 0 {
		panic("recipe: no sources are embedded")
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		data, err := sources.ReadFile(name)
		if err != nil {
			panic(err) // it is embedded
		}
		fmt.Fprintf(h, "%s %d\n%s", name, len(data), data)
	}
	info, _ := debug.ReadBuildInfo()
	for _, m := range modules {
		fmt.Fprintf(h, "%s %s\n", m, version(info, m))
	}
	fmt.Fprintln(h, runtime.Version())
	return hex.EncodeToString(h.Sum(nil))
}

func version(info *debug.BuildInfo, module string) string {
	if info == nil {
		return "unknown"
	}
	for _, m := range info.Deps {
		if m.Path != module {
			continue
		}
		if m.Replace != nil {
			m = m.Replace
		}
		return m.Path + "@" + m.Version + " " + m.Sum
	}
	return "unknown"
}
