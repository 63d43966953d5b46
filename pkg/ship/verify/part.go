package verify

import (
	"context"
	"io/fs"

	"slipway.build/pkg/release"
)

// Part is like Folder for a file system with a part of a release: it checks the signatures of files, and of the statements about all of the
// release and about the artifacts that the part has. Those were checked by the caller, who found files to be as they should, or not. As
// names the file system.
func Part(ctx context.Context, in fs.FS, as string, has func(release.Artifact) bool, files []File, want Want) (*Report, error) {
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
	report := &Report{Folder: as, Version: c.release.Version, Commit: c.release.Commit, Files: files}
	report.finish()
	if err := report.compare(want); err != nil {
		return nil, err
	}
	return report, c.signatures(ctx, report, has, want)
}

// FilesOf is like Files for a file system.
func FilesOf(ctx context.Context, in fs.FS, as string, described *release.Release, names ...string) (*Report, error) {
	return filesOf(ctx, part{in, as}, described, names)
}
