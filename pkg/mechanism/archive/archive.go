package archive

import (
	"embed"
	"io/fs"

	"slipway.build/pkg/mechanism/recipe"
)

//go:embed *.go
var sources embed.FS

// Recipe identifies all that decides an archive's bytes except its entries and their time. It must be part of the key of
// every action that packs. The cache keeps what each recipe made in a folder of its own.
var Recipe = recipe.Of(sources, "github.com/klauspost/compress")

// An Entry describes a member of an archive: a directory, a symbolic link, or a file whose content is Data or is read from
// Path.
type Entry struct {
	Name string      // slash-separated, relative, clean
	Mode fs.FileMode // type (fs.ModeDir, fs.ModeSymlink or regular), a file's 0100 and fs.ModeSetuid, a directory's fs.ModeSticky; the rest is ignored
	Link string      // a symbolic link's target
	Data []byte      // a regular file's content, if Path is empty
	Path string      // where a regular file's content is
	Sum  string      // SHA-256 of the content of Path in hex, if it is known; saves a read
}
