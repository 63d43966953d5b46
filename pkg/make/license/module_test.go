package license

import (
	"path/filepath"
	"testing"

	"slipway.build/pkg/tree/module"
)

// dependency returns a module at a version.
func dependency(path, version string) Module {
	return Module{Dependency: module.Dependency{Path: path, Version: version}}
}

// replaced returns a module that another one or a folder replaces.
func replaced(path, version string, by module.Version) Module {
	return Module{Dependency: module.Dependency{Path: path, Version: version, Replace: by}}
}

func TestModulesAreLocatedAndNamed(t *testing.T) {
	t.Parallel()
	src := Source{ModCache: filepath.FromSlash("/mod"), ModRoot: filepath.FromSlash("/tree/cmd")}
	for _, test := range []struct {
		module    Module
		dir, name string
	}{
		{dependency("github.com/Big/B", "v2.0.0+incompatible"), "/mod/github.com/!big/!b@v2.0.0+incompatible",
			"github.com/Big/B@v2.0.0+incompatible"},
		{replaced("x.test/self", "v0.0.0", module.Version{Path: "x.test/self", Version: "v0.36.3"}), "/mod/x.test/self@v0.36.3",
			"x.test/self@v0.36.3"},
		{replaced("x.test/fork", "v1.0.0", module.Version{Path: "example.com/Fork", Version: "v1.0.1"}), "/mod/example.com/!fork@v1.0.1",
			"x.test/fork@example.com/Fork@v1.0.1"},
		{replaced("x.test/sub", "v1.0.0", module.Version{Path: "./sub"}), "/tree/cmd/sub", "x.test/sub@local"},
		{replaced("x.test/up", "v1.0.0", module.Version{Path: "../patched"}), "/tree/patched", "x.test/up@local"},
		{replaced("x.test/abs", "v1.0.0", module.Version{Path: "/src/abs"}), "/src/abs", "x.test/abs@local"},
	} {
		m := test.module
		if err := src.locate(&m); err != nil || m.Dir != filepath.FromSlash(test.dir) || m.String() != test.name {
			t.Errorf("%s is in %s, %v; want %s in %s", m, m.Dir, err, test.name, test.dir)
		}
	}
}
