package debian

import (
	"fmt"
	"path"
	"strings"

	"slipway.build/pkg/mechanism/archive"
)

const (
	docs   = "usr/share/doc/"
	common = "usr/share/common-licenses/" // texts that copyright files refer to, from the package base-files
)

// Copyrights returns the copyright files of packages among unpacked files: NAME/copyright for each, and the texts that these
// refer to as common-licenses/NAME.
func Copyrights(entries []archive.Entry, packages []Package) ([]archive.Entry, error) {
	byName := map[string]archive.Entry{}
	for _, e := range entries {
		byName[e.Name] = e
	}
	var owed []archive.Entry
	for _, p := range packages {
		file := docs + p.Name + "/copyright"
		if folder := byName[docs+p.Name]; folder.Link != "" {
			file = path.Join(docs, folder.Link, "copyright")
		}
		if link := byName[file].Link; link != "" {
			file = path.Join(path.Dir(file), link)
		}
		text, ok := byName[file]
		if !ok || len(text.Data) == 0 {
			return nil, fmt.Errorf("the Debian package %s %s has no copyright file, %s", p.Name, p.Version, file)
		}
		owed = append(owed, archive.Entry{Name: p.Name + "/copyright", Mode: 0o644, Data: text.Data})
	}
	for _, e := range entries {
		name, ok := strings.CutPrefix(e.Name, common)
		if !ok {
			continue
		}
		if e.Link != "" {
			e.Data = byName[path.Join(common, e.Link)].Data
		}
		owed = append(owed, archive.Entry{Name: "common-licenses/" + name, Mode: 0o644, Data: e.Data})
	}
	return owed, nil
}
