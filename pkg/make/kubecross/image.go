package kubecross

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"regexp"
	"strings"

	"slipway.build/pkg/make/toolchain"
	"slipway.build/pkg/mechanism/engine"
	"slipway.build/pkg/tree/catalog"
	tree "slipway.build/pkg/tree/folder"
)

// Repositories of the images, and the labels that hold their hashes.
const (
	Repository     = "slipway/kube-cross"
	BaseRepository = "slipway/kube-cross-base"

	imageLabel = "build.slipway.image"
	baseLabel  = "build.slipway.base" // inherited from the base
)

// An Image describes the build image.
type Image struct {
	Dir    string        // images/kube-cross, absolute
	Pin    toolchain.Pin // the Go in it
	Base   string        // the image to start from; "" is the Dockerfile's default or, if that cannot be pulled, one built here
	Mirror string        // of Debian packages; "" is the one of this machine's apt
}

// Ref returns the image's name in an engine of a platform. It holds the hash of everything in the image.
func (i Image) Ref(owner engine.Owner, platform catalog.Platform) (string, error) {
	_, sum, err := i.read(platform)
	if err != nil {
		return "", err
	}
	return ref(Repository, owner, sum), nil
}

// read reads the definition and returns it with its hash.
func (i Image) read(platform catalog.Platform) (folder, string, error) {
	f, err := readFolder(i.Dir)
	if err != nil {
		return nil, "", err
	}
	sum, err := i.hash(f, platform)
	return f, sum, err
}

// ref returns the name of an image by its hash.
func ref(repository string, owner engine.Owner, sum string) string {
	return repository + ":" + owner.ID + "-" + sum[:12]
}

// hash covers everything that decides what is in the image, and nothing of the machine.
func (i Image) hash(f folder, platform catalog.Platform) (string, error) {
	sum := i.Pin.Sums[platform.Dash()]
	if sum == "" {
		return "", fmt.Errorf("build image: release.yaml has no sum of %s for %s: add it under go.sums", i.Pin.Version, platform.Dash())
	}
	h := sha256.New()
	add(h, "kube-cross", i.Base, i.Pin.Version, sum, platform.String())
	for _, file := range f {
		add(h, file.name, fmt.Sprint(file.executable), string(file.data))
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// add hashes texts so that different lists have different hashes. Writing to a hash cannot fail.
func add(h hash.Hash, texts ...string) {
	for _, text := range texts {
		_, _ = fmt.Fprintf(h, "%d %s\n", len(text), text)
	}
}

// tagged reports whether an image's name was given for an owner; "" stands for all owners.
func tagged(name, repository, owner string) bool {
	tag, ok := strings.CutPrefix(name, repository+":")
	return ok && (owner == "" || strings.HasPrefix(tag, owner+"-"))
}

// A folder holds the files of the image's definition, sorted by name: a few kilobytes. They are read once, so the hash is that of
// what is built.
type folder []file

type file struct {
	name       string // relative, with slashes
	executable bool   // all of the mode that git keeps
	data       []byte
}

func readFolder(dir string) (folder, error) {
	var f folder
	top := os.DirFS(dir)
	err := fs.WalkDir(top, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || tree.Leaving(name) {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			return fmt.Errorf("%s: not a regular file", name)
		}
		data, err := fs.ReadFile(top, name)
		f = append(f, file{name: name, executable: info.Mode()&0o100 != 0, data: data})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the build image's definition in %s: %w", dir, err)
	}
	return f, nil
}

// text returns the content of a file that must exist.
func (f folder) text(name string) (string, error) {
	for _, file := range f {
		if file.name == name {
			return string(file.data), nil
		}
	}
	return "", fmt.Errorf("read the build image's definition: there is no %s", name)
}

// packageLine matches a package's name, with an optional restriction as in Debian's control files: "[amd64]" for engines on amd64,
// "[!amd64]" for engines on any other. Go and Debian have the same names for the two architectures.
var packageLine = regexp.MustCompile(`^([a-z0-9][a-z0-9+.-]+)(?:\s+\[(!?)(amd64|arm64)\])?$`)

// packages returns the names in packages.txt for an engine's architecture.
func (f folder) packages(arch string) ([]string, error) {
	text, err := f.text("packages.txt")
	if err != nil {
		return nil, err
	}
	var names []string
	n := 0
	for line := range strings.Lines(text) {
		n++
		line, _, _ = strings.Cut(line, "#")
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		m := packageLine.FindStringSubmatch(line)
		if m == nil {
			return nil, fmt.Errorf("packages.txt:%d: %q is not a package, or a package and [amd64], [!amd64], [arm64] or [!arm64]", n, line)
		}
		name, not, only := m[1], m[2] == "!", m[3]
		if only == "" || (only == arch) != not {
			names = append(names, name)
		}
	}
	return names, nil
}
