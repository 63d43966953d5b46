package kit

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	gomod "golang.org/x/mod/module"
	"golang.org/x/tools/txtar"

	"slipway.build/pkg/tree/module"
)

// ArchiveFile has what [Pack] makes, relative to the root of slipway's repository.
const ArchiveFile = "pkg/maintain/kit/kit.txtar"

//go:embed kit.txtar
var archive []byte

//go:embed template/README.md
var readme []byte

//go:embed template/magefile.go.txt
var magefile []byte

// A File is one of a distribution.
type File struct {
	Name       string // relative to its root, slash-separated
	Data       []byte
	Executable bool
}

// packed lists what the kit takes from this repository: files and folders.
var packed = []string{".gitattributes", ".gitignore", "Makefile", "build/codegen", "build/slipway.mk", "cmd",
	"go.mod", "go.sum", "images", "release"}

// profileTest says what is in slipway's own profile of settings, which distributions are free to change or to remove.
const profileTest = "cmd/kubeadm/defaults/defaults_test.go"

// Pack returns the archive of the kit, made of slipway's repository in root, except for build/targets.mk, which is given.
func Pack(root string, targets []byte) ([]byte, error) {
	var a txtar.Archive
	var executable []string
	add := func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Base(name) == "BUILD.bazel" || name == profileTest {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			return fmt.Errorf("%s is no regular file: the kit has no place for it", name)
		}
		if info.Mode()&0o100 != 0 {
			executable = append(executable, name)
		}
		data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		a.Files = append(a.Files, txtar.File{Name: name, Data: data})
		return err
	}
	for _, name := range packed {
		if err := fs.WalkDir(os.DirFS(root), name, add); err != nil {
			return nil, err
		}
	}
	a.Files = append(a.Files, txtar.File{Name: "build/targets.mk", Data: targets})
	slices.SortFunc(a.Files, func(x, y txtar.File) int { return strings.Compare(x.Name, y.Name) })
	a.Comment = []byte("What a new distribution is made of. Executable files:\n" + strings.Join(executable, "\n") + "\n")
	text := txtar.Format(&a)
	again := txtar.Parse(text)
	for i, f := range a.Files {
		if i >= len(again.Files) || again.Files[i].Name != f.Name || !bytes.Equal(again.Files[i].Data, f.Data) {
			return nil, fmt.Errorf("%s: the kit cannot hold it: it ends without a line break, or has a line like -- NAME --", f.Name)
		}
	}
	return text, nil
}

// Packed returns a file as slipway's own repository has it, or nothing if that is not in the kit.
func Packed(name string) []byte {
	for _, f := range txtar.Parse(archive).Files {
		if f.Name == name {
			return f.Data
		}
	}
	return nil
}

// A Toolchain is the slipway that a distribution is made with.
type Toolchain struct {
	Path    string // of its module
	Version string // of its module, or empty
	Sum     string // of the module's content, as in go.sum
	Folder  string // instead of a version: the folder of its sources, absolute or relative to the distribution
}

// Options say what a distribution is like.
type Options struct {
	Name      string // for people
	Module    string // the path before those of its modules
	Toolchain Toolchain
	Without   []string // components, other projects' programs and addons to leave out
	Platforms []string // of its release; empty for all of the kit
	Registry  string   // whose name images carry; empty for the kit's
	FIPS      string   // version of Go's cryptographic module; empty for Go's own code
}

// Files returns the files of a new distribution, sorted by name.
func Files(o Options) ([]File, error) { return o.Of(archive) }

// Of returns the files of a distribution as the kit of another slipway has them: the content of its [ArchiveFile].
func (o Options) Of(archive []byte) ([]File, error) {
	if err := checkModule(o.Module); err != nil {
		return nil, err
	}
	text := txtar.Parse(archive)
	_, list, _ := strings.Cut(string(text.Comment), ":\n")
	executable := strings.Fields(list)
	files := map[string]File{}
	for _, f := range text.Files {
		files[f.Name] = File{f.Name, f.Data, slices.Contains(executable, f.Name)}
	}
	if err := errors.Join(o.modules(files), o.release(files)); err != nil {
		return nil, err
	}
	for name, data := range map[string][]byte{
		"README.md":             bytes.ReplaceAll(readme, []byte("NAME"), []byte(o.Name)),
		"magefiles/magefile.go": bytes.ReplaceAll(magefile, []byte("SLIPWAY"), []byte(o.Toolchain.Path)),
	} {
		files[name] = File{Name: name, Data: data}
	}
	all := make([]File, 0, len(files))
	for _, f := range files {
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// own is the path before those of the kit's modules.
const own = "slipway.build/"

// modules gives the modules of the kit the distribution's path, and writes that of the tool.
func (o Options) modules(files map[string]File) error {
	for name, f := range files {
		switch {
		case name == "go.mod" || name == "go.sum":
		case path.Ext(name) == ".go" || path.Base(name) == "go.mod":
			for _, folder := range []string{"cmd", "images", "codegen"} {
				f.Data = bytes.ReplaceAll(f.Data, []byte(own+folder), []byte(o.Module+"/"+folder))
			}
			files[name] = f
		}
	}
	goMod, goSum, err := o.tool(files["go.mod"].Data, files["go.sum"].Data)
	files["go.mod"], files["go.sum"] = File{Name: "go.mod", Data: goMod}, File{Name: "go.sum", Data: goSum}
	return err
}

const heading = `// The tool that makes the distribution: slipway and the modules that it was tested with. What a release is made of is in
// cmd/go.mod, and nothing here can raise a version there.
`

// tool returns the module file of a distribution's tool, made of slipway's own.
func (o Options) tool(goMod, goSum []byte) (mod, sum []byte, err error) {
	kit, err := modfile.Parse("go.mod", goMod, nil)
	if err != nil {
		return nil, nil, err
	}
	t := o.Toolchain
	made, err := modfile.Parse("go.mod", []byte(heading+"module "+modfile.AutoQuote(o.Module)+"\n"), nil)
	if err != nil {
		return nil, nil, err
	}
	version := t.Version
	if t.Folder != "" {
		version = "v0.0.0"
	}
	requires := []*modfile.Require{{Mod: gomod.Version{Path: t.Path, Version: version}}}
	for _, r := range kit.Require {
		requires = append(requires, &modfile.Require{Mod: r.Mod, Indirect: true})
	}
	errs := []error{made.AddGoStmt(kit.Go.Version), made.AddTool(t.Path)}
	for _, tool := range kit.Tool {
		errs = append(errs, made.AddTool(tool.Path))
	}
	made.SetRequireSeparateIndirect(requires)
	if t.Folder != "" {
		errs = append(errs, made.AddReplace(t.Path, "", filepath.ToSlash(t.Folder), ""))
	}
	made.Cleanup()
	if err := errors.Join(errs...); err != nil {
		return nil, nil, err
	}
	if mod, err = made.Format(); err != nil || t.Folder != "" {
		return mod, goSum, err
	}
	ofMod, err := module.SumOfGoMod(goMod)
	if err != nil {
		return nil, nil, err
	}
	lines := strings.SplitAfter(string(goSum), "\n")
	lines = append(lines, fmt.Sprintf("%s %s %s\n", t.Path, t.Version, t.Sum), fmt.Sprintf("%s %s/go.mod %s\n", t.Path, t.Version, ofMod))
	slices.Sort(lines)
	return mod, []byte(strings.Join(lines, "")), nil
}

// Write writes files below a folder.
func Write(ctx context.Context, dir string, files []File) error {
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return err
		}
		name := filepath.Join(dir, filepath.FromSlash(f.Name))
		mode := os.FileMode(0o644)
		if f.Executable {
			mode = 0o755
		}
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, f.Data, mode); err != nil {
			return err
		}
	}
	return nil
}
