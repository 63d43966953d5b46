package kubecross

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// A folder is the definition of the image, sorted by name. It is read as a whole and at once, so what is hashed is what is
// built: a few kilobytes.
type folder []file

type file struct {
	name       string // relative, with slashes
	executable bool   // of the modes only what git keeps counts
	data       []byte
}

func readFolder(dir string) (folder, error) {
	var f folder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			return fmt.Errorf("%s: is not a file", path)
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		f = append(f, file{name: filepath.ToSlash(rel), executable: info.Mode()&0o100 != 0, data: data})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the build image's definition: %w", err)
	}
	return f, nil
}

// text is what a file holds that there must be.
func (f folder) text(name string) (string, error) {
	for _, file := range f {
		if file.name == name {
			return string(file.data), nil
		}
	}
	return "", fmt.Errorf("read the build image's definition: there is no %s", name)
}
