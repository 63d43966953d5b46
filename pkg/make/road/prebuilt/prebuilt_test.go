package prebuilt

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"slipway.build/pkg/make/objects"
	"slipway.build/pkg/make/road"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/action/cachetest"
	"slipway.build/pkg/tree/catalog"
)

// A report keeps what users see. It is a road.Sharing.
type report struct {
	cache action.Cache
	lines []string
}

func (r *report) event(e action.Event) {
	if e.Kind == action.Output || e.Kind == action.Step {
		r.lines = append(r.lines, e.Text)
	}
}
func (r *report) Cache() action.Cache                                            { return r.cache }
func (*report) Use(action.Origin)                                                {}
func (*report) UploadAsync(context.Context, func(context.Context, string) error) {}

// packages returns those of a compilation in a new tree, whose module has files.
func packages(t *testing.T, files map[string]string, change func(*Packages)) (*Packages, *report) {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		file := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	r := &report{cache: cachetest.New()}
	p := &Packages{Root: root, Go: "go1.26.8", Report: r.event, Slow: new(atomic.Bool), Compilation: road.Compilation{
		Spec:    road.Spec{Module: "cmd", Platform: catalog.Platform{OS: "linux", Arch: "amd64"}, Tags: []string{"selinux"}},
		Scratch: t.TempDir(), Shared: r,
	}}
	if change != nil {
		change(p)
	}
	return p, r
}

// An engine may be a larger machine than this one.
func TestEstimateCountsTheCompilersCPUs(t *testing.T) {
	t.Parallel()
	two := (&Packages{CPUs: 2}).compileTime(1414)
	if eight := (&Packages{CPUs: 8}).compileTime(1414); two != 305*time.Second/2 || eight != two/4 {
		t.Errorf("%v by two CPUs, %v by eight", two, eight)
	}
	if unknown, one := (&Packages{}).compileTime(1), (&Packages{CPUs: 1}).compileTime(1); unknown != one {
		t.Errorf("%v by an unknown number of CPUs", unknown)
	}
}

var module = map[string]string{"cmd/go.mod": "module m", "cmd/go.sum": "sums", "patched/go.mod": "module m // patched",
	"patched/go.sum": "sums"}

func TestKeysHoldWhatDecidesPackages(t *testing.T) {
	t.Parallel()
	bin := road.Binary{Package: "./kubectl"}
	keys := func(files map[string]string, bin road.Binary, change func(*Packages)) []string {
		t.Helper()
		p, _ := packages(t, files, change)
		keys, err := p.Keys(bin)
		if err != nil {
			t.Fatal(err)
		}
		return keys
	}
	plain := keys(module, bin, nil)
	if len(plain) != 1 {
		t.Fatalf("keys %q", plain)
	}
	for what, other := range map[string][]string{
		"Go":        keys(module, bin, func(p *Packages) { p.Go = "go1.26.9" }),
		"platform":  keys(module, bin, func(p *Packages) { p.Compilation.Platform.Arch = "arm64" }),
		"tags":      keys(module, bin, func(p *Packages) { p.Compilation.Tags = nil }),
		"GOFLAGS":   keys(module, bin, func(p *Packages) { p.Compilation.Options.GoFlags = "-race" }),
		"debug":     keys(module, bin, func(p *Packages) { p.Compilation.Options.Debug = true }),
		"package":   keys(module, road.Binary{Package: "./kubelet"}, nil),
		"tests":     keys(module, road.Binary{Package: "./kubectl", Test: true}, nil),
		"go.mod":    keys(map[string]string{"cmd/go.mod": "module other", "cmd/go.sum": "sums"}, bin, nil),
		"go.sum":    keys(map[string]string{"cmd/go.mod": "module m", "cmd/go.sum": "others"}, bin, nil),
		"no go.sum": keys(map[string]string{"cmd/go.mod": "module m"}, bin, nil),
		"its module": keys(map[string]string{"images/dns/go.mod": "module m", "images/dns/go.sum": "sums"}, bin,
			func(p *Packages) { p.Compilation.Module = "images/dns" }),
	} {
		if slices.Equal(plain, other) {
			t.Errorf("the key is the same with another %s", what)
		}
	}
	for what, same := range map[string][]string{
		"folder":    keys(module, bin, nil),
		"stamp":     keys(module, bin, func(p *Packages) { p.Compilation.LDFlags = "-X=version=2" }),
		"GOLDFLAGS": keys(module, bin, func(p *Packages) { p.Compilation.Options.LDFlags = "-w" }),
	} {
		if !slices.Equal(plain, same) {
			t.Errorf("the key is another one with another %s", what)
		}
	}
	patched := func(p *Packages) { p.Compilation.ModFile = "patched/go.mod" }
	absolute := func(p *Packages) { p.Compilation.ModFile = filepath.Join(p.Root, "patched/go.mod") }
	if got := keys(module, bin, patched); len(got) != 2 || got[0] == plain[0] || got[1] != plain[0] ||
		!slices.Equal(got, keys(module, bin, absolute)) {
		t.Errorf("with patches, the keys are %q, and without %q", got, plain)
	}
}

// What cannot be fetched is said, and compiled.
func TestWhatCannotBeFetchedIsSaid(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	t.Setenv("HOME", cache)
	command := road.GoCommand{Targets: []road.Target{{Binary: road.Binary{Package: "./kubectl"}}}}
	sum := strings.Repeat("ab", 32)
	store := func(p *Packages, r *report, path string) {
		t.Helper()
		keys, err := p.Keys(command.Targets[0].Binary)
		if err != nil {
			t.Fatal(err)
		}
		r.cache.(*cachetest.Memory).Results[keys[0]] = &action.Result{Entries: []action.Entry{{Path: path, Kind: action.RegularFile,
			SHA256: sum, Size: 1}}}
	}

	p, r := packages(t, module, nil)
	if found := p.Find(t.Context(), command); len(found) > 0 || len(r.lines) > 0 {
		t.Errorf("without a list: %v, %q", found, r.lines)
	}
	store(p, r, "no list")
	if found := p.Find(t.Context(), command); len(found) > 0 || len(r.lines) != 1 || !strings.Contains(r.lines[0], "are compiled here") {
		t.Errorf("of a list that cannot be read: %v, %q", found, r.lines)
	}

	p, r = packages(t, module, nil)
	store(p, r, sum+"/"+sum+"/1")
	found := p.Find(t.Context(), command)
	if len(found) != 1 || len(r.lines) > 0 {
		t.Fatalf("%v, %q", found, r.lines)
	}
	folder, err := Folder()
	if err != nil || !strings.HasPrefix(folder, cache) {
		t.Fatalf("the folder is %q, %v", folder, err)
	}
	// The contents are gone.
	if !p.Fetch(t.Context(), folder, found) || found.MostlyIn(objects.InFolder(folder)) || len(r.lines) != 1 ||
		!strings.Contains(r.lines[0], "are compiled here") {
		t.Errorf("without the contents: %q", r.lines)
	}

	p.Slow.Store(true)
	if found := p.Find(t.Context(), command); len(found) > 0 {
		t.Errorf("a slow cache is asked again: %v", found)
	}
	p.Slow.Store(false)
	p.Compilation.Shared = nil
	if found := p.Find(t.Context(), command); len(found) > 0 {
		t.Errorf("without a cache: %v", found)
	}
}

// A folder that cannot be made is no reason to fail.
func TestCacheThatCannotBeMadeIsNotUsed(t *testing.T) {
	t.Parallel()
	p, r := packages(t, module, nil)
	if p.Fetch(t.Context(), filepath.Join(os.DevNull, "cache"), nil) || len(r.lines) != 1 {
		t.Errorf("it is used: %q", r.lines)
	}
}
