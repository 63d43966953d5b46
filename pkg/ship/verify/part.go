package verify

import (
	"context"
	"fmt"
	"io/fs"
	"path"

	"slipway.build/pkg/release"
)

// Part is like Folder for a file system with a part of a release: it checks the signatures of files, and of the statements about all of the
// release and about the artifacts that the part has. Those were checked by the caller, who found files to be as they should, or not. As
// names what has the file system as a folder below it.
func Part(ctx context.Context, in fs.FS, as, below string, has func(release.Artifact) bool, files []File, want Want) (*Report, error) {
	if want.rebuilt() {
		return nil, errPart
	}
	if err := want.check(); err != nil {
		return nil, err
	}
	c, err := open(ctx, part{in, as})
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, f := range files {
		known[f.Path] = true
	}
	report := &Report{Folder: as, Version: c.release.Version, Commit: c.release.Commit, Files: files}
	report.finish()
	if err := report.compare(want); err != nil {
		return nil, err
	}
	if err := c.signatures(ctx, report, has, want); err != nil {
		return nil, err
	}
	for i, f := range report.Files {
		if !known[f.Path] {
			report.Files[i].Path = path.Join(below, f.Path)
		}
	}
	report.finish()
	return report, nil
}

// Files checks only the named artifacts, which must be files of the release, in a file system. The others need not exist.
func Files(ctx context.Context, in fs.FS, as string, described *release.Release, names ...string) (*Report, error) {
	for _, name := range names {
		if a, ok := described.Artifact(name); !ok || a.Path == "" {
			return nil, fmt.Errorf("%s: not a file of release %s", name, described.Version)
		}
	}
	return (&content{place: part{in, as}, release: described}).contents(ctx, names)
}
