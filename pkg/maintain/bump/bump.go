package bump

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	goversion "go/version"

	"golang.org/x/mod/modfile"
	"golang.org/x/sync/errgroup"

	"slipway.build/pkg/make/toolchain"
	"slipway.build/pkg/mechanism/debian"
	"slipway.build/pkg/tree/catalog"
	"slipway.build/pkg/tree/module"
	"slipway.build/pkg/tree/patch"
	"slipway.build/pkg/tree/worktree"
)

// Options choose what Run and Outdated do.
type Options struct {
	Root string // of the tree, absolute

	// Targets say what moves where: "" or nothing for Kubernetes' newest patch, a version of Kubernetes, the name of something else
	// (see Names), or NAME@VERSION.
	Targets []string

	// From is the repository that Kubernetes' modules are made of, instead of those of a module proxy: REPOSITORY or REPOSITORY#REF, see
	// gitsource.Parse. Then Targets has at most a version of Kubernetes.
	From string

	// Patch is a file that Override adds to the tree together with what it changes: its name, relative to Root, and its content. If it does
	// not apply then, nothing is changed.
	Patch     string
	PatchData []byte

	DryRun  bool         // leave the tree as it is
	DB      string       // of Go's vulnerabilities, for Outdated; may be empty
	LocksBy string       // the command that generated them, for the header of debian.lock files
	Say     func(string) // prints a line of progress

	Debian debian.Sources      // of Debian packages
	Getenv func(string) string // looks up variables for git
}

// LeftOut is the version of what a bump removes from the tree.
const LeftOut = "left out"

// A Move is a version that changes.
type Move struct {
	What string `json:"what"`
	From string `json:"from"`
	To   string `json:"to"`            // or LeftOut
	Why  string `json:"why,omitempty"` // it follows something else
}

// A Report says what a bump changes.
type Report struct {
	Moves     []Move   `json:"moves"`
	Overrides []Kept   `json:"overrides,omitempty"` // the tree's own
	Patches   []Patch  `json:"patches,omitempty"`   // the tree's own
	Conflicts []string `json:"conflicts,omitempty"` // files in which changes of slipway's kit and of the tree are in the same places
	Notes     []string `json:"notes"`               // what a maintainer should know, such as what is not available
	Files     []string `json:"files"`               // that are written or removed, sorted
}

// title says in a few words what the bump is: "Kubernetes v1.36.4".
func (r *Report) title() string {
	if len(r.Moves) == 0 {
		return "the same versions"
	}
	return r.Moves[0].What + " " + r.Moves[0].To
}

// move records that something moves, unless it does not.
func (r *Report) move(what, from, to, why string) {
	if from != to {
		r.Moves = append(r.Moves, Move{what, from, to, why})
	}
}

func (r *Report) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// A session asks about versions for a tree.
type session struct {
	Options
	catalog  *catalog.Catalog // of the tree
	projects []project        // in the catalog's order
	hostGo   *toolchain.Go    // that runs here
	proxy    *proxy
	sums     []module.Pinned // of modules that are made of a source, which no checksum database has
}

func load(o Options) (*session, error) {
	s := &session{Options: o}
	var err error
	if s.catalog, err = catalog.Load(o.Root); err != nil {
		return nil, err
	}
	for _, folder := range folders(s.catalog) {
		pr, err := s.project(folder)
		if err != nil {
			return nil, err
		}
		s.projects = append(s.projects, pr)
	}
	return s, nil
}

// start finds the Go that runs here. The caller closes the proxy.
func (s *session) start(ctx context.Context) (err error) {
	own := s.catalog.Own()
	if s.hostGo, err = toolchain.Find(ctx, toolchain.Pin{Version: own.Version, Sums: own.Sums}, s.Say); err != nil {
		return err
	}
	if s.proxy, err = newProxy(s.hostGo); err != nil {
		return err
	}
	return s.placeSource(ctx)
}

// preparation is the work on a copy of the tree.
type preparation struct {
	*session
	Report
	repo, own *worktree.Repo // of the tree; with an index of its own that has the commit
	copied    *worktree.Repo // own, with the copy as its work tree
	commit    string         // that was copied

	draft     *catalog.Draft    // of the copy's release.yaml
	compileGo string            // the version of the Go that will compile
	required  map[string]wanted // what each rewritten go.mod must require, by folder
	before    map[string]wanted // what upstream asks for in the versions before the bump, by folder
	leftOut   []string          // folders of projects that the new tree does not have
	docs      map[string]string // texts in documents, and what replaces them

	upstreams map[string]map[string]string // versions without overrides, by folder and path
	raising   string                       // the module whose override changes: nothing is generated from that
	patches   []patch.Series               // of the tree
	was, now  *wanted                      // what the components select before and after
}

// Run moves the tree to other versions: all of it, or nothing. The caller holds the tree's lock, and has called Recover.
func Run(ctx context.Context, o Options) (*Report, error) {
	return run(ctx, o, func(p *preparation) ([]step, error) { return p.parse(o.Targets) })
}

func run(ctx context.Context, o Options, parse func(*preparation) ([]step, error)) (*Report, error) {
	s, err := load(o)
	if err != nil {
		return nil, err
	}
	p := &preparation{session: s, compileGo: s.catalog.Go.Version, required: map[string]wanted{}, before: map[string]wanted{},
		docs: map[string]string{}, upstreams: map[string]map[string]string{}}
	steps, err := parse(p)
	if err != nil {
		return nil, err
	}
	defer func() {
		if !Pending(o.Root) {
			_ = os.RemoveAll(workDir(o.Root)) // or the next bump does
		}
	}()
	if err := p.copyTree(ctx); err != nil {
		return nil, err
	}
	if p.patches, err = patch.Load(copyDir(o.Root)); err != nil {
		return nil, err
	}
	components, err := module.Load(o.Root, p.catalog.Module)
	if err != nil {
		return nil, err
	}
	p.was = selection(components)
	p.now = p.was
	if err := p.start(ctx); err != nil {
		return nil, err
	}
	defer p.proxy.close()
	if p.draft, err = catalog.ReadDraft(copyDir(o.Root)); err != nil {
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
	changed, added, err := p.changes(ctx)
	if err != nil {
		return nil, err
	}
	if p.Files = slices.Sorted(slices.Values(slices.Concat(changed, added))); !o.DryRun && len(p.Files) > 0 {
		err = p.apply(ctx, undoLog{p.title(), p.commit, changed, added})
	}
	return &p.Report, err
}

// file returns the name of a file or folder in the copy.
func (p *preparation) file(name string) string {
	return filepath.Join(copyDir(p.Root), filepath.FromSlash(name))
}

// write writes a file of the copy, which keeps its permissions.
func (p *preparation) write(name string, data []byte) error {
	return os.WriteFile(p.file(name), data, 0o666)
}

// editGoMod changes the go.mod in a folder.
func (p *preparation) editGoMod(folder string, edit func(*modfile.File) error) error {
	name := path.Join(folder, "go.mod")
	data, err := os.ReadFile(p.file(name))
	if err != nil {
		return err
	}
	f, err := modfile.Parse(name, data, nil)
	if err != nil {
		return err
	}
	if err := edit(f); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if data, err = f.Format(); err != nil {
		return err
	}
	return p.write(name, data)
}

// require rewrites the go.mod in a folder.
func (p *preparation) require(folder string, want wanted) error {
	want, err := p.overridden(folder, want)
	if err != nil {
		return err
	}
	p.required[folder] = want
	return p.editGoMod(folder, want.rewrite)
}

// finish updates what follows from the rest: go.sum files, generated files, versions in documents.
func (p *preparation) finish(ctx context.Context) error {
	if len(p.Conflicts) > 0 { // what follows from files that people have to finish first
		return nil
	}
	for _, folder := range p.leftOut {
		if err := p.draft.DropProject(folder); err != nil {
			return err
		}
	}
	folders := slices.Sorted(maps.Keys(p.required))
	g, tidyCtx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for _, folder := range folders {
		p.Say("go mod tidy in " + folder)
		g.Go(func() error {
			if err := p.tidy(tidyCtx, folder); err != nil {
				return fmt.Errorf("%s: %w", folder, err)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for _, folder := range folders {
		if err := p.compare(folder, p.required[folder]); err != nil {
			return err
		}
	}
	if p.raising != "" {
		if err := p.showRaised(); err != nil {
			return err
		}
	}
	if err := p.settleOverrides(); err != nil {
		return err
	}
	if err := p.write(catalog.File, p.draft.Bytes()); err != nil {
		return err
	}
	if err := p.writeDocs(ctx); err != nil {
		return err
	}
	if changed, added, err := p.changes(ctx); err != nil || len(changed)+len(added) == 0 {
		return err
	}
	if err := p.addPatch(); err != nil {
		return err
	}
	if len(p.required) > 0 { // otherwise the code that they change is the same
		if err := p.checkPatches(ctx); err != nil {
			return err
		}
	}
	if p.raising == "" {
		if err := p.withoutConflicts(ctx, func() error { return p.generate(ctx) }); err != nil {
			return err
		}
	}
	_, err := catalog.Load(copyDir(p.Root))
	return err
}

// tidy completes a go.mod, and writes go.sum. The Go must know the language that the file asks for.
func (p *preparation) tidy(ctx context.Context, folder string) error {
	m, err := module.Load(copyDir(p.Root), folder)
	if err != nil {
		return err
	}
	if goversion.Compare("go"+m.Go, p.hostGo.Version) > 0 {
		return fmt.Errorf("its go.mod asks for Go %s, and %s is here", m.Go, p.hostGo.Version)
	}
	if err := addSums(p.file(folder), p.sums); err != nil {
		return err
	}
	if _, err = runner(p.hostGo)(ctx, p.file(folder), "mod", "tidy"); err == nil {
		return nil
	}
	if p.patched(folder) {
		err = fmt.Errorf("%w\n%s has patches, of which go mod tidy knows nothing; if they change imports, move it by hand: "+
			"docs/bump.md#a-project-with-patches", err, folder)
	}
	return err
}

// compare notes each version that tidy selected in place of upstream's. The go line, and the modules that the bump is about, must be
// what they should be.
func (p *preparation) compare(folder string, want wanted) error {
	m, err := module.Load(copyDir(p.Root), folder)
	if err != nil {
		return err
	}
	if want.Go != "" && m.Go != want.Go {
		return fmt.Errorf("%s/go.mod asks for Go %s after go mod tidy, and upstream for %s: another requirement raises it", folder, m.Go, want.Go)
	}
	var different []string
	for _, r := range m.Requires {
		wanted := want.Versions[r.Path]
		if wanted == "" || wanted == r.Version || r.Replace != (module.Version{}) {
			continue
		}
		if slices.Contains(want.Own, r.Path) {
			return fmt.Errorf("%s: go mod tidy selects %s %s instead of %s: another requirement raises it", folder, r.Path, r.Version, wanted)
		}
		different = append(different, fmt.Sprintf("%s %s, upstream has %s", r.Path, r.Version, wanted))
	}
	if before, ok := p.before[folder]; ok {
		old, err := module.Load(p.Root, folder)
		if err != nil {
			return err
		}
		p.Moves = append(p.Moves, dropped(old, m, before, want)...)
	}
	if len(different) > 0 {
		p.note("%s has other versions than upstream: %s", folder, strings.Join(different, "; "))
	}
	return nil
}
