package gitsource

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"slipway.build/pkg/mechanism/git"
	"slipway.build/pkg/mechanism/tail"
	"slipway.build/pkg/tree/catalog"
)

// A commit has the files of one.
type commit struct {
	tree  string // in hex
	time  time.Time
	files map[string]file // by path
	data  *os.File        // what the files are read from
}

// A file is one of a commit or of a module. It has the methods of a zip.File.
type file struct {
	path   string // in its module
	header *tar.Header
	data   io.ReaderAt
	offset int64
}

func (f file) Path() string                { return f.path }
func (f file) Lstat() (fs.FileInfo, error) { return f.header.FileInfo(), nil }
func (f file) Open() (io.ReadCloser, error) {
	return io.NopCloser(io.NewSectionReader(f.data, f.offset, f.header.Size)), nil
}

func (f file) read() ([]byte, error) {
	data := make([]byte, f.header.Size)
	_, err := f.data.ReadAt(data, f.offset)
	if errors.Is(err, io.EOF) && len(data) == 0 {
		err = nil
	}
	return data, err
}

// generated returns a file with other content than that of the commit.
func generated(path string, data []byte) file {
	return file{path, &tar.Header{Name: path, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(data))}, bytes.NewReader(data), 0}
}

// read reads the files of a commit, but for vendored packages. It works in dir, which the caller removes after it has closed data.
func read(ctx context.Context, s catalog.Source, dir string) (*commit, error) {
	repo, err := git.Open(filepath.Join(dir, "repository"), environ()...)
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(repo.Dir, 0o777); err != nil {
		return nil, err
	}
	if err := repo.Init(ctx); err != nil {
		return nil, err
	}
	// As git's archives are made for module zips: no file is left out, changed or converted.
	attributes := "* -text -ident -filter -working-tree-encoding -export-ignore -export-subst\n"
	if err := os.WriteFile(filepath.Join(repo.Dir, ".git", "info", "attributes"), []byte(attributes), 0o666); err != nil {
		return nil, err
	}
	if err := fetch(ctx, repo, s); err != nil {
		return nil, err
	}
	c := &commit{files: map[string]file{}}
	about, err := repo.Line(ctx, "show", "--no-patch", "--format=%T %cI", s.Commit)
	if err != nil {
		return nil, err
	}
	tree, at, _ := strings.Cut(about, " ")
	if c.time, err = time.Parse(time.RFC3339, at); err != nil {
		return nil, fmt.Errorf("commit %s: %w", s.Commit, err)
	}
	if c.tree = tree; s.Tree != "" && s.Tree != tree {
		return nil, fmt.Errorf("commit %s of %s has the tree %s, want %s", s.Commit, tail.Redact(s.Repository), tree, s.Tree)
	}
	name := filepath.Join(dir, "files.tar")
	if _, err := repo.Run(ctx, "-c", "core.autocrlf=false", "archive", "--format=tar", "--output="+name, s.Commit,
		"--", ".", ":(exclude,glob)vendor/*/**"); err != nil {
		return nil, err
	}
	if c.data, err = os.Open(name); err != nil {
		return nil, err
	}
	if err := c.index(); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), c.data.Close())
	}
	return c, nil
}

// index finds where the files are.
func (c *commit) index() error {
	for r := tar.NewReader(c.data); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		offset, err := c.data.Seek(0, io.SeekCurrent) // the reader does not read ahead
		if err != nil {
			return err
		}
		if h.Typeflag == tar.TypeReg { // a module has no symbolic links
			c.files[h.Name] = file{h.Name, h, c.data, offset}
		}
	}
}

// fetch makes a commit readable in a new repository.
func fetch(ctx context.Context, repo *git.Repo, s catalog.Source) error {
	where := tail.Redact(s.Repository)
	if isFolder(s.Repository) {
		if err := borrow(ctx, repo, s.Repository); err != nil {
			return fmt.Errorf("read the repository %s: %w", where, problem(err))
		}
	} else if err := fetchOne(ctx, repo, s); err != nil {
		return fmt.Errorf("fetch commit %s of %s: %w", s.Commit, where, problem(err))
	}
	_, err := repo.Run(ctx, "cat-file", "-e", s.Commit+"^{tree}")
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("%s does not have the commit %s: %w", where, s.Commit, problem(err))
	}
	return err
}

// borrow takes objects from a folder.
func borrow(ctx context.Context, repo *git.Repo, folder string) error {
	if _, err := os.Stat(folder); err != nil {
		return err
	}
	from, err := git.Open(folder, environ()...)
	if err != nil {
		return err
	}
	objects, err := from.Line(ctx, "rev-parse", "--path-format=absolute", "--git-path", "objects")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(repo.Dir, ".git", "objects", "info", "alternates"), []byte(objects+"\n"), 0o666)
}

// fetchOne fetches a commit without its history: by its ID, or, if the server does not allow that, by its tag or branch.
func fetchOne(ctx context.Context, repo *git.Repo, s catalog.Source) error {
	wants := []string{s.Commit}
	if s.Ref != "" {
		wants = append(wants, s.Ref)
	}
	var errs []error
	for _, want := range wants {
		_, err := repo.Run(ctx, "fetch", "--quiet", "--depth=1", "--no-tags", "--", s.Repository, want)
		if err == nil || ctx.Err() != nil {
			return err
		}
		errs = append(errs, problem(err))
	}
	return errors.Join(errs...)
}
