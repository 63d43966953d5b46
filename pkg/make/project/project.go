package project

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"sync"
	"time"

	"slipway.build/pkg/make/codegen"
	"slipway.build/pkg/make/gitsource"
	"slipway.build/pkg/make/patched"
	"slipway.build/pkg/make/road"
	"slipway.build/pkg/make/roads"
	"slipway.build/pkg/make/toolchain"
	"slipway.build/pkg/tree/catalog"
	"slipway.build/pkg/tree/folder"
	"slipway.build/pkg/tree/input"
	"slipway.build/pkg/tree/module"
	"slipway.build/pkg/tree/patch"
	"slipway.build/pkg/tree/self"
	"slipway.build/pkg/tree/source"
	"slipway.build/pkg/tree/stamp"
	"slipway.build/pkg/tree/worktree"
)

// Where things are made, relative to the tree's root. The layout below _output is Kubernetes' own.
const (
	Output   = folder.Output
	State    = folder.State               // records, caches, temporary files, the lock
	Images   = Output + "/release-images" // ARCH/NAME.tar
	Layout   = Images + "/oci"            // an OCI image layout of all images
	Signed   = Layout + SignedSuffix      // the same with signatures, if the release is signed
	Tars     = Output + "/release-tars"
	Stage    = Output + "/release-stage" // parts of a release
	Sums512  = Stage + "/sha512"         // of each artifact, its SHA-512
	API      = Output + "/api"           // what the API is, as files
	archives = State + "/archive"        // compressed forms by content

	// SignedSuffix is what a layout with signatures has at the end of its name.
	SignedSuffix = "-signed"

	// EngineUsed is a file that exists if the tree may have something in a container engine.
	EngineUsed = State + "/engine"
)

// A Project is a tree, with what a plan needs to know about it.
type Project struct {
	Root     string // absolute
	Catalog  *catalog.Catalog
	Settings Settings
	Stamp    stamp.Stamp                                                             // zero after Load
	Go       func(ctx context.Context, progress func(string)) (*toolchain.Go, error) // the pinned Go, found at first use

	Roads roads.Tree // the roads that can compile in the tree
	Road  road.Road  // the chosen road; nil after Load and OpenSources

	Generator patched.Generator       // of code that patches change; may be nil
	Patches   map[string]patch.Series // by folder of the Go module
	Sources   *source.Tree            // nil after Load
	Outside   string                  // a folder outside of the tree that slipway is compiled from, as go.mod has it; or ""

	getenv func(string) string
	pin    toolchain.Pin
	inputs input.Folder // where modules and Debian packages come from without network; "" if they come from elsewhere
}

// Open reads the tree that dir lies in.
func Open(ctx context.Context, dir string, settings Settings, getenv func(string) string) (*Project, error) {
	root, err := FindRoot(dir)
	if err != nil {
		return nil, err
	}
	repo := worktree.Once(root, getenv)
	early, cancel := context.WithCancel(ctx)
	var looking sync.WaitGroup
	looking.Go(func() { // read git's state while Load reads files
		if r, err := repo(); err == nil {
			_, _ = r.State(early) // repo remembers the result; identify reports an error
		}
	})
	defer looking.Wait()
	defer cancel() // after an error in Load, do not wait for git
	p, err := Load(root, settings, getenv)
	if err != nil {
		return nil, err
	}
	if err := p.checkKubernetes(); err != nil {
		return nil, err
	}
	if p.Road, err = p.Roads.Choose(settings.Road, p.Settings.Build); err != nil {
		return nil, err
	}
	return p, p.identify(ctx, repo)
}

// checkKubernetes returns an error if slipway makes no releases of the tree's version of Kubernetes.
func (p *Project) checkKubernetes() error {
	if err := catalog.CheckKubernetes(p.Catalog.Kubernetes); err != nil {
		return fmt.Errorf("%s/go.mod: %w", p.Catalog.Module, err)
	}
	return nil
}

// OpenSources reads a tree of unpacked sources, whatever the environment is. It chooses no road.
func OpenSources(ctx context.Context, dir string, settings Settings) (*Project, error) {
	p, err := Load(dir, settings, func(string) string { return "" })
	if err != nil {
		return nil, err
	}
	if err := p.checkKubernetes(); err != nil {
		return nil, err
	}
	return p, p.identify(ctx, worktree.Once(p.Root, p.getenv))
}

// Load reads the tree that contains dir, without the version, the sources and a chosen road. Open reads these, too.
func Load(dir string, settings Settings, getenv func(string) string) (*Project, error) {
	root, err := FindRoot(dir)
	if err != nil {
		return nil, err
	}
	if err := settings.validate(); err != nil {
		return nil, err
	}
	p := &Project{Root: root, Settings: settings, getenv: getenv}
	if p.Catalog, err = catalog.Load(root); err != nil {
		return nil, err
	}
	if p.Outside, err = self.Outside(root); err != nil {
		return nil, err
	}
	p.Settings.Build.FIPS = p.Catalog.Go.FIPS
	if p.inputs, err = input.Find(root, settings.Inputs); err != nil {
		return nil, err
	}
	p.Settings.Debian.Folder = p.inputs.Debian()
	p.Settings.Debian.Snapshot = cmp.Or(settings.Debian.Snapshot, p.Catalog.DebianSnapshot())
	if p.Patches, err = patched.Load(root, p.Catalog); err != nil {
		return nil, err
	}
	p.pin = toolchain.Pin{Version: p.Catalog.Go.Version, Sums: p.Catalog.Go.Sums, Modules: p.inputs.Modules()}
	p.Go = once(func(ctx context.Context, progress func(string)) (*toolchain.Go, error) {
		g, err := toolchain.Find(ctx, p.pin, progress)
		if err != nil {
			return nil, err
		}
		if _, err := p.fips(g); err != nil {
			return nil, err
		}
		if len(p.Patches) > 0 || p.Catalog.Go.FIPS != "" || p.Catalog.Source != (catalog.Source{}) {
			if caches, err := os.UserCacheDir(); err == nil { // or else, only the user's module cache can have more modules
				g = g.WithWritableModules(filepath.Join(caches, "slipway", "modules"))
			}
		}
		if p.inputs == "" { // which has all modules
			if err := gitsource.Place(ctx, g, root, p.Catalog, progress); err != nil {
				return nil, err
			}
		}
		return g.WithProxies(p.proxies()...), nil
	})
	p.Generator = codegen.ForPatches{Root: root, Components: p.Catalog.Module, GoVersion: p.Catalog.Go.Version}
	p.Roads = roads.Tree{
		Root:         root,
		Module:       p.Catalog.Module,
		Pin:          p.pin,
		Go:           p.Go,
		CrossBase:    settings.CrossBase,
		DebianMirror: settings.Debian.Mirror,
		Alone:        time.Now().Before(p.Catalog.Embargo),
		Sources:      p.sourceNames,
		Status:       p.WorkspaceStatus,
		EngineUsed:   p.markEngine,
		Place:        p.placePatched,
		Getenv:       getenv,
	}
	return p, nil
}

// UseModuleProxy makes go commands ask this module proxy before the user's. It is called before the first use of p.Go.
func (p *Project) UseModuleProxy(url string) { p.pin.Proxy = url }

// Modules lists all modules that a release of the tree, slipway or its unit tests are made of, with the pinned Go for this machine.
func (p *Project) Modules(ctx context.Context) ([]module.Pinned, error) {
	files, err := p.sourceNames(ctx)
	if err != nil {
		return nil, err
	}
	var toolchains []module.Pinned
	if m, ok := p.pin.Released(toolchain.Host()); ok {
		toolchains = append(toolchains, m)
	}
	list, err := input.Read(p.Root, input.ModuleFolders(files), toolchains, nil, nil)
	if err != nil {
		return nil, err
	}
	return list.Modules, nil
}

// sourceNames returns the names of the tree's sources, also after Load.
func (p *Project) sourceNames(ctx context.Context) ([]string, error) {
	tree := p.Sources
	if tree == nil {
		var err error
		if tree, err = source.Find(ctx, p.Root, worktree.Once(p.Root, p.getenv)); err != nil {
			return nil, err
		}
	}
	return tree.Names(), nil
}

// Inputs returns the folder that replaces the network: of modules and Debian packages. It is empty if there is none.
func (p *Project) Inputs() string { return string(p.inputs) }

// markEngine writes the file that says that the tree has something in a container engine.
func (p *Project) markEngine() error {
	if err := os.MkdirAll(p.Abs(State), 0o777); err != nil {
		return err
	}
	return os.WriteFile(p.Abs(EngineUsed), nil, 0o666)
}

// identify finds out the tree's version, and which files are its sources.
func (p *Project) identify(ctx context.Context, repo worktree.Opener) (err error) {
	if p.Stamp, err = stamp.Read(ctx, p.stampRequest(repo)); err != nil {
		return err
	}
	p.Sources, err = source.Find(ctx, p.Root, repo)
	return err
}

// RemoteEnv returns the environment for a run of slipway or make elsewhere, on the same sources, that makes what one here would: the
// user's Kubernetes variables, and the tree's version, which would need git otherwise.
func (p *Project) RemoteEnv(getenv func(string) string) []string {
	var env []string
	for _, name := range []string{
		"WHAT", "DBG", "GOFLAGS", "GOLDFLAGS", "GOGCFLAGS", "KUBE_BUILD_PLATFORMS", "KUBE_FASTBUILD", "KUBE_RELEASE_RUN_TESTS", "KUBE_RACE",
		"KUBE_TIMEOUT", "KUBE_VERBOSE", "KUBE_DOCKER_REGISTRY", "KUBE_DOCKER_IMAGE_TAG",
	} {
		if value := getenv(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	return append(env, stamp.Environ(p.Stamp)...)
}

// FindRoot walks up from dir to the folder that holds release/release.yaml. The result has no symbolic links, so that a folder has one
// name.
func FindRoot(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, "release", "release.yaml")); err == nil {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", &NoTreeError{dir}
		}
	}
}

// A NoTreeError says that a folder is in no source tree.
type NoTreeError struct{ Dir string }

func (e *NoTreeError) Error() string {
	return fmt.Sprintf("no release/release.yaml in %s or a folder above it", e.Dir)
}

// once returns a function that calls find until it succeeds, and then returns that result.
func once(find func(context.Context, func(string)) (*toolchain.Go, error)) func(context.Context, func(string)) (*toolchain.Go, error) {
	var mu sync.Mutex
	var found *toolchain.Go
	return func(ctx context.Context, progress func(string)) (*toolchain.Go, error) {
		mu.Lock()
		defer mu.Unlock()
		if found != nil {
			return found, nil
		}
		g, err := find(ctx, progress)
		found = g
		return g, err
	}
}

// ArchiveCache returns the absolute path of the folder with compressed contents.
func (p *Project) ArchiveCache() string { return p.Abs(archives) }

// HostBinaries returns the folder of the host's binaries that _output/bin links to, or "".
func (p *Project) HostBinaries() string {
	if info := p.Road.Info(); info.Linked {
		return path.Join(info.Output, catalog.Host().String())
	}
	return ""
}

// Unchanged returns an error if the tree changed since the project was opened and planned. A release of a tree that changes during
// the build would mix files from before and after the change under one version.
func (p *Project) Unchanged(ctx context.Context) error {
	repo := worktree.Once(p.Root, p.getenv)
	now, err := stamp.Read(ctx, p.stampRequest(repo))
	if err != nil {
		return err
	}
	var what string
	if now != p.Stamp {
		what = fmt.Sprintf("its version was %s and is %s", p.Stamp.Version, now.Version)
	} else if what, err = p.Sources.Changed(ctx, repo); err != nil {
		return err
	}
	if what != "" {
		return errChanged(what)
	}
	return nil
}

func errChanged(what string) error {
	return fmt.Errorf("the tree changed while it was built (%s): run the same command again", what)
}

func (p *Project) stampRequest(repo worktree.Opener) stamp.Request {
	return stamp.Request{Root: p.Root, Base: p.Catalog.Kubernetes, Env: p.getenv, Git: repo, Outside: p.Outside}
}
