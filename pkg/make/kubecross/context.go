package kubecross

import (
	"archive/tar"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// A buildContext holds what is sent to the engine: the definition, the packages for its architecture, and Go.
type buildContext struct {
	folder   folder
	packages []string
	goroot   map[string]string // files by their names in an installed Go, see toolchain.Files
}

// write packs the context. Owners, modes and times are the same wherever it is packed, and only root can write its files. The
// engine's build cache compares contents, so unchanged steps are not built again.
func (c buildContext) write(w io.Writer) error {
	p := &packer{tar: tar.NewWriter(w), folders: map[string]bool{".": true}}
	for _, file := range c.folder {
		mode := int64(0o644)
		if file.executable {
			mode = 0o755
		}
		if err := p.add(file.name, mode, file.data); err != nil {
			return err
		}
	}
	if err := p.add("packages", 0o644, []byte(strings.Join(c.packages, "\n")+"\n")); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(c.goroot)) {
		data, err := os.ReadFile(c.goroot[name]) // tens of megabytes at most
		if err != nil {
			return err
		}
		mode := int64(0o444)
		if strings.HasPrefix(name, "bin/") || strings.HasPrefix(name, "pkg/tool/") {
			mode = 0o555
		}
		if err := p.add("go/"+name, mode, data); err != nil {
			return err
		}
	}
	return p.tar.Close()
}

type packer struct {
	tar     *tar.Writer
	folders map[string]bool // already written
}

func (p *packer) add(name string, mode int64, data []byte) error {
	if err := p.addFolder(path.Dir(name)); err != nil {
		return err
	}
	err := p.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(data)), ModTime: time.Unix(0, 0)})
	if err != nil {
		return err
	}
	_, err = p.tar.Write(data)
	return err
}

func (p *packer) addFolder(name string) error {
	if p.folders[name] {
		return nil
	}
	if err := p.addFolder(path.Dir(name)); err != nil {
		return err
	}
	p.folders[name] = true
	return p.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755, ModTime: time.Unix(0, 0)})
}
