package local

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/klauspost/compress/zstd"

	"slipway.build/pkg/make/road"
	"slipway.build/pkg/make/road/prebuilt"
	"slipway.build/pkg/make/toolchain"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/action/cachetest"
	"slipway.build/pkg/mechanism/child/childtest"
	"slipway.build/pkg/tree/catalog"
)

// sharing keeps what is reported, and gives access to a cache.
type sharing struct {
	cache   action.Cache
	foreign atomic.Bool

	mu   sync.Mutex
	said []string
}

func (s *sharing) event(e action.Event) {
	if e.Kind == action.Progress || e.Kind == action.Output {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.said = append(s.said, e.Text)
	}
}
func (s *sharing) Cache() action.Cache { return s.cache }
func (s *sharing) Use(o action.Origin) { s.foreign.Store(!o.Own()) }

func (*sharing) UploadAsync(context.Context, func(context.Context, string) error) {}

// Modules are downloaded while packages are fetched, and the user sees it. If nothing has to be fetched, the go command runs only to
// compile.
func TestModulesAreDownloadedWhilePackagesAreFetched(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the Go is a shell script")
	}
	caches := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", caches)
	t.Setenv("HOME", caches)
	root, goroot := t.TempDir(), t.TempDir()
	asked := filepath.Join(root, "asked")
	script := fmt.Sprintf("#!/bin/sh\necho \"$GOCACHE $*\" >>%s\necho 'go: downloading example.com/m v1.0.0' >&2\n"+
		"echo 'go: no such package' >&2\n", asked)
	for name, text := range map[string]string{filepath.Join(goroot, "bin", "go"): script, filepath.Join(root, "go.mod"): "module m"} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		childtest.Script(t, name, text)
	}
	m := cachetest.New()
	s := &sharing{cache: m}
	c := road.Compilation{Spec: road.Spec{Module: ".", Platform: catalog.Platform{OS: "linux", Arch: "amd64"}},
		Scratch: t.TempDir(), Shared: s}
	r := &run{
		g: &toolchain.Go{Root: goroot}, c: c, dir: root, own: t.TempDir(), rep: s.event,
		packages: &prebuilt.Packages{Root: root, Go: "go1.26.8", Compilation: c, Report: s.event, Slow: new(atomic.Bool)},
	}
	command := road.GoCommand{Targets: []road.Target{{Binary: road.Binary{Package: "./kubectl"}}}}
	keys, err := r.packages.Keys(command.Targets[0].Binary)
	if err != nil {
		t.Fatal(err)
	}
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	plain := []byte("a package")
	packed := z.EncodeAll(plain, nil)
	sum := func(data []byte) string { d := sha256.Sum256(data); return hex.EncodeToString(d[:]) }
	m.Contents[sum(packed)] = packed
	m.Results[keys[0]] = &action.Result{Entries: []action.Entry{{
		Path: fmt.Sprintf("%s/%s/%d", sum([]byte("action")), sum(plain), len(plain)), Kind: action.RegularFile, SHA256: sum(packed),
		Size: int64(len(packed)),
	}}}

	r.share(t.Context(), command)
	folder, err := prebuilt.Folder()
	if err != nil || r.cache != folder || !s.foreign.Load() {
		t.Fatalf("it compiles with %s, want %s; %v, %q", r.cache, folder, err, s.said)
	}
	data, err := os.ReadFile(asked)
	if want := folder + " list -deps "; err != nil || !strings.HasPrefix(string(data), want) ||
		!strings.HasSuffix(string(data), " ./kubectl\n") {
		t.Errorf("the go command was run with %q, want %q: %v", data, want, err)
	}
	for _, want := range []string{"downloading example.com/m v1.0.0", "loading packages"} {
		if !slices.Contains(s.said, want) {
			t.Errorf("it said %q, want %q", s.said, want)
		}
	}
	if slices.Contains(s.said, "go: no such package") {
		t.Errorf("it said %q, which the compile says, too", s.said)
	}

	if err := os.Remove(asked); err != nil {
		t.Fatal(err)
	}
	if r.share(t.Context(), command); r.cache != folder {
		t.Errorf("the second time, it compiles with %s", r.cache)
	}
	if data, err := os.ReadFile(asked); err == nil {
		t.Errorf("with nothing to fetch, the go command was run with %q", data)
	}
}
