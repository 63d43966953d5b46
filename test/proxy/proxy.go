// Package proxy writes slipway's own module, as it is in a folder, for tests of trees that have the toolchain from a module proxy.
package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	gomod "golang.org/x/mod/module"
	modzip "golang.org/x/mod/zip"

	"slipway.build/pkg/tree/source"
	"slipway.build/pkg/tree/worktree"
)

// Path is the path of slipway's module.
const Path = "slipway.build"

// Write adds a version of slipway's module to dir, a folder that the go command accepts as GOPROXY=file://DIR. The module is what root, a
// git work tree, has now: changes that are not committed, too. Other versions in dir stay. No database has the module's sum, so
// the go command needs GONOSUMDB=slipway.build.
func Write(dir, root, version string) error {
	t, err := source.Find(context.Background(), root, worktree.Once(root, nil))
	if err != nil {
		return err
	}
	var files []modzip.File
	for _, name := range t.Names() {
		files = append(files, file{root, name})
	}
	var zip bytes.Buffer
	if err := modzip.Create(&zip, gomod.Version{Path: Path, Version: version}, files); err != nil {
		return fmt.Errorf("module %s@%s of %s: %w", Path, version, root, err)
	}
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return err
	}
	at := filepath.Join(dir, Path, "@v")
	list, err := os.ReadFile(filepath.Join(at, "list"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if !slices.Contains(strings.Fields(string(list)), version) {
		list = append(list, version+"\n"...)
	}
	return errors.Join(os.MkdirAll(at, 0o755),
		os.WriteFile(filepath.Join(at, version+".zip"), zip.Bytes(), 0o644),
		os.WriteFile(filepath.Join(at, version+".mod"), mod, 0o644),
		os.WriteFile(filepath.Join(at, version+".info"), []byte(`{"Version":"`+version+`"}`), 0o644),
		os.WriteFile(filepath.Join(at, "list"), list, 0o644))
}

// A file is one of a folder.
type file struct{ root, name string }

func (f file) Path() string                 { return f.name }
func (f file) Lstat() (fs.FileInfo, error)  { return os.Lstat(filepath.Join(f.root, f.name)) }
func (f file) Open() (io.ReadCloser, error) { return os.Open(filepath.Join(f.root, f.name)) }
