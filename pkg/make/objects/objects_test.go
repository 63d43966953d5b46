package objects

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/klauspost/compress/zstd"

	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/action/cachetest"
)

// compile compiles a program with a cache of Go. It returns what the go command says about it and the build IDs of its packages.
func compile(t *testing.T, dir, cache string) (said string, ids []string) {
	t.Helper()
	run := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOCACHE="+cache, "GOFLAGS=", "GOCACHEPROG=", "GOWORK=off", "CGO_ENABLED=0")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("go %q: %v\n%s", args, err, out)
		}
		return string(out)
	}
	said = run("build", "-v", "-trimpath", "-buildvcs=false", "-o", filepath.Join(t.TempDir(), "program"), ".")
	return said, strings.Fields(run("list", "-deps", "-export", "-f", "{{.BuildID}}", "-trimpath", "-buildvcs=false", "."))
}

// program writes a program that needs few packages.
func program(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.com/program\n\ngo 1.24\n", "main.go": "package main\n\nimport _ \"example.com/program/part\"\n\n" +
			"func main() {}\n",
		"part/part.go": "package part\n",
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755),
			os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func share(t *testing.T, m *cachetest.Memory, foreign string) *Share {
	return &Share{Cache: m, Folder: foreign, Scratch: t.TempDir(), Progress: func(int64, int64) {},
		Compile: func(int) time.Duration { return time.Hour }}
}

// What one machine has compiled, another does not compile. What the other has changed, it does.
func TestObjectsOfAnotherMachineAreUsed(t *testing.T) {
	t.Parallel()
	dir, foreign := program(t), filepath.Join(t.TempDir(), "made", "when", "needed")
	// The user's cache most likely has what the program needs. To compile that once more takes ten seconds of processor time.
	out, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal("go env:", err)
	}
	first := strings.TrimSpace(string(out))
	said, ids := compile(t, dir, first)
	if len(ids) < 20 {
		t.Fatalf("it compiled %q, of %d packages", said, len(ids))
	}
	m := cachetest.New()
	if err := share(t, m, foreign).Store(t.Context(), first, []Binary{{"key", ids}}); err != nil {
		t.Fatal(err)
	}
	if got := len(m.Results["key"].Entries); got != len(ids) {
		t.Fatalf("the list has %d objects, want %d", got, len(ids))
	}
	s := share(t, m, foreign)
	found, err := s.Find(t.Context(), [][]string{{"none", "key"}, {"none"}})
	if err != nil || len(found) != len(ids) {
		t.Fatalf("%d objects, %v", len(found), err)
	}
	if found.MostlyIn(InFolder(foreign)) || !found.MostlyIn(InFolder(first)) || len(found.Missing(InFolder(first))) > 0 ||
		len(found.Files(foreign)) > 0 {
		t.Error("the folders have other objects")
	}
	got, err := s.Fetch(t.Context(), found)
	if err != nil || !got.Ready || got.Objects != len(ids) || got.Bytes == 0 {
		t.Fatalf("%+v, %v", got, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte("package main\n\nimport _ \"example.com/program/part\"\n\n"+
		"func main() { println() }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if said, _ := compile(t, dir, foreign); said != "example.com/program\n" {
		t.Errorf("it compiled %q, want the package that was edited alone", said)
	}
	asked := m.Fetches
	if got, err = s.Fetch(t.Context(), found); err != nil || !got.Ready || got.Objects != 0 || m.Fetches != asked {
		t.Errorf("the second time: %+v, %v", got, err)
	}

	// The files alone are a cache of Go, too.
	sent, entries := t.TempDir(), map[string]bool{}
	for _, name := range found.Files(foreign) {
		entries[name] = true
		data, err := os.ReadFile(filepath.Join(foreign, name))
		if err := errors.Join(err, os.MkdirAll(filepath.Dir(filepath.Join(sent, name)), 0o777),
			os.WriteFile(filepath.Join(sent, name), data, 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	if said, _ := compile(t, dir, sent); said != "example.com/program\n" {
		t.Errorf("with the files alone, it compiled %q", said)
	}
	if !found.MostlyIn(Listed(entries)) || found.MostlyIn(Listed(nil)) {
		t.Error("a cache with all entries, or with none, is taken for another")
	}
}

// fetchAll finds and fetches the objects under the key "key".
func fetchAll(t *testing.T, m *cachetest.Memory, foreign string) (Fetched, error) {
	t.Helper()
	s := share(t, m, foreign)
	found, err := s.Find(t.Context(), [][]string{{"key"}})
	if err != nil {
		t.Fatal(err)
	}
	return s.Fetch(t.Context(), found)
}

// one stores a list with one object, and returns its output.
func one(t *testing.T, m *cachetest.Memory) digest {
	t.Helper()
	o := object{action: sha256.Sum256([]byte("action")), output: sha256.Sum256([]byte("bytes")), size: 5}
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	data := z.EncodeAll([]byte("bytes"), nil)
	o.blob, o.packed = fmt.Sprintf("%x", sha256.Sum256(data)), int64(len(data))
	m.Results["key"], m.Contents[o.blob] = &action.Result{Entries: []action.Entry{o.entry()}}, data
	return o.output
}

// files returns the files in a folder.
func files(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// The go command does not look at bytes, so nothing may come into its cache that is not what was stored.
func TestOtherBytesAreNotPlaced(t *testing.T) {
	t.Parallel()
	m := cachetest.New()
	output := one(t, m)
	entry := &m.Results["key"].Entries[0]
	path := entry.Path
	for _, size := range []string{"4", "6", "0"} {
		entry.Path = strings.TrimSuffix(path, "5") + size
		foreign := t.TempDir()
		if got, err := fetchAll(t, m, foreign); err == nil || got.Objects != 0 ||
			!slices.Equal(files(t, foreign), []string{outputFile(foreign, nothing)}) {
			t.Errorf("%s bytes: %+v, %v, %q", size, got, err, files(t, foreign))
		}
	}
	entry.Path = path
	packed := m.Contents[entry.SHA256]
	for i := range packed {
		m.Change = func(b []byte) []byte { return b[:i] }
		foreign := t.TempDir()
		if got, err := fetchAll(t, m, foreign); err == nil || got.Objects != 0 {
			t.Errorf("%d bytes: %+v, %v", i, got, err)
		}
	}
	m.Change = nil
	foreign := t.TempDir()
	_, err := fetchAll(t, m, foreign)
	if data, _ := os.ReadFile(outputFile(foreign, output)); err != nil || string(data) != "bytes" {
		t.Errorf("it is %q, %v", data, err)
	}
}

// A cache of Go on a disk with a fault is not shared.
func TestBytesWithAnotherDigestAreNotStored(t *testing.T) {
	t.Parallel()
	m := cachetest.New()
	output := one(t, m)
	cache := t.TempDir()
	if _, err := fetchAll(t, m, cache); err != nil {
		t.Fatal(err)
	}
	action := sha256.Sum256([]byte("action"))
	id := base64.RawURLEncoding.EncodeToString(action[:15]) + "/of its content"
	for text, want := range map[string]int{"bytes": 1, "Bytes": 0} {
		if err := os.WriteFile(outputFile(cache, output), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		m := cachetest.New()
		if err := share(t, m, t.TempDir()).Store(t.Context(), cache, []Binary{{"key", []string{id}}}); err != nil {
			t.Fatal(err)
		}
		if got := len(m.Results["key"].Entries); got != want {
			t.Errorf("%s: the list has %d objects, want %d", text, got, want)
		}
	}
}

// The package of a large API has more bytes than a decoder may keep in memory.
func TestLargeObjectsAreShared(t *testing.T) {
	t.Parallel()
	data := bytes.Repeat([]byte("a package of a large API\n"), 3<<20) // 75 MiB
	cache, action, output := t.TempDir(), sha256.Sum256([]byte("action")), sha256.Sum256(data)
	to, err := newPlacer(cache, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	z.Reset(&packed)
	if _, err := z.Write(data); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	if err := to.place(object{action: action, output: output, size: int64(len(data))}, packed.Bytes()); err != nil {
		t.Fatal(err)
	}
	m := cachetest.New()
	id := base64.RawURLEncoding.EncodeToString(action[:15]) + "/of its content"
	if err := share(t, m, t.TempDir()).Store(t.Context(), cache, []Binary{{"key", []string{id}}}); err != nil {
		t.Fatal(err)
	}
	foreign := t.TempDir()
	if got, err := fetchAll(t, m, foreign); err != nil || got.Objects != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	if got, err := os.ReadFile(outputFile(foreign, output)); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d of %d bytes, %v", len(got), len(data), err)
	}
}

func TestListsThatCannotBeReadFetchNothing(t *testing.T) {
	t.Parallel()
	sum := strings.Repeat("ab", 32)
	for _, path := range []string{
		"", "a/b/c", sum + "/" + sum, sum + "/" + sum + "/-1", sum + "/" + sum + "/1/", sum[2:] + "/" + sum + "/1",
		sum + "/" + sum + "00/1", "../" + sum + "/1",
	} {
		m := cachetest.New()
		m.Results["key"] = &action.Result{Entries: []action.Entry{{Path: path, Kind: action.RegularFile, SHA256: sum, Size: 1}}}
		found, err := share(t, m, t.TempDir()).Find(t.Context(), [][]string{{"key"}})
		if !errors.Is(err, errList) || len(found) > 0 {
			t.Errorf("%q: %+v, %v", path, found, err)
		}
	}
}

// What arrived before the server went away is used.
func TestServerThatGoesAwayLeavesTheRestToTheCompiler(t *testing.T) {
	t.Parallel()
	m := cachetest.New()
	one(t, m)
	m.Err = errors.New("gone")
	foreign := t.TempDir()
	got, err := fetchAll(t, m, foreign)
	if !errors.Is(err, m.Err) || !got.Ready || got.Objects != 0 || !slices.Equal(files(t, foreign), []string{outputFile(foreign, nothing)}) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := fetchAll(t, m, filepath.Join(os.DevNull, "folder")); err == nil || got.Ready {
		t.Errorf("without room: %+v, %v", got, err)
	}
}

func TestFetchingThatTakesLongerThanCompilingIsGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := cachetest.New()
		one(t, m)
		m.Stalled = true
		s := share(t, m, t.TempDir())
		s.Compile = func(int) time.Duration { return time.Minute }
		start := time.Now()
		found, err := s.Find(t.Context(), [][]string{{"key"}})
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.Fetch(t.Context(), found)
		slow := new(SlowError)
		if !errors.As(err, &slow) || slow.Compile != time.Minute || slow.Fetch < time.Minute || !got.Ready || time.Since(start) != patience {
			t.Errorf("after %v: %+v, %v", time.Since(start), got, err)
		}
	})
}

func TestPartsHoldEveryObjectOnce(t *testing.T) {
	t.Parallel()
	var all []object
	for i := range 1000 {
		all = append(all, object{packed: int64(i%7) << 20, size: int64(i)})
	}
	cut := parts(all)
	if got := slices.Concat(cut...); !slices.Equal(got, all) {
		t.Error("the parts hold other objects")
	}
	for _, part := range cut {
		var size int64
		for _, o := range part {
			size += o.packed
		}
		if len(part) > partCount || size > partSize && len(part) > 1 {
			t.Errorf("a part has %d objects, %d bytes", len(part), size)
		}
	}
}
