package verify

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"path"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"slipway.build/pkg/release"
	"slipway.build/pkg/ship/sign"
	"slipway.build/pkg/ship/site"
)

// Split returns the folder of the release that a file is of, by its slash-separated path, and the file's path in there. Published programs
// and packages are in folders of their own. Of an rpm in a repository, the folder is that of all that is published: see InRepository.
func Split(file string) (dir, name string) {
	if m := inRepository.FindStringSubmatch(file); m != nil {
		return path.Clean(m[1]), m[2]
	}
	dir, name = path.Split(file)
	if up, last := path.Split(path.Clean(dir)); last == release.PackageFolder && IsPackage(name) {
		return path.Clean(up), path.Join(last, name)
	}
	if parts := strings.Split(path.Clean(dir), "/"); len(parts) >= 3 && parts[len(parts)-3] == site.Programs {
		name = path.Join(append(parts[len(parts)-3:], name)...)
		dir = strings.Join(parts[:len(parts)-3], "/") + "/"
	}
	return path.Clean(dir), name
}

// programs returns the published programs of some paths, as files.
func (c *content) programs(names []string) []release.Artifact {
	derived, err := site.Files(c.release, "")
	if err != nil {
		return nil // it cannot be published
	}
	var found []release.Artifact
	for _, d := range derived {
		if d.Content == nil && slices.Contains(names, d.Path) {
			program := d.Program
			program.Path = d.Path
			found = append(found, program)
		}
	}
	return found
}

// published checks what a published release has besides its own files: all of it follows from release.json. It returns nothing of a release
// that is not published.
func (c *content) published(ctx context.Context, report *Report) ([]File, error) {
	kubeadm, err := readSmall(ctx, c.place, site.Kubeadm, maxDescription)
	isPublished := err == nil // kubeadm.yaml is put before release.json
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, sign.ErrIrregular) {
		return nil, err
	}
	if _, isFolder := c.place.(folder); !isPublished && !isFolder {
		return nil, nil
	}
	repository := site.Repository(c.release, kubeadm)
	derived, err := site.Files(c.release, repository)
	if err != nil {
		return nil, nil // it cannot be published: its files have the names of others
	}
	files := make([]File, len(derived))
	g, within := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, d := range derived {
		g.Go(func() (err error) {
			files[i], err = check(within, c.place, release.Artifact{Path: d.Path, Size: d.Size, SHA256: d.Digest.SHA256, SHA512: d.Digest.SHA512})
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	var found []File
	for i, f := range files {
		if f.Status == Missing && !isPublished {
			continue
		}
		if repository != "" && derived[i].Names && f.Status == OK {
			f.Status, f.Detail = Unchecked, "the images are of "+repository+", which is in nothing that is signed"
		}
		found = append(found, f)
	}
	pages, err := c.pages(ctx, report)
	return append(found, pages...), err
}

// pages checks the page about a release, and finds out whether the release is withdrawn. The page is read before that: it is changed
// afterwards.
func (c *content) pages(ctx context.Context, report *Report) ([]File, error) {
	c.paged = true
	index, err := readSmall(ctx, c.place, site.Index, maxDescription)
	hasIndex := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, sign.ErrIrregular) {
		return nil, err
	}
	var files []File
	reason, err := readSmall(ctx, c.place, site.Withdrawn, site.MaxReason)
	switch {
	case err == nil:
		report.Withdrawn = strings.TrimSpace(string(reason))
		files = append(files, File{site.Withdrawn, Unchecked, ""})
	case errors.Is(err, sign.ErrIrregular):
		files = append(files, File{site.Withdrawn, Stranger, "is no regular file, or too large"})
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	_, isFolder := c.place.(folder)
	known := bytes.Contains(index, []byte(site.AnyGenerator))
	if !hasIndex || !isFolder && !known { // servers answer with a list of the files if there is none
		return files, nil
	}
	f := File{site.Index, Changed, "is not what follows from " + release.File}
	for _, why := range []string{"", report.Withdrawn} {
		if page, err := site.IndexPage(c.release, why); err == nil && bytes.Equal(page, index) {
			f = File{site.Index, OK, ""}
		}
	}
	if known && !bytes.Contains(index, []byte(site.Generator)) {
		f = File{site.Index, Unchecked, "its form is that of another version of slipway"}
	}
	return append(files, f), nil
}
