package verify

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"slipway.build/pkg/release"
	"slipway.build/pkg/tree/input"
	"slipway.build/pkg/tree/stamp"
)

// Inputs checks a kubernetes-inputs.tar by itself: its members against the sums in it. The report has a line for each member that
// differs, or one for the file.
func Inputs(ctx context.Context, file string) (*Report, error) {
	f := File{filepath.Base(file), OK, ""}
	version, err := members(ctx, filepath.Dir(file), &f)
	if err != nil {
		return nil, err
	}
	return &Report{Folder: file, Version: version.Version, Commit: version.Commit, Valid: f.Status == OK, Files: []File{f}}, nil
}

// beside returns the status of a kubernetes-inputs.tar that a release does not name. If it was made of the same version, it belongs to
// the release all the same.
func beside(ctx context.Context, dir string, described *release.Release) (File, error) {
	f := File{input.Tarball, OK, ""}
	version, err := members(ctx, dir, &f)
	if err == nil && f.Status == OK && version.Version != described.Version {
		f = File{input.Tarball, Stranger, "its version is " + version.Version}
	}
	return f, err
}

// maxNamed is the number of damaged members that a report names.
const maxNamed = 10

// members compares the members of a kubernetes-inputs.tar with the sums in it, adds what is wrong with them to the file's status, and
// returns the version in it.
func members(ctx context.Context, dir string, f *File) (stamp.Stamp, error) {
	contents, err := input.Check(ctx, filepath.Join(dir, filepath.FromSlash(f.Path)))
	differ, _ := errors.AsType[input.MembersError](err)
	var unreadable *fs.PathError
	switch {
	case ctx.Err() != nil:
		return stamp.Stamp{}, ctx.Err()
	case errors.As(err, &unreadable) && !errors.Is(err, fs.ErrNotExist):
		return stamp.Stamp{}, err
	case errors.Is(err, input.ErrCutShort) && f.Status != Short:
		*f = File{f.Path, Short, detail(f.Detail, strings.TrimPrefix(err.Error(), string(Short)+" "))}
	case len(differ) > 0:
		if more := len(differ) - maxNamed; more > 0 {
			differ = append(differ[:maxNamed], fmt.Sprintf("and %d more", more))
		}
		*f = File{f.Path, Changed, detail(f.Detail, strings.Join(differ, "; "))}
	case err != nil && f.Status == OK:
		*f = File{f.Path, Changed, err.Error()}
	}
	if contents == nil {
		return stamp.Stamp{}, nil
	}
	version, err := stamp.Unmarshal(contents.Version)
	if err != nil && f.Status == OK {
		*f = File{f.Path, Changed, "version: " + err.Error()}
	}
	return version, nil
}

// detail joins what is known of a file.
func detail(known, more string) string {
	if known == "" {
		return more
	}
	return known + "; " + more
}
