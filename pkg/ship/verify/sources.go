package verify

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"slipway.build/pkg/mechanism/unpack"
	"slipway.build/pkg/release"
	tree "slipway.build/pkg/tree/folder"
)

// ErrSources says that a release does not have the sources that it was made of.
var ErrSources = errors.New("its sources do not explain it")

// Sources checks that the tarball of the sources in a release's folder has the tree that the release was made of, with each of its patches,
// as release.json names them. A release of a dirty tree says in its version that it need not.
func Sources(ctx context.Context, dir string) error {
	described, err := release.Read(dir)
	if err != nil {
		return err
	}
	if dirty(described.Version) {
		return nil
	}
	var source release.Input
	patches := map[string]string{} // digests by name
	for _, in := range described.Inputs {
		switch in.Kind {
		case release.Source:
			source = in
		case release.Patch:
			patches[in.Name] = in.SHA256
		}
	}
	if source.Tree == "" {
		return fmt.Errorf("%w: %s has no digest of the tree: it was made by an older slipway", ErrSources, release.File)
	}
	name := filepath.Join(dir, filepath.Base(source.Name))
	files, err := sourceFiles(ctx, name)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	for _, f := range files {
		if patches[f.Name] == f.SHA256 {
			delete(patches, f.Name)
		}
	}
	for name := range patches {
		return fmt.Errorf("%w: %s does not have the patch %s", ErrSources, source.Name, name)
	}
	if sum := tree.Digest(files); sum != source.Tree {
		return fmt.Errorf("%w: %s has other files than the tree that it was made of", ErrSources, source.Name)
	}
	return nil
}

// dirty reports whether a version says that its tree was.
func dirty(version string) bool { return strings.HasSuffix(version, ".dirty") }

func sourceFiles(ctx context.Context, name string) ([]tree.File, error) {
	f, err := unpack.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return tree.Members(ctx, f)
}
