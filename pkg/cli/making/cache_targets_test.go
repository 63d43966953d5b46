package making

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// The program with the targets of make has another key when anything changes that it is compiled from, and only then.
func TestKeyOfTargets(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		name = filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	sources := []string{"go.mod", "go.sum", "Makefile", "build/targets.mk", "build/slipway.mk",
		"magefiles/build.go", "pkg/cli/cli.go", "pkg/prove/node.sh"}
	for _, name := range sources {
		write(name, "one")
	}
	key := func() string {
		t.Helper()
		k, _, err := targetsKey(root)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	last := key()
	for _, name := range append(sources, "pkg/cli/new.go") {
		write(name, "two")
		now := key()
		if now == last {
			t.Errorf("%s does not count", name)
		}
		last = now
	}
	for _, name := range []string{"pkg/cli/cli_test.go", "pkg/cli/testdata/x.go", "cmd/main.go", "_output/x"} {
		write(name, "two")
		if key() != last {
			t.Errorf("%s counts", name)
		}
	}
}
