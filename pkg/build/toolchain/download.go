package toolchain

import (
	"context"
	"fmt"
	"path"
	"path/filepath"
)

// Download returns the GOROOT of the pinned Go for a platform ("linux-arm64") that need not be this one: the installed Go's
// if that is it, or else one that the installed Go has fetched. Either has the sum of the pin. It says on progress, if not
// nil, when it fetches.
//
// What of the folder belongs to the release, and by which names, is for [Files] to say.
func Download(ctx context.Context, pin Pin, platform string, progress func(string)) (dir string, err error) {
	want := pin.Sums[platform]
	if want == "" {
		return "", fmt.Errorf("release.yaml has no sum of %s for %s: add it under go.sums", pin.Version, platform)
	}
	i, err := findInstalled(ctx, pin)
	if err != nil {
		return "", err
	}
	defer i.close()
	if platform == host && versionOf(i.root) == pin.Version && unreleased(i.root, pin.Version, platform, want) == "" {
		return i.root, nil
	}
	if progress != nil {
		progress(fmt.Sprintf("fetching %s for %s", pin.Version, platform))
	}
	dir, err = i.fetch(ctx, pin, platform)
	if err != nil {
		return "", err
	}
	// The go command checks what it downloads, and not what was in the module cache before.
	if unreleased(dir, pin.Version, platform, want) != "" {
		return "", fmt.Errorf("%s: it was changed since it was downloaded: remove it (go clean -modcache)", dir)
	}
	return dir, nil
}

// Files lists those files of a GOROOT that are part of the Go that was released for a platform ("linux-arm64"): by their names
// in an installed Go, relative and with slashes, the files. A folder made of them has the release's sum. Whatever is below bin
// and pkg/tool is to be executable.
func Files(dir, platform string) (map[string]string, error) {
	g, err := readGoroot(dir, "", platform)
	if err != nil {
		return nil, fmt.Errorf("read the Go in %s: %w", dir, err)
	}
	files := make(map[string]string, len(g.files))
	for name, rel := range g.files {
		if folder, base := path.Split(name); base == "_go.mod" {
			name = folder + "go.mod"
		}
		files[name] = filepath.Join(g.dir, filepath.FromSlash(rel))
	}
	return files, nil
}
