package codegen

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/mod/sumdb/dirhash"

	"slipway.build/pkg/make/toolchain"
	"slipway.build/pkg/mechanism/child"
	"slipway.build/pkg/mechanism/tail"
)

// Folders of the modules that the generators are compiled from, relative to the tree's root.
const (
	Module   = "build/codegen"
	Bindings = "build/codegen/bindings"
)

// Modules lists the folders of the modules that the generators are compiled from.
func Modules() []string { return []string{Module, Bindings} }

// gogoProto is the file with gogoproto's options, which every generated.proto imports while it is compiled.
const (
	gogo      = "github.com/gogo/protobuf"
	gogoProto = "gogoproto/gogo.proto"
)

// Tools are the compiled generators, ready to run.
type Tools struct {
	Go  *toolchain.Go
	Dir string // holds bin/ and include/

	mu   sync.Mutex
	help map[string]string // by program: what its --help prints
}

// NewTools returns the generators of the tree in root. It compiles them unless that was done before. It reports what takes
// long to progress.
func NewTools(ctx context.Context, root string, g *toolchain.Go, progress func(string)) (*Tools, error) {
	key, err := toolsKey(root, g.Version)
	if err != nil {
		return nil, err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	t := &Tools{Go: g, Dir: filepath.Join(cache, "slipway", "codegen", key), help: map[string]string{}}
	now := time.Now()
	if err := os.Chtimes(t.Dir, now, now); err == nil { // it is there, and was used
		return t, nil
	}
	progress("compiling the generators, once for this version of Kubernetes and Go")
	if err := os.MkdirAll(filepath.Dir(t.Dir), 0o755); err != nil {
		return nil, err
	}
	sweep(filepath.Dir(t.Dir), now)
	tmp, err := os.MkdirTemp(filepath.Dir(t.Dir), ".compile-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	if err := compileTools(ctx, root, g, tmp); err != nil {
		return nil, err
	}
	if err := os.Rename(tmp, t.Dir); err != nil {
		if _, stat := os.Stat(t.Dir); stat != nil { // else another process was faster
			return nil, err
		}
	}
	return t, nil
}

// kept is how long generators stay in the cache folder after they were used.
const kept = 30 * 24 * time.Hour

// sweep removes generators that were not used for long, and what killed compilations left behind. They are renamed first: a kill in the
// middle leaves no half of the generators under a name that is used.
func sweep(dir string, now time.Time) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && now.Sub(info.ModTime()) > kept {
			_ = os.Rename(filepath.Join(dir, e.Name()), filepath.Join(dir, unused+e.Name()))
		}
	}
	removed, _ := filepath.Glob(filepath.Join(dir, unused+"*"))
	for _, name := range removed {
		_ = os.RemoveAll(name)
	}
}

// unused begins the names of folders that are removed.
const unused = ".unused-"

// toolsKey returns the digest of all sources of the generators.
func toolsKey(root, goVersion string) (string, error) {
	sum, err := dirhash.HashDir(filepath.Join(root, filepath.FromSlash(Module)), Module, dirhash.Hash1)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%s is not there, which says from which modules the generators are compiled: %w", Module, err)
	}
	return digest(fmt.Sprintln(goVersion, runtime.GOOS, runtime.GOARCH, toolFlags, sum)), err
}

// digest names a content in the cache folder.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])[:20]
}

var toolFlags = []string{"-trimpath", "-buildvcs=false", "-mod=readonly", "-ldflags=-s -w"}

// compileTools compiles the tools of both modules into dir/bin, and copies into dir/include what protoc reads.
func compileTools(ctx context.Context, root string, g *toolchain.Go, dir string) error {
	bin := filepath.Join(dir, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		return err
	}
	for _, folder := range Modules() {
		from := filepath.Join(root, filepath.FromSlash(folder))
		args := append([]string{"build"}, toolFlags...)
		args = append(args, "-o", bin+string(filepath.Separator), "tool")
		if folder == Module {
			args = append(args, "./protoc")
		}
		c := g.Command(ctx, from, "", "", args...)
		c.Env = append(c.Env, "GOFLAGS=")
		if err := runChild(c); err != nil {
			return fmt.Errorf("compile the generators in %s: %w", folder, err)
		}
	}
	from, err := g.ModuleDir(ctx, filepath.Join(root, filepath.FromSlash(Module)), gogo, "-mod=readonly")
	if err != nil {
		return err
	}
	to := filepath.Join(dir, "include", filepath.FromSlash(gogo), filepath.FromSlash(gogoProto))
	data, err := os.ReadFile(filepath.Join(from, filepath.FromSlash(gogoProto)))
	if err != nil {
		return err
	}
	return write(to, data)
}

// runChild runs a program that ends with this process, and explains its failure by the last lines that it printed.
func runChild(c *exec.Cmd) error {
	var lines tail.Lines
	if c.Stdout == nil {
		c.Stdout = &lines
	}
	c.Stderr = &lines
	if err := child.Run(c, syscall.SIGKILL, nil); err != nil {
		return lines.Explain(err)
	}
	return nil
}

// A workdir is where generators run: the folder that they start in, and the environment in which they ask the go command for packages.
type workdir struct {
	dir    string
	env    []string // besides the toolchain's
	header string   // the file with the comment that generated files begin with; empty: none
}

// command prepares a run of a program in a folder. A name without a separator is that of a tool.
func (t *Tools) command(ctx context.Context, in workdir, name string, args ...string) *exec.Cmd {
	if !strings.ContainsRune(name, filepath.Separator) {
		name = filepath.Join(t.Dir, "bin", name)
	}
	from := t.Go.Command(ctx, in.dir, "", "")
	c := exec.CommandContext(ctx, name, args...)
	c.Dir = in.dir
	path := filepath.Join(t.Dir, "bin") + string(filepath.ListSeparator) + filepath.Join(t.Go.Root, "bin") + string(filepath.ListSeparator)
	c.Env = append(from.Env, "GOFLAGS=", "PATH="+path+os.Getenv("PATH"))
	c.Env = append(c.Env, in.env...)
	return c
}

// generate runs a generator, which gets the header.
func (t *Tools) generate(ctx context.Context, in workdir, name string, args ...string) error {
	if in.header != "" {
		args = append([]string{"--go-header-file=" + in.header}, args...)
	}
	return t.run(ctx, in, name, args...)
}

// run runs a program.
func (t *Tools) run(ctx context.Context, in workdir, name string, args ...string) error {
	return t.output(ctx, in, nil, name, args...)
}

// output runs a program and writes what it prints to w, unless that is nil.
func (t *Tools) output(ctx context.Context, in workdir, w io.Writer, name string, args ...string) error {
	c := t.command(ctx, in, name, args...)
	c.Stdout = w
	if err := runChild(c); err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(name), err)
	}
	return nil
}

// gocmd is the go command.
func (t *Tools) gocmd() string { return filepath.Join(t.Go.Root, "bin", "go") }

// build compiles a program of the code that is generated, such as one that prints the generated OpenAPI definitions. It returns
// the program's name.
func (t *Tools) build(ctx context.Context, in workdir, into, pkg string) (string, error) {
	program := filepath.Join(into, filepath.Base(pkg))
	err := t.run(ctx, in, t.gocmd(), "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", program, pkg)
	return program, err
}

// known returns those of the flags that this version of a generator knows.
func (t *Tools) known(ctx context.Context, name string, flags ...string) ([]string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.help[name] == "" {
		var out bytes.Buffer
		c := t.command(ctx, workdir{dir: t.Dir}, name, "--help")
		c.Stdout, c.Stderr = &out, &out
		if err := c.Run(); err != nil && out.Len() == 0 { // --help may end with an exit code
			return nil, fmt.Errorf("%s --help: %w", name, err)
		}
		t.help[name] = out.String()
	}
	var known []string
	for _, flag := range flags {
		word, _, _ := strings.Cut(flag, "=")
		if regexp.MustCompile(`(?m)(^|\s)` + regexp.QuoteMeta(word) + `(\s|$)`).MatchString(t.help[name]) {
			known = append(known, flag)
		}
	}
	return known, nil
}
