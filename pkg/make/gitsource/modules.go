package gitsource

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	gomod "golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	modzip "golang.org/x/mod/zip"
	"golang.org/x/sync/errgroup"

	"slipway.build/pkg/mechanism/recipe"
	"slipway.build/pkg/mechanism/tail"
	"slipway.build/pkg/tree/catalog"
	"slipway.build/pkg/tree/module"
)

//go:embed *.go
var sources embed.FS

// The code is in keys with what imports it, although go.sum has the sums of what it makes.
var _ = recipe.Of("make/gitsource", sources)

const (
	kubernetes = "k8s.io/kubernetes"
	staging    = "staging/src/"
)

// Make makes the modules of a commit, as a module proxy in the folder dir has them. It returns them with their sums, and the commit with
// its tree. If the commit has a tree already, it must be that. Make works in a folder beside dir.
func Make(ctx context.Context, s catalog.Source, version, dir string) ([]module.Pinned, catalog.Source, error) {
	tmp := dir + ".git"
	if err := os.MkdirAll(tmp, 0o777); err != nil {
		return nil, s, err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	c, err := read(ctx, s, tmp)
	if err != nil {
		return nil, s, err
	}
	defer func() { _ = c.data.Close() }()
	s.Tree = c.tree
	w := &work{commit: c, version: version, dir: dir}
	if err := w.split(); err != nil {
		return nil, s, fmt.Errorf("commit %s of %s: %w", s.Commit[:12], tail.Redact(s.Repository), err)
	}
	made, err := w.make(ctx)
	return made, s, err
}

// A work is one making of modules.
type work struct {
	*commit
	version string // of k8s.io/kubernetes
	dir     string

	modules map[string]*part // by path
}

// A part is a module in the repository.
type part struct {
	gomod.Version
	files    []file
	packages map[string]*pkg // by import path; nil for k8s.io/kubernetes
	siblings []string        // paths of modules whose sums its go.sum has, sorted
	made     func() (module.Pinned, error)
}

// A pkg is a package, with what it imports on any platform.
type pkg struct {
	module         string
	imports, tests []string
	named          bool // "./..." has it: it is not in a folder such as testdata
}

// split finds the modules and their files.
func (w *work) split() error {
	if err := w.isKubernetes("go.mod", kubernetes); err != nil {
		return err
	}
	w.modules = map[string]*part{kubernetes: {Version: gomod.Version{Path: kubernetes, Version: w.version}}}
	for name := range w.files {
		folder := path.Dir(name)
		if at, ok := strings.CutPrefix(folder, staging); ok && path.Base(name) == "go.mod" && path.Dir(at) == path.Dir(kubernetes) {
			if err := w.isKubernetes(name, at); err != nil {
				return err
			}
			w.modules[at] = &part{Version: gomod.Version{Path: at, Version: module.Staging(w.version)}, packages: map[string]*pkg{}}
		}
	}
	if len(w.modules) == 1 {
		return fmt.Errorf("it is not Kubernetes as slipway knows it: no module is below %s%s", staging, path.Dir(kubernetes))
	}
	for _, name := range slices.Sorted(maps.Keys(w.files)) {
		f := w.files[name]
		at := kubernetes
		if rest, ok := strings.CutPrefix(name, staging); ok {
			if parts := strings.SplitN(rest, "/", 3); len(parts) == 3 && w.modules[parts[0]+"/"+parts[1]] != nil {
				at, f.path = parts[0]+"/"+parts[1], parts[2]
			}
		}
		if at == kubernetes || path.Base(name) != ".gitattributes" {
			w.modules[at].files = append(w.modules[at].files, f)
		}
	}
	if err := w.readPackages(); err != nil {
		return err
	}
	for _, p := range w.modules {
		if p.packages != nil {
			p.siblings = w.siblingsOf(p)
		}
	}
	return w.checkOrder()
}

var moduleLine = regexp.MustCompile(`(?m)^module[ \t]+"?([^\s"]+)`)

// isKubernetes returns an error unless a go.mod is that of a module.
func (w *work) isKubernetes(name, want string) error {
	f, ok := w.files[name]
	if !ok {
		return fmt.Errorf("it is not Kubernetes: it has no %s", name)
	}
	data, err := f.read()
	if err != nil {
		return err
	}
	if m := moduleLine.FindSubmatch(data); m == nil || string(m[1]) != want {
		return fmt.Errorf("it is not Kubernetes: its %s is not that of %s", name, want)
	}
	return nil
}

// ignored matches the constraint of files that no build has, whatever its tags.
var ignored = regexp.MustCompile(`(?m)^//go:build ignore[ \t\r]*$`)

// readPackages reads the imports of the staging modules.
func (w *work) readPackages() error {
	for _, p := range w.modules {
		if p.packages == nil {
			continue
		}
		for _, f := range p.files {
			if base := path.Base(f.path); path.Ext(base) != ".go" || base[0] == '_' || base[0] == '.' {
				continue
			}
			data, err := f.read()
			if err != nil {
				return err
			}
			if ignored.Match(data) {
				continue
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), f.path, data, parser.ImportsOnly)
			if err != nil {
				continue // as the go command does: such files are in testdata
			}
			at := path.Join(p.Path, path.Dir(f.path))
			if p.packages[at] == nil {
				p.packages[at] = &pkg{module: p.Path, named: isNamed(path.Dir(f.path))}
			}
			into := &p.packages[at].imports
			if strings.HasSuffix(f.path, "_test.go") {
				into = &p.packages[at].tests
			}
			for _, i := range parsed.Imports {
				if name, err := strconv.Unquote(i.Path.Value); err == nil && !slices.Contains(*into, name) {
					*into = append(*into, name)
				}
			}
		}
	}
	return nil
}

// isNamed reports whether the pattern "./..." has the package in a folder.
func isNamed(folder string) bool {
	return !slices.ContainsFunc(strings.Split(folder, "/"), func(part string) bool {
		return part == "testdata" || part[0] == '_' || part[0] == '.' && part != "."
	})
}

// siblingsOf returns the staging modules that `go mod tidy` in a module loads packages of: those of the packages that its packages and
// tests import, directly or not, and of what the tests of all these import.
func (w *work) siblingsOf(p *part) []string {
	all := map[string]*pkg{}
	var add func(to map[string]*pkg, imports []string)
	add = func(to map[string]*pkg, imports []string) {
		for _, name := range imports {
			if found := w.find(name); found != nil && to[name] == nil {
				to[name] = found
				add(to, found.imports)
			}
		}
	}
	for name, one := range p.packages {
		if one.named {
			add(all, append([]string{name}, one.tests...))
		}
	}
	loaded := maps.Clone(all)
	for _, one := range all {
		add(loaded, one.tests)
	}
	found := map[string]bool{}
	for _, one := range loaded {
		if one.module != p.Path {
			found[one.module] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// find returns a package of a staging module.
func (w *work) find(name string) *pkg {
	parts := strings.SplitN(name, "/", 3)
	if len(parts) < 2 || w.modules[parts[0]+"/"+parts[1]] == nil {
		return nil
	}
	return w.modules[parts[0]+"/"+parts[1]].packages[name]
}

// checkOrder returns an error if modules need each other's sums.
func (w *work) checkOrder() error {
	done, open := map[string]bool{}, []string{}
	var visit func(name string) error
	visit = func(name string) error {
		if at := slices.Index(open, name); at >= 0 {
			return fmt.Errorf("staging modules import each other in a circle: %s", strings.Join(append(open[at:], name), ", "))
		}
		if done[name] {
			return nil
		}
		open = append(open, name)
		for _, sibling := range w.modules[name].siblings {
			if err := visit(sibling); err != nil {
				return err
			}
		}
		open, done[name] = open[:len(open)-1], true
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(w.modules)) {
		if err := visit(name); err != nil {
			return err
		}
	}
	return nil
}

// make writes all modules, those first whose sums others need.
func (w *work) make(ctx context.Context) ([]module.Pinned, error) {
	for _, p := range w.modules {
		p.made = sync.OnceValues(func() (module.Pinned, error) {
			pinned, err := w.write(ctx, p)
			if err != nil {
				err = fmt.Errorf("make module %s: %w", p.Version, err)
			}
			return pinned, err
		})
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	names := slices.Sorted(maps.Keys(w.modules))
	slices.SortStableFunc(names, func(a, b string) int { return len(w.modules[b].files) - len(w.modules[a].files) })
	for _, name := range names {
		group.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			_, err := w.modules[name].made()
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var all []module.Pinned
	for _, name := range slices.Sorted(maps.Keys(w.modules)) {
		made, _ := w.modules[name].made() // group has its error
		all = append(all, made)
	}
	return all, nil
}

// write writes a module's files.
func (w *work) write(ctx context.Context, p *part) (made module.Pinned, err error) {
	made.Version = module.Version(p.Version)
	files := p.files
	if p.packages != nil {
		if files, err = w.published(p); err != nil {
			return made, err
		}
	}
	at, err := made.ProxyPath()
	if err != nil {
		return made, err
	}
	at = filepath.Join(w.dir, filepath.FromSlash(at))
	if err := os.MkdirAll(filepath.Dir(at), 0o777); err != nil {
		return made, err
	}
	out, err := os.Create(at + ".zip")
	if err != nil {
		return made, err
	}
	defer out.Close()
	list := make([]modzip.File, len(files))
	var goMod []byte
	for i, f := range files {
		if list[i] = f; f.path == "go.mod" {
			if goMod, err = f.read(); err != nil {
				return made, err
			}
		}
	}
	if err := modzip.Create(writer{ctx, out}, p.Version, list); err != nil {
		return made, err
	}
	if err := out.Close(); err != nil {
		return made, err
	}
	if made.Sum, err = dirhash.HashZip(out.Name(), dirhash.Hash1); err != nil {
		return made, err
	}
	if made.GoModSum, err = module.SumOfGoMod(goMod); err != nil {
		return made, err
	}
	info, err := json.Marshal(struct {
		Version string
		Time    time.Time
	}{p.Version.Version, w.time.UTC()})
	if err != nil {
		return made, err
	}
	for name, data := range map[string][]byte{
		at + ".mod": goMod, at + ".info": info, filepath.Join(filepath.Dir(at), "list"): []byte(p.Version.Version + "\n"),
	} {
		if err := os.WriteFile(name, data, 0o666); err != nil {
			return made, err
		}
	}
	return made, nil
}

// published returns the files of a staging module as upstream's publishing bot leaves them.
func (w *work) published(p *part) ([]file, error) {
	var goMod, goSum []byte
	files := make([]file, 0, len(p.files)+1)
	for _, f := range p.files {
		var err error
		switch f.path {
		case "go.mod":
			goMod, err = f.read()
		case "go.sum":
			goSum, err = f.read()
		default:
			files = append(files, f)
		}
		if err != nil {
			return nil, err
		}
	}
	versions := map[string]string{}
	for name, sibling := range w.modules {
		versions[name] = sibling.Version.Version
	}
	goMod, err := module.WithVersions(goMod, versions, p.Version.Version)
	if err != nil {
		return nil, err
	}
	var sums []module.Pinned
	for _, name := range p.siblings {
		made, err := w.modules[name].made()
		if err != nil {
			return nil, err
		}
		sums = append(sums, made)
	}
	files = append(files, generated("go.mod", goMod))
	if goSum = module.WithSums(goSum, sums); len(goSum) > 0 {
		files = append(files, generated("go.sum", goSum))
	}
	return files, nil
}

// A writer stops when a context ends.
type writer struct {
	ctx context.Context
	to  io.Writer
}

func (w writer) Write(data []byte) (int, error) {
	if w.ctx.Err() != nil {
		return 0, context.Cause(w.ctx)
	}
	return w.to.Write(data)
}
