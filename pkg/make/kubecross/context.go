package kubecross

import (
	"io"
	"io/fs"
	"strings"
	"time"

	"slipway.build/pkg/mechanism/archive"
)

// A buildContext holds what is sent to the engine: the definition, the packages for its architecture, and Go.
type buildContext struct {
	folder   folder
	packages []string
	goroot   map[string]string // files by their names in an installed Go, see toolchain.Files
}

// write packs the context. Owners, modes and times are the same wherever it is packed. The engine's build cache compares contents, so
// unchanged steps are not built again.
func (c buildContext) write(w io.Writer) error {
	entries := []archive.Entry{{Name: "packages", Mode: 0o644, Data: []byte(strings.Join(c.packages, "\n") + "\n")}}
	for _, f := range c.folder {
		entries = append(entries, archive.Entry{Name: f.name, Mode: mode(f.executable), Data: f.data})
	}
	for name, file := range c.goroot {
		program := strings.HasPrefix(name, "bin/") || strings.HasPrefix(name, "pkg/tool/")
		entries = append(entries, archive.Entry{Name: "go/" + name, Mode: mode(program), Path: file})
	}
	return archive.Tar(w, entries, time.Time{})
}

func mode(executable bool) fs.FileMode {
	if executable {
		return 0o755
	}
	return 0o644
}
