package release_test

import (
	"crypto/sha256"
	"crypto/sha512"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"slipway.build/pkg/mechanism/platform"
	"slipway.build/pkg/release"
)

// This lists the tarballs for a platform.
func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	on := platform.Platform{OS: "linux", Arch: "arm64"}
	made := release.Release{Format: release.Format, Version: "v1.37.0+acme.1", Artifacts: []release.Artifact{{
		Name: "kubernetes-node-linux-arm64.tar.gz", Kind: release.Tarball, Platform: on, Path: "kubernetes-node-linux-arm64.tar.gz",
		SHA256: fmt.Sprintf("%x", sha256.Sum256(nil)), SHA512: fmt.Sprintf("%x", sha512.Sum512(nil)),
	}}}
	data, err := made.Marshal()
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, release.File), data, 0o644); err != nil {
		log.Fatal(err)
	}

	r, err := release.Read(dir)
	if err != nil {
		log.Fatal(err)
	}
	for _, a := range r.Select(release.Tarball, on) {
		fmt.Println(a.Path, a.SHA256[:12])
	}
	// Output: kubernetes-node-linux-arm64.tar.gz e3b0c44298fc
}
