package modproxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/mod/zip"

	gomod "golang.org/x/mod/module"

	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/action/cachetest"
	"slipway.build/pkg/tree/module"
)

// version is a module with an upper case letter, which is escaped in paths.
var version = module.Version{Path: "example.com/Part", Version: "v1.2.3"}

// moduleCache returns a module cache that has the module, and what go.sum has of it.
func moduleCache(t *testing.T) (dir string, pinned module.Pinned) {
	t.Helper()
	dir = t.TempDir()
	source := t.TempDir()
	const goMod = "module example.com/Part\n\ngo 1.24\n"
	at, err := version.ProxyPath()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "cache", "download", filepath.FromSlash(at))
	var packed bytes.Buffer
	err = errors.Join(
		os.MkdirAll(filepath.Dir(name), 0o755),
		os.WriteFile(filepath.Join(source, "go.mod"), []byte(goMod), 0o644),
		os.WriteFile(filepath.Join(source, "part.go"), []byte("package part\n\nconst Name = \"part\"\n"), 0o644),
		zip.CreateFromDir(&packed, gomod.Version(version), source),
		os.WriteFile(name+".zip", packed.Bytes(), 0o644),
		os.WriteFile(name+".mod", []byte(goMod), 0o644),
		os.WriteFile(name+".info", []byte(`{"Version":"v1.2.3","Time":"2026-01-02T03:04:05Z"}`), 0o644))
	if err != nil {
		t.Fatal(err)
	}
	sum, err1 := dirhash.HashZip(name+".zip", dirhash.Hash1)
	modSum, err2 := dirhash.Hash1([]string{"go.mod"}, func(string) (io.ReadCloser, error) {
		return io.NopCloser(
			strings.NewReader(goMod)), nil
	})
	if err := errors.Join(err1, err2, os.WriteFile(name+".ziphash", []byte(sum), 0o644)); err != nil {
		t.Fatal(err)
	}
	return dir, module.Pinned{Version: version, Sum: sum, GoModSum: modSum}
}

// A go command without any other proxy compiles with a module that the cache has.
func TestGoCommandTakesModulesFromTheCache(t *testing.T) {
	t.Parallel()
	cached, pinned := moduleCache(t)
	m := cachetest.New()
	if err := Store(t.Context(), m, cached, []module.Pinned{pinned}); err != nil {
		t.Fatal(err)
	}
	s, err := Start(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(s.dir); err == nil {
			t.Error("temporary files stay behind")
		}
	}()
	run := func(sum string) (string, error) {
		dir := t.TempDir()
		err := errors.Join(
			os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module example.com/main\n\ngo 1.24\n\nrequire example.com/Part v1.2.3\n"), 0o644),
			os.WriteFile(filepath.Join(dir, "main.go"), []byte("package main\n\nimport \"example.com/Part\"\n\n"+
				"func main() { println(part.Name) }\n"), 0o644),
			os.WriteFile(filepath.Join(dir, "go.sum"),
				[]byte("example.com/Part v1.2.3 "+sum+"\nexample.com/Part v1.2.3/go.mod "+pinned.GoModSum+"\n"), 0o644))
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "go", "vet", "-mod=readonly", ".")
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOMODCACHE="+filepath.Join(dir, "modules"), "GOPROXY="+s.URL+",off", "GOFLAGS=-modcacherw", "GOWORK=off",
			"GONOSUMDB=*", "CGO_ENABLED=0")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := run(pinned.Sum); err != nil || m.Fetches < 2 {
		t.Errorf("%v, %d files came from the cache: %s", err, m.Fetches, out)
	}
	if out, err := run("h1:" + strings.Repeat("A", 43) + "="); err == nil || !strings.Contains(out, "checksum mismatch") {
		t.Errorf("with another sum: %v: %s", err, out)
	}
}

func TestWhatTheCacheLacksIsNotFound(t *testing.T) {
	t.Parallel()
	m := cachetest.New()
	cached, pinned := moduleCache(t)
	if err := Store(t.Context(), m, cached, []module.Pinned{pinned}); err != nil {
		t.Fatal(err)
	}
	status := func(path string) int { return ask(t, start(t, m), path) }
	for _, file := range []string{".zip", ".mod", ".info"} {
		if got := status("/example.com/!part/@v/v1.2.3" + file); got != http.StatusOK {
			t.Errorf("%s: %d", file, got)
		}
	}
	for _, path := range []string{
		"/", "/example.com/!part/@latest", "/example.com/!part/@v/list", "/example.com/!part/@v/v1.2.4.zip", "/example.com/part/@v/v1.2.3.zip",
		"/example.com/Part/@v/v1.2.3.zip", "/example.com/!part/@v/v1.2.3.ziphash", "/example.com/!part/@v/..zip",
		"/sumdb/sum.example/supported", "/@v/v1.2.3.zip",
	} {
		if got := status(path); got != http.StatusNotFound {
			t.Errorf("%s: %d", path, got)
		}
	}
	clear(m.Contents)
	if got := status("/example.com/!part/@v/v1.2.3.zip"); got != http.StatusNotFound {
		t.Errorf("contents that are lost: %d", got)
	}
}

// start starts a server, and returns its URL.
func start(t *testing.T, cache action.Cache) string {
	t.Helper()
	s, err := Start(t.Context(), cache)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s.URL
}

// ask returns the status of an answer.
func ask(t *testing.T, url, path string) int {
	t.Helper()
	answer, err := http.Get(url + path)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	return answer.StatusCode
}

// counting counts requests.
type counting struct {
	*cachetest.Memory
	requests atomic.Int32
}

func (c *counting) Fetch(ctx context.Context, contents []action.Content) error {
	c.requests.Add(1)
	return c.Memory.Fetch(ctx, contents)
}

// A go command asks for three files, one after the other. The cache is asked once for all that are small. A lost file does not affect the
// others.
func TestSmallFilesComeInOneRequest(t *testing.T) {
	t.Parallel()
	m := cachetest.New()
	cached, pinned := moduleCache(t)
	if err := Store(t.Context(), m, cached, []module.Pinned{pinned}); err != nil {
		t.Fatal(err)
	}
	files := []string{".zip", ".mod", ".info"}
	c := &counting{Memory: m}
	url := start(t, c)
	m.Lookups = 0
	for _, file := range files {
		if got := ask(t, url, "/example.com/!part/@v/v1.2.3"+file); got != http.StatusOK {
			t.Errorf("%s: %d", file, got)
		}
	}
	if got := c.requests.Load(); got != 1 || m.Lookups != 1 {
		t.Errorf("%d keys and %d times contents were asked for", m.Lookups, got)
	}
	for _, lost := range m.Results[key(pinned.Version)].Entries {
		kept := m.Contents[lost.SHA256]
		delete(m.Contents, lost.SHA256)
		url := start(t, m)
		for _, file := range files {
			want := http.StatusOK
			if lost.Path == "module"+file {
				want = http.StatusNotFound
			}
			if got := ask(t, url, "/example.com/!part/@v/v1.2.3"+file); got != want {
				t.Errorf("%s while %s is lost: %d", file, lost.Path, got)
			}
		}
		m.Contents[lost.SHA256] = kept
	}
}

// Modules are asked for one by one only until the cache has all, and one that is not here, or is another, is not stored.
func TestOnlyWholeModulesAreStored(t *testing.T) {
	t.Parallel()
	cached, pinned := moduleCache(t)
	other := module.Pinned{Version: module.Version{Path: "example.com/other", Version: "v1.0.0"}, Sum: pinned.Sum}
	changed := pinned
	changed.Sum = "h1:another="
	m := cachetest.New()
	for _, modules := range [][]module.Pinned{{other}, {changed}} {
		if err := Store(t.Context(), m, cached, modules); err != nil || len(m.Results) > 0 {
			t.Errorf("%v: %v, %v", modules, err, m.Results)
		}
	}
	goModOnly := module.Pinned{Version: other.Version, GoModSum: pinned.GoModSum}
	for range 2 {
		m.Lookups = 0
		if err := Store(t.Context(), m, cached, []module.Pinned{pinned, goModOnly}); err != nil || len(m.Results) != 2 {
			t.Fatalf("%v, %v", err, m.Results)
		}
	}
	if m.Lookups != 1 {
		t.Errorf("the second time, %d keys were asked for", m.Lookups)
	}
}
