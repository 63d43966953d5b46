package kubecross

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"strings"

	"slipway.build/pkg/build/toolchain"
	"slipway.build/pkg/mechanism/engine"
	"slipway.build/pkg/tree/catalog"
)

// Repositories of the images, and the labels that hold their hashes.
const (
	Repository     = "slipway/kube-cross"
	BaseRepository = "slipway/kube-cross-base"

	imageLabel = "build.slipway.image"
	baseLabel  = "build.slipway.base" // the image has it from its base
)

// An Image is the build image, as it is to be.
type Image struct {
	Dir    string        // images/kube-cross, absolute
	Pin    toolchain.Pin // the Go in it
	Base   string        // KUBE_CROSS_BASE: the image to start from; "" is the Dockerfile's default or, where that cannot be pulled, one made here
	Mirror string        // SLIPWAY_DEBIAN_MIRROR: where Debian packages come from; "" is where this machine's apt has them from
}

// Ref is the image's name in an engine for that owner and platform, by the hash of everything it is made from.
func (i Image) Ref(owner engine.Owner, platform catalog.Platform) (string, error) {
	f, err := readFolder(i.Dir)
	if err != nil {
		return "", err
	}
	sum, err := i.hash(f, platform)
	if err != nil {
		return "", err
	}
	return ref(Repository, owner, sum), nil
}

// ref names an image by its hash.
func ref(repository string, owner engine.Owner, sum string) string {
	return repository + ":" + owner.ID + "-" + sum[:12]
}

// hash is over everything that decides what the image is, and nothing of the machine.
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

// add hashes texts so that no two lists of them are alike. A hash takes everything.
func add(h hash.Hash, texts ...string) {
	for _, text := range texts {
		_, _ = fmt.Fprintf(h, "%d %s\n", len(text), text)
	}
}

// tagged says whether a name of an image is one of an owner's; the owner "" stands for all.
func tagged(name, repository, owner string) bool {
	tag, ok := strings.CutPrefix(name, repository+":")
	return ok && (owner == "" || strings.HasPrefix(tag, owner+"-"))
}
