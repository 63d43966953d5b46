// Package roads knows which roads there are, and equips them for a tree. It is the one place where a road is chosen by its name.
//
// What must never be in here: what is compiled, and what for.
package roads

import (
	"context"
	"path/filepath"

	"slipway.build/pkg/make/bazel"
	"slipway.build/pkg/make/kubecross"
	"slipway.build/pkg/make/road"
	bazelroad "slipway.build/pkg/make/road/bazel"
	"slipway.build/pkg/make/road/container"
	"slipway.build/pkg/make/road/local"
	"slipway.build/pkg/make/toolchain"
	"slipway.build/pkg/mechanism/suggest"
)

// A Tree is what roads need to know of the tree that they compile.
type Tree struct {
	Root   string // absolute
	Module string // folder of the components' module
	Pin    toolchain.Pin
	Go     func(ctx context.Context, progress func(string)) (*toolchain.Go, error) // finds the pinned Go

	CrossBase    string                                           // the image that the build image starts from; empty: the road chooses
	Alone        bool                                             // Bazel uploads nothing, and executes nothing elsewhere
	DebianMirror string                                           // where Debian packages come from if this machine does not say
	Sources      func(ctx context.Context) ([]string, error)      // names of the files of the tree
	Status       func(ctx context.Context) ([]byte, error)        // Bazel's workspace status
	EngineUsed   func() error                                     // is called before a container engine is used
	Place        func(ctx context.Context, g *toolchain.Go) error // puts the tree's own modules into the module cache, where Bazel finds them
	Getenv       func(string) string

	// Stale describes what is not up to date of the files for Bazel, or is empty. Nil: they are taken as they are.
	Stale func(ctx context.Context) (string, error)

	local *local.Road
}

// all lists the roads by their names. The first is the default.
var all = []struct {
	info road.Info
	of   func(t *Tree) road.Road
}{
	{local.Info, (*Tree).Local},
	{container.Info, func(t *Tree) road.Road { return t.Containers(t.Module) }},
	{bazelroad.Info, func(t *Tree) road.Road {
		return &bazelroad.Road{Root: t.Root, Version: t.Pin.Version, Bazel: t.findBazel, Check: t.checkBazel, Stale: t.stale}
	}},
}

// Names returns the names of the roads, the default first.
func Names() []string {
	var names []string
	for _, r := range all {
		names = append(names, r.info.Name)
	}
	return names
}

// Output returns the folder of a road's binaries, OS/ARCH/NAME, relative to the tree's root, or "" if there is no such road. The empty
// name is the default road's.
func Output(name string) string {
	for i, r := range all {
		if r.info.Name == name || name == "" && i == 0 {
			return r.info.Output
		}
	}
	return ""
}

// Choose returns the road of that name, or the default road for an empty one. It fails if there is none, or if the road does not support
// the options.
func (t *Tree) Choose(name string, options road.Options) (road.Road, error) {
	for i, r := range all {
		if r.info.Name == name || name == "" && i == 0 {
			chosen := r.of(t)
			return chosen, road.CheckOptions(chosen, options)
		}
	}
	return nil, suggest.Unknown("road", name, Names())
}

// Local returns the tree's local road: always the same one, so that others can tell whether it is the road that was chosen.
func (t *Tree) Local() road.Road {
	if t.local == nil {
		t.local = &local.Road{Root: t.Root, Pin: t.Pin, Go: t.Go}
	}
	return t.local
}

// Made returns the Bazel road as it is inside of Bazel, which has compiled already: files are what it made, by label. It fails if Bazel
// does not support the options.
func (t *Tree) Made(files map[string]string, options road.Options) (road.Road, error) {
	made := &bazelroad.Made{Root: t.Root, Version: t.Pin.Version, Files: files}
	return made, road.CheckOptions(made, options)
}

// Containers returns the container road for packages of some of the tree's modules.
func (t *Tree) Containers(modules ...string) *container.Road {
	return &container.Road{
		Root:    t.Root,
		Modules: modules,
		Pin:     t.Pin,
		Image:   kubecross.Image{Dir: filepath.Join(t.Root, "images", "kube-cross"), Pin: t.Pin, Base: t.CrossBase, Mirror: t.DebianMirror},
		Go:      t.Go,
		Used:    t.EngineUsed,
		Sources: t.Sources,
	}
}

// Bazel finds the Bazel that the tree is pinned to, or makes one, with what it needs from where deps says.
func (t *Tree) Bazel(ctx context.Context, deps bazel.Deps, progress func(string)) (*bazel.Bazel, error) {
	g, err := t.Go(ctx, progress)
	if err != nil {
		return nil, err
	}
	if err := t.Place(ctx, g); err != nil {
		return nil, err
	}
	status, err := t.Status(ctx)
	if err != nil {
		return nil, err
	}
	return bazel.Find(ctx, bazel.Options{
		Root:     t.Root,
		Go:       g.WithoutProxies(), // another GOPROXY would make Bazel fetch all modules again
		Status:   string(status),
		Mirror:   t.DebianMirror,
		Alone:    t.Alone,
		Deps:     deps,
		Getenv:   t.Getenv,
		Progress: progress,
	})
}

// findBazel is Bazel for the road.
func (t *Tree) findBazel(ctx context.Context, progress func(string)) (bazelroad.Bazel, error) {
	b, err := t.Bazel(ctx, "", progress)
	if err != nil {
		return nil, err // not a nil *bazel.Bazel in an interface that is not nil
	}
	return b, nil
}

func (t *Tree) stale(ctx context.Context) (string, error) {
	if t.Stale == nil {
		return "", nil
	}
	return t.Stale(ctx)
}

// checkBazel checks whether findBazel can succeed on this machine.
func (t *Tree) checkBazel(ctx context.Context) error {
	return bazel.Ready(ctx, bazel.Options{Root: t.Root, Mirror: t.DebianMirror, Getenv: t.Getenv})
}
