package rebuild

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	gomod "golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"

	"slipway.build/pkg/mechanism/atomicfile"
	"slipway.build/pkg/mechanism/signature"
	"slipway.build/pkg/mechanism/unpack"
	"slipway.build/pkg/release"
	"slipway.build/pkg/release/provenance"
	"slipway.build/pkg/tree/catalog"
	"slipway.build/pkg/tree/input"
	"slipway.build/pkg/tree/module"
	"slipway.build/pkg/tree/patch"
	"slipway.build/pkg/tree/stamp"
)

// maxStatement is the size, in bytes, of the largest statement that is read.
const maxStatement = 32 << 20

// A Statement says how a release was made.
type Statement struct {
	*provenance.Statement
	Content []byte // as its file has it
}

// Open reads the statement about a whole release from a file. The error says so if nobody could trust it, whoever signed it. With a key, the
// statement must be signed by it, in the folder of attestations beside the file.
func Open(file string, key *signature.PublicKey) (*Statement, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxStatement+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxStatement {
		return nil, fmt.Errorf("%s: it is too large for a statement", file)
	}
	s, err := provenance.Unmarshal(data)
	if err == nil {
		err = s.Check()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if !slices.ContainsFunc(s.Subject, func(s provenance.Subject) bool { return s.Name == described }) {
		return nil, fmt.Errorf("%s: it is about a part of a release: name the %s beside the release.json", file, provenance.File)
	}
	if key != nil {
		err := signed(filepath.Join(filepath.Dir(file), Attestation), data, *key)
		if err != nil {
			return nil, fmt.Errorf("%s is not to be trusted: %w", file, err)
		}
	}
	return &Statement{s, data}, nil
}

// Attestation is the file with the signed statement, in the folder of a release.
const Attestation = release.Attestations + "/provenance" + release.BundleSuffix

// signed returns an error if a bundle does not hold a statement that a key has signed.
func signed(file string, statement []byte, key signature.PublicKey) error {
	if info, err := os.Stat(file); err != nil {
		return err
	} else if info.Size() > signature.MaxBundle {
		return fmt.Errorf("%s: it is too large for a bundle", file)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	b, err := signature.Unmarshal(data)
	if err == nil {
		err = b.Verify(key, statement)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// described is the subject that only a statement about a whole release has.
const described = release.File

// A Tree is what a release is made of again.
type Tree struct {
	Statement *Statement
	Dir       string
	Offline   bool // everything that is needed is in the tree
}

// Problems are what is wrong with the tree or its inputs.
type Problems []string

func (p Problems) Error() string {
	return "the release cannot be made again of this:\n  " + strings.Join(p, "\n  ")
}

// Prepare unpacks the tree of a release into dir, from a kubernetes-inputs.tar or else from the tarball of the sources, and checks what it
// would be made of. A tree that is there already is used, if it is of this statement. The error is of type Problems if inputs are wrong.
func Prepare(ctx context.Context, s *Statement, dir, inputs, sources string) (*Tree, error) {
	from := cmp.Or(inputs, sources)
	t := &Tree{Statement: s, Dir: filepath.Join(dir, "tree"), Offline: inputs != ""}
	mark, begun := filepath.Join(dir, "of"), filepath.Join(dir, "unpacking")
	sum, err := sumOf(from)
	if err != nil {
		return nil, err
	}
	if inputs == "" {
		if problem := s.source(sum, sources); problem != "" {
			return nil, Problems{problem}
		}
	}
	of := fmt.Sprintf("%x %s\n", sha256.Sum256(s.Content), sum)
	switch known, err := os.ReadFile(mark); {
	case err == nil && string(known) == of:
		return t, t.check(ctx)
	case err == nil:
		return nil, fmt.Errorf("%s has what another rebuild made: name another folder, or remove it", dir)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	// Nothing is removed but what an interrupted rebuild has left.
	if _, err := os.Stat(begun); errors.Is(err, fs.ErrNotExist) {
		if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
			return nil, fmt.Errorf("%s is not empty: name another folder", dir)
		}
	}
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(begun, nil, 0o644), os.RemoveAll(t.Dir), os.Mkdir(t.Dir, 0o755)); err != nil {
		return nil, err
	}
	if inputs != "" {
		if _, err := input.Check(ctx, inputs); err != nil {
			return nil, problemsOf(inputs, err)
		}
	}
	if err := unpack.Unpack(ctx, from, t.Dir, func(string) bool { return true }); err != nil {
		return nil, err
	}
	if err := errors.Join(atomicfile.WriteFile(mark, []byte(of), 0o644), os.Remove(begun)); err != nil {
		return nil, err
	}
	return t, t.check(ctx)
}

// problemsOf lists the members of a bundle that are not as it says itself.
func problemsOf(file string, err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	var p Problems
	for line := range strings.Lines(err.Error()) {
		p = append(p, filepath.Base(file)+": "+strings.TrimSpace(line))
	}
	return p
}

// source returns what is wrong with the tarball of the sources.
func (s *Statement) source(sum, file string) string {
	for _, r := range s.Predicate.Definition.Dependencies {
		if r.Name == catalog.SourceTarball {
			if want := r.Digest["sha256"]; sum != want {
				return fmt.Sprintf("%s is another one: its SHA-256 is %s, want %s", file, sum, want)
			}
			return ""
		}
	}
	return "the provenance names no " + catalog.SourceTarball
}

func sumOf(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// A checker compares a tree with a statement.
type checker struct {
	*Tree
	problems Problems
}

func (c *checker) problem(format string, args ...any) {
	c.problems = append(c.problems, fmt.Sprintf(format, args...))
}

// check names everything that the release was made of and that the tree has not, or has otherwise.
func (t *Tree) check(ctx context.Context) error {
	c := &checker{Tree: t}
	if err := errors.Join(c.version(), c.patches(), c.inputs(ctx)); err != nil {
		return err
	}
	if len(c.problems) > 0 {
		return c.problems
	}
	return nil
}

func (c *checker) parameters() provenance.Parameters {
	return c.Statement.Predicate.Definition.Parameters
}

func (c *checker) version() error {
	data, err := os.ReadFile(filepath.Join(c.Dir, "version"))
	if err != nil {
		return err
	}
	v, err := stamp.Unmarshal(data)
	if err != nil {
		return fmt.Errorf("the tree's version: %w", err)
	}
	p := c.parameters()
	if v.Version != p.Version {
		c.problem("the tree is of version %s, and the release of %s", v.Version, p.Version)
	}
	if v.Commit != p.Commit {
		c.problem("the tree is of commit %s, and the release of %s", v.Commit, p.Commit)
	}
	return nil
}

// of returns the resources of a kind, by their names.
func (c *checker) of(is func(provenance.Resource) bool) map[string]provenance.Resource {
	found := map[string]provenance.Resource{}
	for _, r := range c.Statement.Predicate.Definition.Dependencies {
		if is(r) {
			found[r.Name] = r
		}
	}
	return found
}

// patches compares the tree's patches with those that the release has.
func (c *checker) patches() error {
	stated := c.of(func(r provenance.Resource) bool {
		return r.URI == "" && r.Name != catalog.SourceTarball && r.Digest["gitCommit"] == "" && strings.HasSuffix(r.Name, patch.Suffix)
	})
	for _, name := range slices.Sorted(maps.Keys(stated)) {
		if !filepath.IsLocal(filepath.FromSlash(name)) {
			c.problem("the patch %s is outside of the tree", name)
			continue
		}
		switch sum, err := sumOf(filepath.Join(c.Dir, filepath.FromSlash(name))); {
		case errors.Is(err, fs.ErrNotExist):
			c.problem("the patch %s is missing", name)
		case err != nil:
			return err
		case sum != stated[name].Digest["sha256"]:
			c.problem("the patch %s is another one: its SHA-256 is %s, want %s", name, sum, stated[name].Digest["sha256"])
		}
	}
	for _, pattern := range []string{patch.Folder, "images/*/" + patch.Folder} {
		files, err := filepath.Glob(filepath.Join(c.Dir, filepath.FromSlash(pattern), "*"+patch.Suffix))
		if err != nil {
			return err
		}
		for _, file := range files {
			rel, err := filepath.Rel(c.Dir, file)
			if err != nil {
				return err
			}
			if name := filepath.ToSlash(rel); stated[name].Name == "" {
				c.problem("the release was made without the patch %s", name)
			}
		}
	}
	return nil
}

// A pin is what the tree says of a module or package.
type pin struct{ digest, file string }

// inputs compares what the tree pins, and with a bundle what it has, with what the release was made of.
func (c *checker) inputs(ctx context.Context) error {
	cat, err := catalog.Load(c.Dir)
	if err != nil {
		return err
	}
	list, err := c.list(cat)
	if err != nil {
		return err
	}
	pins := map[string]pin{} // of Debian packages by SHA-256, others as module@version
	for _, m := range list.Modules {
		at, err := m.ProxyPath()
		if err != nil {
			return err
		}
		pins[m.Path+"@"+m.Version.Version] = pin{m.Sum, filepath.Join(filepath.FromSlash(input.Modules), filepath.FromSlash(at)+".zip")}
	}
	for _, lock := range list.Debian {
		for _, p := range lock.Packages {
			pins[p.SHA256] = pin{p.SHA256, filepath.Join(filepath.FromSlash(input.Debian), p.FileName())}
		}
	}
	for _, r := range c.Statement.Predicate.Definition.Dependencies {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := c.resource(r, cat, pins); err != nil {
			return err
		}
	}
	if !c.Offline {
		return nil
	}
	files, err := list.Files()
	if err != nil {
		return err
	}
	for _, name := range files {
		if _, err := os.Stat(filepath.Join(c.Dir, filepath.FromSlash(name))); err != nil {
			c.problem("%s is missing", name)
		}
	}
	return c.host(cat)
}

// list returns what the tree says that a release of the statement's platforms is made of, without toolchains.
func (c *checker) list(cat *catalog.Catalog) (*input.List, error) {
	var names, locks, goarchs []string
	err := filepath.WalkDir(c.Dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(c.Dir, file)
		if err != nil {
			return err
		}
		switch rel = filepath.ToSlash(rel); {
		case d.IsDir() && (rel == input.Dir || rel == "_output"):
			return fs.SkipDir
		case !d.IsDir():
			names = append(names, rel)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, im := range cat.Images {
		folder := "images/" + im.Base
		if slices.Contains(names, folder+"/debian.lock") && !slices.Contains(locks, folder) {
			locks = append(locks, folder)
		}
	}
	for _, p := range c.parameters().Platforms {
		if goos, arch, _ := strings.Cut(p, "/"); goos == "linux" {
			goarchs = append(goarchs, arch)
		}
	}
	return input.Read(c.Dir, input.ModuleFolders(names), nil, locks, goarchs)
}

// resource compares a resource of the statement with the tree's pins, and with a bundle with the bytes in it.
func (c *checker) resource(r provenance.Resource, cat *catalog.Catalog, pins map[string]pin) error {
	if r.URI == "" {
		return nil // sources and patches
	}
	kind, version, err := release.ParsePURL(r.URI)
	if err != nil {
		c.problem("the provenance names %v", err)
		return nil
	}
	switch kind {
	case release.Debian:
		known, ok := pins[r.Digest["sha256"]]
		if !ok {
			c.problem("the tree has no package %s %s with the SHA-256 %s", r.Name, version, r.Digest["sha256"])
		} else if c.Offline {
			c.sameFile(fmt.Sprintf("package %s %s", r.Name, version), known)
		}
		return nil
	case release.Toolchain:
		what := r.Name + "@" + version
		_, host, _ := strings.Cut(strings.TrimPrefix(version, "v0.0.1-"+cat.Go.Version), ".")
		switch sum := cat.Go.Sums[host]; {
		case sum == "":
			c.problem("the release was compiled by %s, and the tree pins %s", what, cat.Go.Version)
		case hexOf(sum) != r.Digest["dirHash"]:
			c.problem("the toolchain %s is another one in the tree: its sum is %s", what, sum)
		}
		return nil
	}
	if len(r.Digest) == 0 { // a folder of the tree
		return nil
	}
	what := r.Name + "@" + version
	base, patched := module.Unpatched(version)
	known, ok := pins[r.Name+"@"+base]
	switch {
	case !ok:
		c.problem("the tree has no module %s@%s", r.Name, base)
	case !patched && hexOf(known.digest) != r.Digest["dirHash"]:
		c.problem("the module %s is another one in the tree: its sum is %s", what, known.digest)
	case c.Offline:
		c.sameModule(module.Version{Path: r.Name, Version: base}, known)
	}
	return nil
}

// sameModule compares the zip of a module in a bundle with the tree's pin.
func (c *checker) sameModule(m module.Version, known pin) {
	sum, err := dirhash.HashZip(filepath.Join(c.Dir, known.file), dirhash.Hash1)
	switch {
	case errors.Is(err, fs.ErrNotExist): // named as missing
	case err != nil:
		c.problem("the module %s cannot be read: %v", m, err)
	case sum != known.digest:
		c.problem("the module %s in %s is another one: its sum is %s, want %s", m, input.Modules, sum, known.digest)
	}
}

// sameFile compares a file of a bundle with the tree's pin.
func (c *checker) sameFile(what string, known pin) {
	sum, err := sumOf(filepath.Join(c.Dir, known.file))
	switch {
	case errors.Is(err, fs.ErrNotExist): // named as missing
	case err != nil:
		c.problem("the %s cannot be read: %v", what, err)
	case sum != known.digest:
		c.problem("the %s in %s is another one: its SHA-256 is %s, want %s", what, input.Debian, sum, known.digest)
	}
}

// host checks that a Go for this machine is there, if the one that is installed is another than the pinned one.
func (c *checker) host(cat *catalog.Catalog) error {
	host := runtime.GOOS + "-" + runtime.GOARCH
	escaped, err := gomod.EscapeVersion("v0.0.1-" + cat.Go.Version + "." + host)
	if err != nil {
		return err
	}
	file := filepath.Join(c.Dir, filepath.FromSlash(input.Modules), filepath.FromSlash(release.ToolchainModule), "@v", escaped+".zip")
	sum, err := dirhash.HashZip(file, dirhash.Hash1)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if runtime.Version() != cat.Go.Version {
			installed, err := goVersion(c.Dir)
			if err != nil || installed != cat.Go.Version {
				c.problem("%s for %s is missing: the bundle has none, and %s is installed", cat.Go.Version, host, cmp.Or(installed, "no Go"))
			}
		}
	case err != nil:
		c.problem("the toolchain %s cannot be read: %v", file, err)
	case sum != cat.Go.Sums[host]:
		c.problem("the toolchain %s for %s in %s is another one: its sum is %s, want %s", cat.Go.Version, host, input.Modules, sum, cat.Go.Sums[host])
	}
	return nil
}

// hexOf returns a sum of go.sum as statements have it.
func hexOf(sum string) string {
	hash, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(sum, "h1:"))
	if err != nil {
		return ""
	}
	return hex.EncodeToString(hash)
}
