package verify

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path"
	"regexp"
	"strings"

	"golang.org/x/mod/semver"

	"slipway.build/pkg/mechanism/checksum"
	"slipway.build/pkg/mechanism/ctxio"
	"slipway.build/pkg/mechanism/rpm"
	"slipway.build/pkg/release"
	"slipway.build/pkg/ship/site"
)

// inRepository is an rpm in a repository beside published releases.
var inRepository = regexp.MustCompile(`^(.*/)?(core:/[a-z]+:/v[0-9]+\.[0-9]+/rpm/[^/]+/[^/]+\.rpm)$`)

// InRepository reports whether a file is an rpm in a repository, as Split names it. The rpm itself says of which release it is.
func InRepository(name string) bool { return inRepository.MatchString(name) }

// packages returns the packages that files with some names should be, as files. A package is in a folder of the release's, beside
// release.json if somebody has fetched both, or in a repository.
func (c *content) packages(names []string) []release.Artifact {
	var found []release.Artifact
	for _, a := range c.release.Artifacts {
		for _, name := range names {
			if a.Identity != nil && name != a.Path && path.Base(name) == path.Base(a.Path) {
				a.Path = name
				found = append(found, a)
			}
		}
	}
	return found
}

// releaseLine is the line in an rpm's list of changes that says of which release it is.
var releaseLine = regexp.MustCompile(`^- Release (v\S+)\.$`)

// releaseOf returns the folder of the release that an rpm says it is of, below the root of what is published.
func releaseOf(ctx context.Context, at place, name string) (string, error) {
	f, _, err := at.open(ctx, name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	r, err := rpm.Read(ctxio.Reader(ctx, f))
	if err != nil {
		return "", fmt.Errorf("%s: %w", at.name(name), err)
	}
	if strings.HasSuffix(r.Info().Name, site.KeyringSuffix) {
		return "", fmt.Errorf("%s is of no release: it has the keys that sign repositories, and rpm checks its signature by those",
			at.name(name))
	}
	m := releaseLine.FindStringSubmatch(r.Info().Changes)
	if m == nil || !semver.IsValid(m[1]) {
		return "", fmt.Errorf("%s does not say of which release it is: it is not slipway's", at.name(name))
	}
	return site.Folder(m[1]), nil
}

// signedCopy compares an rpm in a repository with that of the release, which has no signature of OpenPGP in its header. Everything else is
// the same.
func signedCopy(ctx context.Context, at place, a release.Artifact, before File) (File, error) {
	f, _, err := at.open(ctx, a.Path)
	if err != nil {
		return before, err
	}
	defer f.Close()
	in := ctxio.Reader(ctx, f)
	r, err := rpm.Read(in)
	if err != nil {
		return before, ctx.Err() // what is no rpm was found to differ
	}
	rest := io.MultiReader(bytes.NewReader(r.Unsigned()), bytes.NewReader(r.Header), in)
	sum, n, err := checksum.Of(io.LimitReader(rest, a.Size+1))
	if err != nil {
		return before, err
	}
	if n != a.Size || sum.SHA256 != a.SHA256 || sum.SHA512 != a.SHA512 {
		return before, nil
	}
	return File{a.Path, OK, "that of the release, with a signature of OpenPGP, which was not checked"}, nil
}

// IsPackage reports whether a file has the name of a package.
func IsPackage(name string) bool {
	return strings.HasSuffix(name, ".deb") || strings.HasSuffix(name, ".rpm")
}
