package rebuild

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"slipway.build/pkg/mechanism/archive"
	"slipway.build/pkg/mechanism/atomicfile"
	"slipway.build/pkg/mechanism/checksum"
	"slipway.build/pkg/mechanism/git"
	"slipway.build/pkg/mechanism/unpack"
	"slipway.build/pkg/tree/catalog"
	"slipway.build/pkg/tree/input"
	"slipway.build/pkg/tree/source"
	"slipway.build/pkg/tree/stamp"
	"slipway.build/pkg/tree/worktree"
)

// Whoever signs that a release was made again says that these sources made it. What the tree's own code says of them counts for nothing,
// since other code could say the same, and fetch the release instead of making it. So the sources are compared here, before any of it runs.

// maxListed is how many files that differ are listed.
const maxListed = 10

// sourcesSum returns the SHA-256 of the tarball of the sources that the statement names, or "".
func (s *Statement) sourcesSum() string {
	for _, r := range s.Predicate.Definition.Dependencies {
		if r.Name == catalog.SourceTarball {
			return r.Digest["sha256"]
		}
	}
	return ""
}

// sources returns what is wrong with the tarball of the sources.
func (s *Statement) sources(file string) (problem string, err error) {
	want := s.sourcesSum()
	if want == "" {
		return "the provenance names no " + catalog.SourceTarball, nil
	}
	sum, err := checksum.File(file)
	if err == nil && sum != want {
		problem = fmt.Sprintf("%s differs: its SHA-256 is %s, want %s", file, sum, want)
	}
	return problem, err
}

// find finds the sources in the folder of an unpacked tree.
func find(ctx context.Context, dir string) (*source.Tree, error) {
	return source.Find(ctx, dir, func() (*worktree.Repo, error) { return nil, worktree.ErrNone })
}

// pack writes the tarball of the sources.
func pack(ctx context.Context, tree *source.Tree, s stamp.Stamp, to string) error {
	entries, err := tree.Entries(ctx)
	if err != nil {
		return err
	}
	sources, _, err := tree.Content(ctx)
	if err != nil {
		return err
	}
	version := stamp.VersionFile{Stamp: s, Sources: sources}
	entries = append(entries, archive.Entry{Name: stamp.File, Mode: 0o644, Data: version.Marshal()})
	return atomicfile.Write(to, 0o644, func(w io.Writer) error { return (&archive.Packer{Time: s.Date}).TarGz(ctx, w, entries) })
}

// sameSources compares the files of the tree with the sources that the release was made of. If slipway packs them in another way by now,
// only the release's own tarball of the sources shows that they are the same.
func (c *checker) sameSources(ctx context.Context) error {
	tree, err := find(ctx, c.Dir)
	if err != nil {
		return err
	}
	c.files = tree.Files
	tmp, err := os.MkdirTemp("", "slipway-rebuild-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	packed := filepath.Join(tmp, catalog.SourceTarball)
	if err := pack(ctx, tree, c.stamp, packed); err != nil {
		return err
	}
	sum, err := checksum.File(packed)
	if err != nil || sum == c.Statement.sourcesSum() {
		return err
	}
	if c.Tree.sources == "" {
		c.problem("the tree's sources are others: the SHA-256 of their %s is %s, want %s; with the release's own beside the provenance, the "+
			"files are named",
			catalog.SourceTarball, sum, c.Statement.sourcesSum())
		return nil
	}
	return c.compareSources(ctx, tree, filepath.Join(tmp, "tree"))
}

// compareSources names the files of the tree that differ from those in the tarball of the sources, which it unpacks into a new folder.
func (c *checker) compareSources(ctx context.Context, tree *source.Tree, dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	if err := unpack.Unpack(ctx, c.Tree.sources, dir, func(string) bool { return true }); err != nil {
		return err
	}
	theirs, err := find(ctx, dir)
	if err != nil {
		return err
	}
	want, err := contents(ctx, theirs)
	if err != nil {
		return err
	}
	got, err := contents(ctx, tree)
	if err != nil {
		return err
	}
	differ := maps.Clone(want)
	maps.Copy(differ, got)
	maps.DeleteFunc(differ, func(name, _ string) bool { return got[name] == want[name] })
	for i, name := range slices.Sorted(maps.Keys(differ)) {
		switch {
		case i == maxListed:
			c.problem("… and %d more of the sources", len(differ)-maxListed)
			return nil
		case got[name] == "":
			c.problem("the source %s is missing", name)
		case want[name] == "":
			c.problem("the release was made without the source %s", name)
		default:
			c.problem("the source %s differs", name)
		}
	}
	return nil
}

// contents returns the mode and the content of each file of a tree, as comparable text.
func contents(ctx context.Context, tree *source.Tree) (map[string]string, error) {
	entries, err := tree.Entries(ctx)
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for _, e := range entries {
		content := "link " + e.Link
		if e.Path != "" {
			if content, err = checksum.File(e.Path); err != nil {
				return nil, err
			}
		}
		all[e.Name] = fmt.Sprint(e.Mode, " ", content)
	}
	return all, nil
}

// strangers returns the files of a fresh tree that are neither sources nor inputs: what other runs have compiled, a repository.
func (t *Tree) strangers(ctx context.Context) (Problems, error) {
	tree, err := find(ctx, t.Dir)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{stamp.File: true}
	for _, name := range tree.Files {
		known[name] = true
	}
	var problems Problems
	err = fs.WalkDir(os.DirFS(t.Dir), ".", func(rel string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", t.Dir, err)
		case known[rel]:
		case d.IsDir() && rel == input.Dir:
			return fs.SkipDir
		case d.IsDir() && rel != "_output" && d.Name() != ".git":
		default:
			problems = append(problems, rel+" is neither a source nor an input")
			if d.IsDir() {
				return fs.SkipDir
			}
		}
		return nil
	})
	return problems, err
}

// reach are the variables of the environment that say how to reach a repository.
var reach = []string{
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR", "SSH_AUTH_SOCK",
}

// Export writes the tarball of the sources into a file, made of the commit that the statement names, from a repository: a folder, or an
// address that git fetches from. Prepare compares it with the one that the statement names.
func (s *Statement) Export(ctx context.Context, repository, to string) error {
	p := s.Predicate.Definition.Parameters
	date, err := time.Parse(time.RFC3339, p.Date)
	if err != nil {
		return err
	}
	version, err := stamp.Unmarshal(stamp.Marshal(stamp.Stamp{Version: p.Version, Commit: p.Commit, TreeState: p.TreeState, Date: date}))
	if err != nil {
		return fmt.Errorf("the version in the provenance: %w", err)
	}
	if version.TreeState != "clean" {
		return fmt.Errorf("the release is of a tree that was %s: no commit has its sources", version.TreeState)
	}
	if _, err := os.Stat(repository); err == nil {
		if repository, err = filepath.Abs(repository); err != nil {
			return err
		}
	}
	dir, err := os.MkdirTemp("", "slipway-rebuild-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	repo, err := git.At(dir)
	if err != nil {
		return err
	}
	if err := repo.Init(ctx); err != nil {
		return err
	}
	if _, err := repo.With(handed(os.Environ(), reach)...).Run(ctx, "fetch", "--quiet", "--no-tags", "--depth=1", "--", repository,
		version.Commit); err != nil {
		return fmt.Errorf("fetch the commit %s from %s: %w", version.Commit, repository, err)
	}
	if _, err := repo.Run(ctx, "checkout", "--quiet", "--detach", version.Commit); err != nil {
		return err
	}
	tree, err := source.Find(ctx, dir, worktree.Once(dir, func(key string) string {
		if key == "PATH" {
			return os.Getenv(key)
		}
		return ""
	}))
	if err != nil {
		return err
	}
	return pack(ctx, tree, version, to)
}
