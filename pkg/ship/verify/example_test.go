package verify_test

import (
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"slipway.build/pkg/release"
	"slipway.build/pkg/release/provenance"
	"slipway.build/pkg/ship/verify"
)

// The folder has a tarball of another release, too.
func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	content := []byte("a tarball")
	r := release.Release{Format: release.Format, Version: "v1.37.0+acme.1", Compiler: "go", Artifacts: []release.Artifact{{
		Name: "kubernetes.tar.gz", Kind: release.Tarball, Path: "kubernetes.tar.gz", Size: int64(len(content)),
		SHA256: fmt.Sprintf("%x", sha256.Sum256(content)), SHA512: fmt.Sprintf("%x", sha512.Sum512(content)),
	}}}
	data, err := r.Marshal()
	if err != nil {
		log.Fatal(err)
	}
	files := map[string][]byte{release.File: data, "kubernetes.tar.gz": content, "kubernetes-test-linux-amd64.tar.gz": content}
	statements, err := provenance.Of(&r, data)
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range statements {
		files[s.File] = s.Content
	}
	for name, content := range files {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			log.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			log.Fatal(err)
		}
	}

	report, err := verify.Folder(context.Background(), dir, verify.Want{})
	if err != nil {
		log.Fatal(err)
	}
	if err := report.Text(os.Stdout); err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.OK())
	// Output:
	// kubernetes-test-linux-amd64.tar.gz: not of this release
	// kubernetes.tar.gz: OK
	// provenance.json: OK
	// provenance/: OK, 1 file
	// release v1.37.0+acme.1: 1 of 4 files are not as described
	// false
}
