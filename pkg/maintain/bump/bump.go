package bump

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	goversion "go/version"

	"golang.org/x/mod/modfile"

	"slipway.build/pkg/make/toolchain"
	"slipway.build/pkg/mechanism/atomicfile"
	"slipway.build/pkg/mechanism/debian"
	"slipway.build/pkg/mechanism/journal"
	"slipway.build/pkg/tree/catalog"
	"slipway.build/pkg/tree/module"
	"slipway.build/pkg/tree/source"
	"slipway.build/pkg/tree/worktree"
)

// Folders for what is prepared, relative to the tree's folder for state. They are on the tree's file system.
const (
	copyFolder    = "bump/tree"
	journalFolder = "bump/journal"
)

// Options choose what Prepare does.
type Options struct {
	Root  string // of the tree
	State string // the tree's folder for state, relative to Root

	// Targets say what moves where: "" or nothing for Kubernetes' newest patch, a version of Kubernetes, the name of something else
	// (see Names), or NAME@VERSION.
	Targets []string

	Force   bool         // also in a tree with changes that are not committed
	DB      string       // of Go's vulnerabilities, for Outdated; empty if nobody asks
	LocksBy string       // the command that debian.lock files name as theirs
	Say     func(string) // prints a line of progress

	Debian debian.Sources      // of Debian packages
	Getenv func(string) string // of the environment in which git is found
}

// A Move is a version that changes.
type Move struct {
	What string `json:"what"`
	From string `json:"from"`
	To   string `json:"to"`
	Why  string `json:"why,omitempty"` // it follows something else
}

// A Report says what a bump changes.
type Report struct {
	Moves   []Move   `json:"moves"`
	Patches []Patch  `json:"patches,omitempty"` // the tree's own
	Notes   []string `json:"notes"`             // what a maintainer should know, such as what is not available
	Files   []string `json:"files"`             // that are written or removed, sorted
}

// A Bump is a tree of other versions, whole and checked, which waits beside the tree.
type Bump struct {
	Report
	options Options
	changes []journal.Change
}

// Apply puts the files of a bump into the tree, all or none.
func (b *Bump) Apply() error {
	if len(b.changes) == 0 {
		return nil
	}
	err := journal.Apply(b.options.Root, path.Join(b.options.State, journalFolder), b.Title(), b.changes)
	var edited *journal.EditedError
	if errors.As(err, &edited) {
		return fmt.Errorf("%s was edited while the bump was prepared, and nothing was changed: run the same command again", edited.Name)
	}
	return err
}

// Title says in a few words what the bump is: "Kubernetes v1.36.4".
func (b *Bump) Title() string {
	if len(b.Moves) == 0 {
		return "nothing"
	}
	return b.Moves[0].What + " " + b.Moves[0].To
}

// Pending reports whether a bump of the tree at root was killed while it put files in place.
func Pending(root, state string) bool { return journal.Pending(root, path.Join(state, journalFolder)) }

// Recover finishes such a bump, or undoes it. It returns what the bump was, and whether it is undone.
func Recover(root, state string) (title string, undone bool, err error) {
	return journal.Recover(root, path.Join(state, journalFolder))
}

// preparation is the work on a copy of the tree.
type preparation struct {
	Options
	Report
	copy    string            // the copy's root
	files   []string          // of the tree that was copied
	sums    map[string]string // of their contents, by name, without links
	catalog *catalog.Catalog  // of the tree
	draft   *catalog.Draft    // of the copy's release.yaml
	go_     *toolchain.Go     // that runs here
	proxy   *proxy
	target  string            // the Go that will compile
	stale   map[string]wanted // modules whose go.sum is to be made again, by folder, with what they must end in
	before  map[string]wanted // what upstream's versions in the tree ask of a go.mod, by folder
	leftOut []string          // folders of projects that the new tree does not have
	docs    map[string]string // texts that documents have, and what they are to be

	was, now selection // of the components, if Kubernetes moves
}

// Prepare makes a tree of other versions beside the tree. Nothing in the tree changes until Apply.
func Prepare(ctx context.Context, o Options) (*Bump, error) {
	p := &preparation{Options: o, sums: map[string]string{}, stale: map[string]wanted{}, before: map[string]wanted{},
		docs: map[string]string{},
		copy: filepath.Join(o.Root, filepath.FromSlash(o.State), filepath.FromSlash(copyFolder))}
	if p.Say == nil {
		p.Say = func(string) {}
	}
	var err error
	if p.catalog, err = catalog.Load(o.Root); err != nil {
		return nil, err
	}
	steps, err := p.parse(o.Targets)
	if err != nil {
		return nil, err
	}
	own := p.catalog.Own()
	if p.go_, err = toolchain.Find(ctx, toolchain.Pin{Version: own.Version, Sums: own.Sums}, p.Say); err != nil {
		return nil, err
	}
	if p.proxy, err = newProxy(p.go_); err != nil {
		return nil, err
	}
	defer p.proxy.close()
	p.target = p.catalog.Go.Version
	defer func() { _ = os.RemoveAll(p.copy) }() // a killed one is removed by the next
	if err := p.copyTree(ctx); err != nil {
		return nil, err
	}
	if p.draft, err = catalog.ReadDraft(p.copy); err != nil {
		return nil, err
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	if err := p.finish(ctx); err != nil {
		return nil, err
	}
	b := &Bump{Report: p.Report, options: o}
	if b.changes, err = p.changes(ctx); err != nil {
		return nil, err
	}
	for _, c := range b.changes {
		b.Files = append(b.Files, c.Name)
	}
	return b, nil
}

// move records that something moves, unless it does not.
func (p *preparation) move(what, from, to, why string) {
	if from != to {
		p.Moves = append(p.Moves, Move{what, from, to, why})
	}
}

func (p *preparation) note(format string, args ...any) {
	p.Notes = append(p.Notes, fmt.Sprintf(format, args...))
}

// A DirtyError says that a tree has changes that are not committed, so that a bump could not be told from them.
type DirtyError struct {
	Files []string // that git status names
	Why   string   // it is not the commit, if git status names none
}

func (e *DirtyError) Error() string {
	switch {
	case len(e.Files) > 0:
	case e.Why != "":
		return "the tree has what git status does not show: " + e.Why
	default:
		return "the tree is not in git, so nothing could bring it back"
	}
	more := ""
	if len(e.Files) > 3 {
		more = fmt.Sprintf(" and %d others", len(e.Files)-3)
	}
	return "the tree has changes that are not committed: " + strings.Join(e.Files[:min(3, len(e.Files))], ", ") + more
}

// copyTree copies the sources. A tree with changes that are not committed is refused without Force.
func (p *preparation) copyTree(ctx context.Context) error {
	tree, err := source.Find(ctx, p.Root, worktree.Once(p.Root, p.Getenv))
	if err != nil {
		return err
	}
	if tree.ID == "" && !p.Force {
		return dirty(ctx, p.Root, p.Getenv, tree.Why)
	}
	p.files = tree.Names()
	if err := os.RemoveAll(p.copy); err != nil {
		return err
	}
	for _, name := range p.files {
		from, to := filepath.Join(p.Root, filepath.FromSlash(name)), filepath.Join(p.copy, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
			return err
		}
		info, err := os.Lstat(from)
		if err != nil {
			return err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			p.sums[name], err = copySum(from, to)
		} else if link, readErr := os.Readlink(from); readErr == nil {
			err = os.Symlink(link, to)
		} else {
			err = readErr
		}
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// copySum copies a file, and returns the sum of the copy.
func copySum(from, to string) (string, error) {
	if err := atomicfile.Copy(from, to); err != nil {
		return "", err
	}
	data, err := os.ReadFile(to)
	return journal.Sum(data), err
}

// dirty returns the error for a tree that is not a commit, and why not.
func dirty(ctx context.Context, root string, env func(string) string, why string) error {
	repo, err := worktree.Open(root, env)
	if errors.Is(err, worktree.ErrNone) {
		return &DirtyError{}
	}
	if err != nil {
		return err
	}
	out, err := repo.Run(ctx, nil, "status", "--porcelain", "-z", "--no-renames", "--untracked-files=normal", "--ignore-submodules=none")
	if err != nil {
		return err
	}
	e := &DirtyError{Why: why}
	for line := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if len(line) > 3 {
			e.Files = append(e.Files, line[3:])
		}
	}
	return e
}

// read returns a file of the copy.
func (p *preparation) read(name string) ([]byte, error) {
	return os.ReadFile(filepath.Join(p.copy, filepath.FromSlash(name)))
}

// write writes a file of the copy, which keeps its permissions.
func (p *preparation) write(name string, data []byte) error {
	name = filepath.Join(p.copy, filepath.FromSlash(name))
	perm := fs.FileMode(0o644)
	if info, err := os.Stat(name); err == nil {
		perm = info.Mode().Perm()
	}
	return atomicfile.WriteFile(name, data, perm)
}

// require rewrites the go.mod in a folder.
func (p *preparation) require(folder string, want wanted) error {
	name := path.Join(folder, "go.mod")
	data, err := p.read(name)
	if err != nil {
		return err
	}
	if data, err = rewrite(name, data, want); err != nil {
		return err
	}
	p.stale[folder] = want
	return p.write(name, data)
}

// finish makes what follows from the rest: go.sum files, generated files, texts in documents.
func (p *preparation) finish(ctx context.Context) error {
	for _, folder := range p.leftOut {
		if err := p.draft.DropProject(folder); err != nil {
			return err
		}
	}
	if err := p.write(catalog.File, p.draft.Bytes()); err != nil {
		return err
	}
	for _, folder := range slices.Sorted(maps.Keys(p.stale)) {
		p.Say("go mod tidy in " + folder)
		if err := p.tidy(ctx, folder); err != nil {
			return fmt.Errorf("%s: %w", folder, err)
		}
		if err := p.compare(folder, p.stale[folder]); err != nil {
			return err
		}
	}
	if err := p.writeDocs(); err != nil {
		return err
	}
	changes, err := p.changes(ctx)
	if err != nil || len(changes) == 0 {
		return err
	}
	if err := p.checkPatches(ctx); err != nil {
		return err
	}
	if err := p.withoutConflicts(func() error { return p.generate(ctx) }); err != nil {
		return err
	}
	_, err = catalog.Load(p.copy)
	return err
}

// tidy makes the rest of a go.mod, and go.sum. The Go must know the language that the file asks for.
func (p *preparation) tidy(ctx context.Context, folder string) error {
	dir := filepath.Join(p.copy, filepath.FromSlash(folder))
	name := filepath.Join(dir, "go.mod")
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	f, err := modfile.Parse(name, data, nil)
	if err != nil {
		return err
	}
	if f.Go != nil && goversion.Compare("go"+f.Go.Version, p.go_.Version) > 0 {
		return fmt.Errorf("its go.mod asks for Go %s, and %s is here", f.Go.Version, p.go_.Version)
	}
	if _, err = runner(p.go_)(ctx, dir, "mod", "tidy"); err == nil {
		return nil
	}
	if patched, _ := p.patched(folder); patched {
		err = fmt.Errorf("%w\n%s has patches, of which go mod tidy knows nothing; if they change imports, move it by hand: "+
			"docs/bump.md#a-project-with-patches", err, folder)
	}
	return err
}

// compare notes each version that tidy selected in place of upstream's. The go line, and the modules that the bump is about, must be
// what they should be.
func (p *preparation) compare(folder string, want wanted) error {
	m, err := module.Load(p.copy, folder)
	if err != nil {
		return err
	}
	if want.Go != "" && m.Go != want.Go {
		return fmt.Errorf("%s/go.mod asks for Go %s after go mod tidy, and upstream for %s: another requirement raises it", folder, m.Go, want.Go)
	}
	var others []string
	for _, r := range m.Requires {
		wanted := want.Versions[r.Path]
		if wanted == "" || wanted == r.Version || r.Replace != (module.Version{}) {
			continue
		}
		if slices.Contains(want.Own, r.Path) {
			return fmt.Errorf("%s: go mod tidy selects %s %s instead of %s: another requirement raises it", folder, r.Path, r.Version, wanted)
		}
		others = append(others, fmt.Sprintf("%s %s, upstream has %s", r.Path, r.Version, wanted))
	}
	if before, ok := p.before[folder]; ok {
		old, err := module.Load(p.Root, folder)
		if err != nil {
			return err
		}
		p.Moves = append(p.Moves, dropped(old, m, before, want)...)
	}
	if len(others) > 0 {
		p.note("%s has other versions than upstream: %s", folder, strings.Join(others, "; "))
	}
	return nil
}

// changes compares the copy with what was copied.
func (p *preparation) changes(ctx context.Context) ([]journal.Change, error) {
	made, err := source.Find(ctx, p.copy, worktree.Once(p.copy, p.Getenv))
	if err != nil {
		return nil, err
	}
	names := made.Names()
	var changes []journal.Change
	for _, name := range p.files {
		if !slices.Contains(names, name) {
			changes = append(changes, journal.Change{Name: name, Remove: true, From: p.sums[name]})
		}
	}
	for _, name := range names {
		file := filepath.Join(p.copy, filepath.FromSlash(name))
		info, err := os.Lstat(file)
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() {
			continue // nothing here makes links
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		from, copied := p.sums[name]
		if !copied { // a file of the user's that is no source may have the name
			if old, err := os.ReadFile(filepath.Join(p.Root, filepath.FromSlash(name))); err == nil {
				from = journal.Sum(old)
			}
		}
		if from == journal.Sum(data) {
			continue
		}
		changes = append(changes, journal.Change{Name: name, Data: data, Mode: info.Mode().Perm(), From: from})
	}
	slices.SortFunc(changes, func(a, b journal.Change) int { return strings.Compare(a.Name, b.Name) })
	return changes, nil
}
