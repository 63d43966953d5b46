package codegen

import (
	"bytes"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// sources is the Go code below a folder: by folder, relative and with slashes, what comments mark and what is imported.
type sources map[string]*folder

// A folder holds a package.
type folder struct {
	Markers []string `json:"markers,omitempty"` // without the plus: "k8s:deepcopy-gen=package", "groupName=apps", "genclient"
	Imports []string `json:"imports,omitempty"` // paths, of any platform's files
	Types   bool     `json:"types,omitempty"`   // there is a types.go
}

// marker matches a line of a comment that speaks to a generator.
var marker = regexp.MustCompile(`(?m)^[ \t]*// ?[ \t]*\+((?:k8s:|groupName=|groupGoName=|genclient)[^\s]*)`)

// scan reads all packages below dir.
func scan(dir string) (sources, error) {
	found := sources{}
	return found, found.scan(dir, ".")
}

// scan reads the packages below a folder of the machine, as those below the folder at. Tests do not count, nor do folders that the
// go command does not look into.
func (s sources) scan(dir, at string) error {
	files, err := filesBelow(dir, func(_, base string) bool { return ignored(base) })
	if err != nil {
		return err
	}
	for _, name := range files {
		if base := path.Base(name); isCode(base) {
			data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
			if err != nil {
				return err
			}
			s.add(path.Join(at, path.Dir(name)), base, data)
		}
	}
	return nil
}

// filesBelow lists the files below a folder, sorted, relative to it and with slashes. It does not look into folders that skip, which
// may be nil, is true of.
func filesBelow(dir string, skip func(folder, base string) bool) (files []string, err error) {
	err = fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", dir, err)
		case !d.IsDir():
			files = append(files, name)
		case name != "." && skip != nil && skip(filepath.Join(dir, filepath.FromSlash(name)), d.Name()):
			return fs.SkipDir
		}
		return nil
	})
	return files, err
}

// otherModule reports whether a folder of a module holds no packages of it.
func otherModule(folder, base string) bool {
	_, err := os.Stat(filepath.Join(folder, "go.mod"))
	return ignored(base) || err == nil
}

// ignored reports whether no packages are in folders with a name.
func ignored(base string) bool {
	return base == "testdata" || base == "vendor" || strings.HasPrefix(base, "_") || strings.HasPrefix(base, ".")
}

func isCode(base string) bool {
	return strings.HasSuffix(base, ".go") && !strings.HasSuffix(base, "_test.go")
}

// add adds a file of a folder. What cannot be parsed has no imports: the generators say what is wrong with it.
func (s sources) add(dir, base string, data []byte) {
	f := s[dir]
	if f == nil {
		f = &folder{}
		s[dir] = f
	}
	f.Types = f.Types || base == "types.go"
	if parsed, err := parser.ParseFile(token.NewFileSet(), base, data, parser.ImportsOnly); err == nil {
		for _, i := range parsed.Imports {
			if name, err := strconv.Unquote(i.Path.Value); err == nil && !slices.Contains(f.Imports, name) {
				f.Imports = append(f.Imports, name)
			}
		}
	}
	if !bytes.Contains(data, []byte("// +")) && !bytes.Contains(data, []byte("//+")) {
		return
	}
	for _, m := range marker.FindAllSubmatch(data, -1) {
		if text := string(m[1]); !slices.Contains(f.Markers, text) {
			f.Markers = append(f.Markers, text)
		}
	}
}

// importers returns the folders given and those that import one of them or name it in a marker, directly or not. PathOf returns
// a folder's import path.
func (s sources) importers(of []string, pathOf func(dir string) string) map[string]bool {
	by := map[string][]string{} // folders, by what they import
	for dir, f := range s {
		for _, i := range f.Imports {
			by[i] = append(by[i], dir)
		}
		for _, m := range f.Markers { // k8s:conversion-gen=k8s.io/kubernetes/pkg/apis/apps
			if _, value, ok := strings.Cut(m, "="); ok && strings.Contains(value, "/") {
				by[value] = append(by[value], dir)
			}
		}
	}
	found := map[string]bool{}
	for queue := slices.Clone(of); len(queue) > 0; {
		dir := queue[0]
		queue = queue[1:]
		if !found[dir] {
			found[dir] = true
			queue = append(queue, by[pathOf(dir)]...)
		}
	}
	return found
}

// marked returns the folders, sorted, with a marker that begins with a prefix, if keep is nil or true of them.
func (s sources) marked(prefix string, keep func(dir string) bool) []string {
	return s.where(func(dir string, f *folder) bool {
		return (keep == nil || keep(dir)) && slices.ContainsFunc(f.Markers, func(m string) bool { return strings.HasPrefix(m, prefix) })
	})
}

func (s sources) where(keep func(dir string, f *folder) bool) []string {
	var dirs []string
	for dir, f := range s {
		if keep(dir, f) {
			dirs = append(dirs, dir)
		}
	}
	slices.Sort(dirs)
	return dirs
}

// value returns the value of a marker of a folder: "apps" of groupName.
func (f *folder) value(name string) (string, bool) {
	for _, m := range f.Markers {
		if v, ok := strings.CutPrefix(m, name+"="); ok {
			return v, true
		}
	}
	return "", false
}

// below reports whether a slash-separated path is dir or below it.
func below(path, dir string) bool {
	return path == dir || dir == "." || strings.HasPrefix(path, dir+"/")
}
