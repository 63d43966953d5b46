package input

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"slipway.build/pkg/mechanism/badrequest"
)

// Names in a tree that was unpacked from [Tarball].
const (
	Dir     = "_inputs"
	goDir   = "go"     // modules, in the layout of a module proxy
	debDir  = "debian" // packages, by their SHA-256
	Sums    = Dir + "/SHA256SUMS"
	Modules = Dir + "/" + goDir
	Debian  = Dir + "/" + debDir
)

// Tarball is the name of the file with a tree and its inputs.
const Tarball = "kubernetes-inputs.tar"

// A Folder has the inputs of a tree: the folder _inputs. "" means none: inputs come over the network.
type Folder string

// off is the setting with which the inputs of a tree are not used.
const off = "off"

// Find returns the folder of inputs for the tree at root. It is the one that the user names in SLIPWAY_INPUTS, or else the tree's own.
// With the setting "off", there is none.
func Find(root, setting string) (Folder, error) {
	if setting == off {
		return "", nil
	}
	dir := setting
	if setting == "" {
		dir = filepath.Join(root, Dir)
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(filepath.Join(dir, goDir))
	switch {
	case err == nil && info.IsDir():
		return Folder(dir), nil
	case setting != "":
		return "", badrequest.Mark(fmt.Errorf("SLIPWAY_INPUTS=%q: want the folder %s of an unpacked %s, or %s", setting, Dir, Tarball, off))
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return "", err
	}
	return "", nil
}

// Modules returns the folder of modules, or "".
func (f Folder) Modules() string { return f.join(goDir) }

// Debian returns the folder of Debian packages, or "".
func (f Folder) Debian() string { return f.join(debDir) }

func (f Folder) join(name string) string {
	if f == "" {
		return ""
	}
	return filepath.Join(string(f), name)
}
