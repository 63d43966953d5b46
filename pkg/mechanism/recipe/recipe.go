// Package recipe identifies what makes an output, for the key of the action that makes it. When the code of a packer
// changes, for example, all that it packed is packed again.
//
// A package that decides bytes embeds its own sources (`//go:embed *.go`), and declares what [Of] returns of them as Recipe.
//
// What must never be in here: what the outputs are.
package recipe

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"runtime/debug"
	"strings"
)

// Of returns the SHA-256, in hex, of a package's sources without tests, and of the versions of modules in this program. In a program
// without build information, such as a test, the modules' versions count as unknown. The version of Go does not count: programs
// compiled by others share results, and a package whose bytes depend on the standard library's has to say so itself.
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
