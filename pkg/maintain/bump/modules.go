package bump

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/modfile"

	"slipway.build/pkg/make/toolchain"
	"slipway.build/pkg/mechanism/tail"
)

// A proxy finds and fetches modules with the go command, so the user's proxies, caches and checksum database apply.
type proxy struct {
	run func(ctx context.Context, dir string, args ...string) ([]byte, error)
	dir string // with a go.mod of its own, so that no requirements are in the way
}

func newProxy(g *toolchain.Go) (*proxy, error) {
	dir, err := os.MkdirTemp("", "slipway-bump-")
	if err != nil {
		return nil, err
	}
	return &proxy{dir: dir, run: runner(g)}, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module slipway.invalid\n"), 0o666)
}

func (p *proxy) close() { _ = os.RemoveAll(p.dir) }

// runner returns a function that runs a Go in a folder, with more variables, and returns what that prints, also if it fails.
func runner(g *toolchain.Go, env ...string) func(ctx context.Context, dir string, args ...string) ([]byte, error) {
	return func(ctx context.Context, dir string, args ...string) ([]byte, error) {
		var stdout bytes.Buffer
		var stderr tail.Lines
		c := g.Command(ctx, dir, "", "", args...)
		c.Env = append(append(c.Env, "GOFLAGS=-mod=mod"), env...)
		c.Stdout, c.Stderr = &stdout, &stderr
		err := c.Run()
		switch {
		case ctx.Err() != nil:
			err = context.Cause(ctx)
		case err != nil:
			err = stderr.Explain(fmt.Errorf("go %s: %w", strings.Join(args[:min(2, len(args))], " "), err))
		}
		return stdout.Bytes(), err
	}
}

// decode reads the values that a go command prints as JSON, one after the other.
func decode[T any](out []byte) ([]T, error) {
	var all []T
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var value T
		if err := d.Decode(&value); err != nil {
			return nil, fmt.Errorf("read the go command's answer: %w", err)
		}
		all = append(all, value)
	}
	return all, nil
}

// A fetched module is in the module cache.
type fetched struct {
	requirement
	Dir  string
	Sum  string
	mod  *modfile.File
	info info
}

// An info is what a proxy knows about a version.
type info struct {
	Time   time.Time
	Origin struct{ VCS, Hash string }
}

// A missing module is one that is not available.
type missing struct {
	requirement
	reason string
}

// An unavailableError names modules that are not available.
type unavailableError []missing

func (e unavailableError) Error() string {
	text := "these modules are not available:"
	for _, m := range e {
		text += "\n  " + m.String() + ": " + m.reason
	}
	return text
}

// unusable reports whether an error says that a version is not available, or that the Go that compiles is too old for it.
func unusable(err error) bool {
	var unavailable unavailableError
	var tooNew tooNewError
	return errors.As(err, &unavailable) || errors.As(err, &tooNew)
}

// fetch gets modules into the module cache. If some are not available, the error is an unavailableError with all of them.
func (p *proxy) fetch(ctx context.Context, modules ...requirement) ([]fetched, error) {
	if len(modules) == 0 {
		return nil, nil
	}
	args := []string{"mod", "download", "-json"}
	for _, m := range modules {
		args = append(args, m.String())
	}
	out, err := p.run(ctx, p.dir, args...)
	if len(bytes.TrimSpace(out)) == 0 || ctx.Err() != nil {
		return nil, errors.Join(err, ctx.Err()) // otherwise each module says what is wrong with it
	}
	answers, decodeErr := decode[struct{ Path, Version, Error, Dir, Sum, GoMod, Info string }](out)
	if decodeErr != nil {
		return nil, decodeErr
	}
	var all []fetched
	var bad unavailableError
	for _, a := range answers {
		f := fetched{requirement: requirement{Path: a.Path, Version: a.Version}, Dir: a.Dir, Sum: a.Sum}
		if a.Error != "" { // in one line and without the module's name
			reason := strings.ReplaceAll(strings.TrimSpace(tail.Redact(a.Error)), "\n\t", ": ")
			bad = append(bad, missing{f.requirement, strings.TrimPrefix(reason, f.String()+": ")})
			continue
		}
		if err := f.read(a.GoMod, a.Info); err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	if len(bad) > 0 {
		return all, bad
	}
	return all, err // such as of a go command that was killed after some modules
}

func (f *fetched) read(goMod, infoFile string) error {
	data, err := os.ReadFile(goMod)
	if err != nil {
		return err
	}
	// ParseLax leaves out what only counts in the main module, such as replacements, which are wanted here.
	if f.mod, err = modfile.Parse(goMod, data, nil); err != nil {
		if f.mod, err = modfile.ParseLax(goMod, data, nil); err != nil {
			return err
		}
	}
	if data, err = os.ReadFile(infoFile); err != nil {
		return err
	}
	if err := json.Unmarshal(data, &f.info); err != nil {
		return fmt.Errorf("%s: %w", infoFile, err)
	}
	return nil
}

// goMods reads the go.mod files of versions, without their code.
func (p *proxy) goMods(ctx context.Context, modules []requirement) ([]*modfile.File, error) {
	args := []string{"list", "-m", "-json=Path,Version,GoMod"}
	for _, m := range modules {
		args = append(args, m.String())
	}
	out, err := p.run(ctx, p.dir, args...)
	if err != nil {
		return nil, err
	}
	found, err := decode[struct{ Path, Version, GoMod string }](out)
	var files []*modfile.File
	for _, f := range found {
		data, err := os.ReadFile(f.GoMod)
		if err != nil {
			return nil, fmt.Errorf("read the go.mod of %s@%s: %w", f.Path, f.Version, err)
		}
		file, err := modfile.ParseLax(f.GoMod, data, nil)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return files, err
}
