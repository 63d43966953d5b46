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
	"slices"
	"strings"
	"time"

	"slipway.build/pkg/mechanism/atomicfile"
	"slipway.build/pkg/mechanism/checksum"
	"slipway.build/pkg/mechanism/debian"
	"slipway.build/pkg/mechanism/signature"
	"slipway.build/pkg/mechanism/unpack"
	"slipway.build/pkg/release"
	"slipway.build/pkg/release/provenance"
	"slipway.build/pkg/tree/catalog"
	"slipway.build/pkg/tree/input"
	"slipway.build/pkg/tree/module"
	"slipway.build/pkg/tree/patch"
	"slipway.build/pkg/tree/self"
	"slipway.build/pkg/tree/stamp"
)

// maxStatement is the size, in bytes, of the largest statement that is read.
const maxStatement = 32 << 20

// A Statement says how a release was made.
type Statement struct {
	*provenance.Statement
	Content []byte // as its file in a release has it
	Folder  string // of the release, if the file is in one
}

// Open reads the statement about a whole release from a file: the statement, or the bundle that holds it. The error says so if nobody could
// trust it, whoever signed it. With a key, the statement must be signed by it, in the bundle or in the folder of attestations beside the
// file.
func Open(file string, key *signature.PublicKey) (*Statement, error) {
	data, err := readSmall(file)
	if err != nil {
		return nil, err
	}
	s := &Statement{Content: data, Folder: filepath.Dir(file)}
	bundle := filepath.Join(s.Folder, filepath.FromSlash(Attestation))
	if b, err := signature.Unmarshal(data); err == nil {
		s.Content, bundle = b.Statement(), file
		if filepath.Base(s.Folder) == release.Attestations {
			s.Folder = filepath.Dir(s.Folder)
		}
	}
	if s.Statement, err = provenance.Unmarshal(s.Content); err == nil {
		err = s.Check()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if !slices.ContainsFunc(s.Subject, func(s provenance.Subject) bool { return s.Name == described }) {
		return nil, fmt.Errorf("%s: it is about a part of a release: name the %s beside the release.json", file, provenance.File)
	}
	if key != nil {
		if err := signed(bundle, s.Content, *key); err != nil {
			return nil, fmt.Errorf("%s is not to be trusted: %w", file, err)
		}
	}
	return s, nil
}

// readSmall reads a statement or a bundle.
func readSmall(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxStatement+1))
	if err == nil && len(data) > maxStatement {
		err = fmt.Errorf("%s: it is too large for a statement", file)
	}
	return data, err
}

// Attestation is the file with the signed statement, in the folder of a release.
const Attestation = release.Attestations + "/provenance" + release.BundleSuffix

// signed returns an error if a bundle does not hold a statement that a key has signed.
func signed(file string, statement []byte, key signature.PublicKey) error {
	data, err := readSmall(file)
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

	sources string // the tarball of the sources, if it is there
}

// Problems are what is wrong with the tree or its inputs.
type Problems []string

func (p Problems) Error() string {
	return "the release cannot be made again of this:\n  " + strings.Join(p, "\n  ")
}

// Prepare unpacks the tree of a release into dir, from a kubernetes-inputs.tar or else from the tarball of the sources, and checks what it
// would be made of. A tree that is there already is used, if it is of this statement. Beside inputs, the tarball of the sources need not
// exist. The error is of type Problems if something is wrong with what the release would be made of.
func Prepare(ctx context.Context, s *Statement, dir, inputs, sources string) (*Tree, error) {
	t := &Tree{Statement: s, Dir: filepath.Join(dir, "tree"), Offline: inputs != ""}
	problem, err := s.sources(sources)
	switch {
	case errors.Is(err, fs.ErrNotExist) && t.Offline:
	case err != nil:
		return nil, err
	case problem != "":
		return nil, Problems{problem}
	default:
		t.sources = sources
	}
	from := cmp.Or(inputs, sources)
	sum, err := checksum.File(from)
	if err != nil {
		return nil, err
	}
	of := fmt.Sprintf("%x %s\n", sha256.Sum256(s.Content), sum)
	switch known, err := os.ReadFile(filepath.Join(dir, mark)); {
	case err == nil && string(known) == of:
		return t, t.check(ctx)
	case err == nil:
		return nil, fmt.Errorf("%s has what another rebuild made: name another folder, or remove it", dir)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	if err := t.unpack(ctx, dir, from); err != nil {
		return nil, err
	}
	if err := t.check(ctx); err != nil {
		return nil, errors.Join(err, os.RemoveAll(t.Dir))
	}
	return t, errors.Join(atomicfile.WriteFile(filepath.Join(dir, mark), []byte(of), 0o644), os.Remove(filepath.Join(dir, begun)))
}

// Files beside the tree.
const (
	mark  = "of"        // says of what it was unpacked, once that is done
	begun = "unpacking" // is there before that
)

// unpack makes the tree. It removes nothing but what an interrupted rebuild has left.
func (t *Tree) unpack(ctx context.Context, dir, from string) error {
	if _, err := os.Stat(filepath.Join(dir, begun)); errors.Is(err, fs.ErrNotExist) {
		if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
			return fmt.Errorf("%s is not empty: name another folder", dir)
		}
	}
	if t.Offline {
		if _, err := input.Check(ctx, from); err != nil {
			return problemsOf(from, err)
		}
	}
	err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, begun), nil, 0o644), os.RemoveAll(t.Dir),
		os.Mkdir(t.Dir, 0o755))
	if err != nil {
		return err
	}
	if err := unpack.Unpack(ctx, from, t.Dir, func(string) bool { return true }); err != nil {
		return err
	}
	problems, err := t.strangers(ctx)
	if err == nil && len(problems) > 0 {
		err = errors.Join(problems, os.RemoveAll(t.Dir))
	}
	return err
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

// A checker compares a tree with a statement.
type checker struct {
	*Tree
	stamp    stamp.Stamp // of the tree
	files    []string    // of the tree, slash-separated
	problems Problems
}

func (c *checker) problem(format string, args ...any) {
	c.problems = append(c.problems, fmt.Sprintf(format, args...))
}

// check names everything that the release was made of and that the tree has not, or has otherwise.
func (t *Tree) check(ctx context.Context) error {
	c := &checker{Tree: t}
	if err := errors.Join(c.version(), c.sameSources(ctx), c.patches()); err != nil {
		return err
	}
	err := c.inputs(ctx)
	if len(c.problems) > 0 {
		if err != nil && ctx.Err() == nil { // other sources may not even say what they need
			c.problem("%v", err)
		}
		return c.problems
	}
	return err
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
	for _, of := range []struct{ what, tree, release string }{
		{"version", v.Version, p.Version}, {"commit", v.Commit, p.Commit}, {"state", v.TreeState, p.TreeState},
		{"time", v.Date.UTC().Format(time.RFC3339), p.Date},
	} {
		if of.tree != of.release {
			c.problem("the %s is %s in the tree, and %s in the release", of.what, of.tree, of.release)
		}
	}
	c.stamp = v
	return nil
}

// patches compares the tree's patches with those that the release has.
func (c *checker) patches() error {
	stated := map[string]string{} // SHA-256 by name
	for _, r := range c.Statement.Predicate.Definition.Dependencies {
		if r.URI == "" && r.Digest["gitCommit"] == "" && strings.HasSuffix(r.Name, patch.Suffix) {
			stated[r.Name] = r.Digest["sha256"]
		}
	}
	for _, name := range slices.Sorted(maps.Keys(stated)) {
		if !filepath.IsLocal(filepath.FromSlash(name)) {
			c.problem("the patch %s is outside of the tree", name)
			continue
		}
		switch sum, err := checksum.File(filepath.Join(c.Dir, filepath.FromSlash(name))); {
		case errors.Is(err, fs.ErrNotExist):
			c.problem("the patch %s is missing", name)
		case err != nil:
			return err
		case sum != stated[name]:
			c.problem("the patch %s differs: its SHA-256 is %s, want %s", name, sum, stated[name])
		}
	}
	tree := os.DirFS(c.Dir)
	for _, pattern := range []string{patch.Folder, "images/*/" + patch.Folder} {
		folders, err := fs.Glob(tree, pattern)
		if err != nil {
			return err
		}
		for _, folder := range folders {
			if err := fs.WalkDir(tree, folder, func(name string, e fs.DirEntry, err error) error {
				if _, ok := stated[name]; err == nil && !e.IsDir() && patch.Is(e.Name()) && !ok {
					c.problem("the release was made without the patch %s", name)
				}
				return err
			}); err != nil {
				return err
			}
		}
	}
	return nil
}

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
	pins := map[string]string{} // digests of Debian packages, and sums by module@version
	for _, m := range list.Modules {
		pins[m.String()] = m.Sum
	}
	for _, lock := range list.Debian {
		for _, p := range lock.Packages {
			pins[p.SHA256] = p.SHA256
		}
	}
	slipway, err := c.slipway()
	if err != nil {
		return err
	}
	for _, r := range c.Statement.Predicate.Definition.Dependencies {
		if r.Name == self.Module || r.Name == slipway.Path {
			c.madeBy(r, slipway)
		}
		c.resource(r, cat, pins)
	}
	if !c.Offline {
		return nil
	}
	return errors.Join(c.bundle(ctx, list), c.toolchains(ctx, cat))
}

// list returns what the tree says that a release of the statement's platforms is made of, without toolchains.
func (c *checker) list(cat *catalog.Catalog) (*input.List, error) {
	var locks, goarchs []string
	for _, im := range cat.Images {
		folder := "images/" + im.Base
		if slices.Contains(c.files, folder+"/"+debian.LockFile) && !slices.Contains(locks, folder) {
			locks = append(locks, folder)
		}
	}
	for _, p := range c.parameters().Platforms {
		if goos, arch, _ := strings.Cut(p, "/"); goos == "linux" {
			goarchs = append(goarchs, arch)
		}
	}
	return input.Read(c.Dir, input.ModuleFolders(c.files), nil, locks, goarchs)
}

// slipway returns the slipway that the tree's make compiles, if it has that from a module.
func (c *checker) slipway() (module.Version, error) {
	m, err := module.Load(c.Dir, ".")
	if errors.Is(err, fs.ErrNotExist) {
		return module.Version{}, nil
	}
	if err != nil {
		return module.Version{}, err
	}
	r, _ := m.Require(self.Module)
	return r.Code(), nil
}

// madeBy compares the slipway that made the release with that of the tree, which would make it again.
func (c *checker) madeBy(r provenance.Resource, slipway module.Version) {
	made, ours := fmt.Sprintf("a %s of the commit %s", r.Name, cmp.Or(r.Digest["gitCommit"], "that nobody knows")), slipway.String()
	if r.URI != "" {
		_, version, _ := release.ParsePURL(r.URI) // resource says what is wrong
		made = module.Version{Path: r.Name, Version: version}.String()
	}
	switch {
	case r.URI == "" && r.Digest["gitCommit"] == c.parameters().Commit: // the tree's own files, which are compared
	case made != ours:
		c.problem("the release was made by %s, and the tree's make compiles %s", made, cmp.Or(ours, "the one in the tree"))
	}
}

// resource compares a resource of the statement with the tree's pins.
func (c *checker) resource(r provenance.Resource, cat *catalog.Catalog, pins map[string]string) {
	if r.URI == "" {
		return // sources and patches
	}
	kind, version, err := release.ParsePURL(r.URI)
	if err != nil {
		c.problem("the provenance names %v", err)
		return
	}
	what := r.Name + "@" + version
	switch kind {
	case release.Debian:
		if sum := r.Digest["sha256"]; pins[sum] == "" {
			c.problem("the tree has no package %s %s with the SHA-256 %s", r.Name, version, sum)
		}
		return
	case release.Toolchain:
		_, host, _ := strings.Cut(strings.TrimPrefix(version, "v0.0.1-"+cat.Go.Version), ".")
		switch sum := cat.Go.Sums[host]; {
		case sum == "":
			c.problem("the release was compiled by %s, and the tree pins %s", what, cat.Go.Version)
		case hexOf(sum) != r.Digest["dirHash"]:
			c.problem("the toolchain %s differs in the tree: its sum is %s", what, sum)
		}
		return
	}
	if len(r.Digest) == 0 { // a folder of the tree
		return
	}
	if r.Name == module.FIPS { // it is in the toolchain, which has a sum
		if short, _, _ := strings.Cut(version, "-"); cat.Go.FIPS != version && cat.Go.FIPS != short {
			c.problem("programs have %s, and the tree selects %s", what, cmp.Or(cat.Go.FIPS, "none"))
		}
		return
	}
	base, patched := module.Unpatched(version)
	switch sum, ok := pins[r.Name+"@"+base]; {
	case !ok && r.Name == self.Module: // see madeBy
	case !ok:
		c.problem("the tree has no module %s@%s", r.Name, base)
	case !patched && hexOf(sum) != r.Digest["dirHash"]:
		c.problem("the module %s differs in the tree: its sum is %s", what, sum)
	}
}

// hexOf returns a sum of go.sum as statements have it.
func hexOf(sum string) string {
	hash, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(sum, "h1:"))
	if err != nil {
		return ""
	}
	return hex.EncodeToString(hash)
}
