// Package recipe identifies what makes an output, for the key of the action that makes it. When the code of a packer
// changes, for example, all that it packed is packed again.
//
// A package that decides bytes embeds its own sources and declares them by [Of], as the example does. The recipe of its actions is
// code.Recipe(spec). It covers what the package imports, directly or through others, because package
// recipe reads the imports in the sources. An import of this module that neither declares its sources nor is in [Exempt] is a panic, and
// so is an import of a module of others that is in neither of two tables, so none can be forgotten. The test in test/architecture
// compares all of this with what the Go command says.
//
// The sources count for all systems, whatever a file's build constraints are, and neither the version of Go nor the flags of the
// build count: programs compiled elsewhere share results. A package whose bytes depend on the standard library's has to say so itself.
//
// What must never be in here: what the outputs are.
package recipe

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// A Code is the code of a package with all that it imports.
type Code struct {
	name    string
	sources fs.FS
	program *program

	own    func() files
	digest func() string
}

// files are the sources of one package.
type files struct {
	digest  string   // SHA-256, in hex
	imports []string // import paths
}

// A program is what a program is made of, as far as it decides bytes.
type program struct {
	codes   map[string]*Code // by name; complete once all packages are initialized
	version func(module string) string
}

var self = &program{codes: map[string]*Code{}, version: linked}

// Of declares the sources of a package, which is named by its path below pkg/. It is for the initialization of that package's variables,
// and reads nothing yet.
func Of(name string, sources fs.FS) *Code { return self.add(name, sources) }

func (p *program) add(name string, sources fs.FS) *Code {
	c := &Code{name: name, sources: sources, program: p}
	c.own = sync.OnceValue(c.read)
	c.digest = sync.OnceValue(c.sum)
	p.codes[name] = c
	return c
}

// Lookup returns the code of a package, or nil if this program has none that is declared.
func Lookup(name string) *Code { return self.codes[name] }

// All returns the SHA-256, in hex, of all code that this program declares.
func All() string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(self.codes)) {
		fmt.Fprintln(h, self.codes[name])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Recipe returns the recipe of an action that the code runs: the code, further lines, and the values of the spec, see [Spec].
func (c *Code) Recipe(spec any, more ...string) []string {
	return Spec(spec, append([]string{c.String()}, more...)...)
}

// String returns the line of recipes that names the code: the package, and [Code.Digest].
func (c *Code) String() string { return "pkg/" + c.name + "=" + c.Digest() }

// Digest returns the SHA-256, in hex, of all that the code covers.
func (c *Code) Digest() string { return c.digest() }

func (c *Code) sum() string {
	h := sha256.New()
	covered := c.Covers()
	for _, name := range slices.Sorted(maps.Keys(covered)) {
		fmt.Fprintf(h, "%s %s\n", name, covered[name])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Covers returns what the code is: the digests of packages' own sources, by the path from pkg/ on, and the versions of modules of others,
// by path. In a program without build information, such as a test, the versions are "unknown".
func (c *Code) Covers() map[string]string {
	found := map[string]string{}
	c.cover(found)
	return found
}

func (c *Code) cover(found map[string]string) {
	if _, ok := found["pkg/"+c.name]; ok {
		return
	}
	found["pkg/"+c.name] = c.own().digest
	for _, path := range c.own().imports {
		name, ours := strings.CutPrefix(path, prefix)
		imported := c.program.codes[name]
		first, _, _ := strings.Cut(path, "/")
		switch {
		case !strings.Contains(first, "."): // the standard library
		case !ours:
			c.program.link(moduleOf(path), found)
		case Exempt[name] != "":
		case imported == nil:
			panic(fmt.Sprintf("recipe: pkg/%s imports pkg/%s, which neither declares its sources by recipe.Of nor is exempt", c.name, name))
		default:
			imported.cover(found)
		}
	}
}

// link adds a module of others, and those that it links.
func (p *program) link(module string, found map[string]string) {
	if _, ok := found[module]; ok || Exempt[module] != "" {
		return
	}
	found[module] = p.version(module)
	for _, m := range modules[module] {
		p.link(m, found)
	}
}

// moduleOf returns the module that has a package.
func moduleOf(path string) string {
	for module := path; ; {
		if _, ok := modules[module]; ok || Exempt[module] != "" {
			return module
		}
		slash := strings.LastIndexByte(module, '/')
		if slash < 0 {
			panic(fmt.Sprintf("recipe: %s is of no module that package recipe has in its tables", path))
		}
		module = module[:slash]
	}
}

// read reads a package's sources without its tests.
func (c *Code) read() files {
	names, err := fs.Glob(c.sources, "*.go")
	if err != nil || len(names) == 0 {
		panic("recipe: pkg/" + c.name + " has no sources")
	}
	h := sha256.New()
	imports := map[string]bool{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		data, err := fs.ReadFile(c.sources, name)
		if err != nil {
			panic(err) // it is embedded
		}
		fmt.Fprintf(h, "%s %d\n%s", name, len(data), data)
		file, err := parser.ParseFile(token.NewFileSet(), name, data, parser.ImportsOnly)
		if err != nil {
			panic(err) // it was compiled
		}
		for _, spec := range file.Imports {
			path, _ := strconv.Unquote(spec.Path.Value) // it was parsed
			imports[path] = true
		}
	}
	return files{digest: hex.EncodeToString(h.Sum(nil)), imports: slices.Sorted(maps.Keys(imports))}
}

// linked returns the version of a module in this program.
func linked(module string) string { return version(buildInfo(), module) }

// buildInfo parses the build information once: it is long, and each of a dozen codes asks for a dozen modules.
var buildInfo = sync.OnceValue(func() *debug.BuildInfo {
	info, _ := debug.ReadBuildInfo()
	return info
})

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
