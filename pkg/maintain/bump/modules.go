package bump

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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

// runner returns a function that runs a Go in a folder, and returns what that prints, also if it fails.
func runner(g *toolchain.Go) func(ctx context.Context, dir string, args ...string) ([]byte, error) {
	return func(ctx context.Context, dir string, args ...string) ([]byte, error) {
		var stdout bytes.Buffer
		var stderr tail.Lines
		c := g.Command(ctx, dir, "", "", args...)
		c.Env = append(c.Env, "GOFLAGS=-mod=mod")
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

// A got is a module that was fetched.
type got struct {
	requirement
	Dir  string
	Sum  string
	mod  *modfile.File // its go.mod
	info info
}

// info is what a proxy knows about a version.
type info struct {
	Time   time.Time
	Origin struct{ VCS, Hash string }
}

// An Unavailable names modules that are not available, each with the reason.
type Unavailable struct {
	Modules []requirement
	Reasons []string
}

func (e *Unavailable) Error() string {
	var b strings.Builder
	b.WriteString("these modules are not available:")
	for i, m := range e.Modules {
		fmt.Fprintf(&b, "\n  %s: %s", m, e.Reasons[i])
	}
	return b.String()
}

// add records a module with what the go command said about it, in one line and without the module's name.
func (e *Unavailable) add(m requirement, reason string) {
	reason = strings.TrimPrefix(strings.ReplaceAll(strings.TrimSpace(tail.Redact(reason)), "\n\t", ": "), m.String()+": ")
	e.Modules, e.Reasons = append(e.Modules, m), append(e.Reasons, reason)
}

func (e *Unavailable) err() error {
	if len(e.Modules) == 0 {
		return nil
	}
	return e
}

// fetch gets modules into the module cache. If some are not available, the error is an *Unavailable with all of them.
func (p *proxy) fetch(ctx context.Context, modules ...requirement) ([]got, error) {
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
	var all []got
	var bad Unavailable
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var m struct{ Path, Version, Error, Dir, Sum, GoMod, Info string }
		if err := d.Decode(&m); err != nil {
			return nil, fmt.Errorf("go mod download: %w", err)
		}
		g := got{requirement: requirement{Path: m.Path, Version: m.Version}, Dir: m.Dir, Sum: m.Sum}
		if m.Error != "" {
			bad.add(g.requirement, m.Error)
			continue
		}
		if err := g.read(m.GoMod, m.Info); err != nil {
			return nil, err
		}
		all = append(all, g)
	}
	if err != nil && len(bad.Modules) == 0 { // such as a go command that was killed after some modules
		return nil, err
	}
	return all, bad.err()
}

func (g *got) read(goMod, infoFile string) error {
	data, err := os.ReadFile(goMod)
	if err != nil {
		return err
	}
	if g.mod, err = modfile.ParseLax(goMod, data, nil); err != nil {
		return err
	}
	// ParseLax leaves out what only counts in the main module, such as replacements, which are wanted here.
	if full, err := modfile.Parse(goMod, data, nil); err == nil {
		g.mod = full
	}
	if data, err = os.ReadFile(infoFile); err != nil {
		return err
	}
	if err := json.Unmarshal(data, &g.info); err != nil {
		return fmt.Errorf("%s: %w", infoFile, err)
	}
	return nil
}

// A versionInfo is what a proxy says about a version.
type versionInfo struct {
	Path, Version string
	GoVersion     string
	Versions      []string // without pre-releases, if they were asked for
	Error         *struct{ Err string }
}

// look asks about versions without fetching them: PATH@VERSION or PATH@latest, and flags before them. What is not there, or refused,
// has an Error; a proxy that does not answer is an error of look.
func (p *proxy) look(ctx context.Context, args ...string) ([]versionInfo, error) {
	out, err := p.run(ctx, p.dir, append([]string{"list", "-m", "-e", "-json=Path,Version,GoVersion,Versions,Error"}, args...)...)
	if err != nil && len(bytes.TrimSpace(out)) == 0 {
		return nil, err
	}
	var all []versionInfo
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var k versionInfo
		if err := d.Decode(&k); err != nil {
			return nil, fmt.Errorf("go list -m: %w", err)
		}
		if k.Error != nil && !absent(k.Error.Err) {
			asked := k.Path + "@" + k.Version
			return nil, fmt.Errorf("ask for %s: %s", asked, strings.TrimPrefix(tail.Redact(strings.TrimSpace(k.Error.Err)), asked+": "))
		}
		all = append(all, k)
	}
	if err != nil && !slices.ContainsFunc(all, func(k versionInfo) bool { return k.Error != nil }) {
		return nil, err
	}
	return all, nil
}

// absent reports whether the go command's error says that there is no such version, or that the proxy refuses it, rather than that
// nobody answered.
func absent(text string) bool {
	return slices.ContainsFunc([]string{
		"404 Not Found", "403 Forbidden", "410 Gone", "unknown revision", "no matching versions", "no such file or directory",
	}, func(part string) bool { return strings.Contains(text, part) })
}

// patches returns the versions of a module from one on that differ in their last number only, oldest first. format has %d for
// that number. A proxy's list of versions is not complete, so patches asks for one after the other, until two are missing.
func (p *proxy) patches(ctx context.Context, path, format string, from int) ([]string, error) {
	var versions []string
	for next, missing := from, 0; missing < 2; {
		var asked []string
		for range 4 {
			asked = append(asked, path+"@"+fmt.Sprintf(format, next))
			next++
		}
		found, err := p.look(ctx, asked...)
		if err != nil {
			return nil, err
		}
		for _, k := range found {
			if k.Error != nil {
				if missing++; missing == 2 {
					return versions, nil
				}
				continue
			}
			missing = 0
			versions = append(versions, k.Version)
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("go list -m %s: no answer", asked[0])
		}
	}
	return versions, nil
}
