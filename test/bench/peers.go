package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"go.yaml.in/yaml/v3"

	"slipway.build/pkg/make/road"
)

// peerRows compare slipway with other tools that make the same binaries, with the same flags, by the same Go.
func peerRows() []*Row {
	var rows []*Row
	for _, p := range []struct{ name, makes string }{
		{"goreleaser", "goreleaser release --snapshot: the same binaries, one tarball of them, checksums"},
		{"ko", "ko build: the same binaries in images of one layer each, bills of materials"},
		{"make", "make with go build and tar czf: the same binaries, one tarball of them"},
	} {
		rows = append(rows,
			&Row{Name: p.name + "-noop", Unit: "s", What: "quick-release, nothing to do", With: p.makes, Wanted: Bound{AtMost, 1},
				measure: peerNoop(p.name)},
			&Row{Name: p.name + "-edit", Unit: "s", What: "quick-release, a line of kube-scheduler edited", With: p.makes, Wanted: Bound{AtMost, 1},
				measure: peerEdit(p.name)},
			&Row{Name: p.name + "-cold", Unit: "s", What: "quick-release, nothing there but modules", With: p.makes, Wanted: Bound{AtMost, 1.15},
				measure: peerCold(p.name)})
	}
	return rows
}

// A peer is another tool, with a clone of its own.
type peer struct {
	*sides
	clone   string
	goCache string                              // GOCACHE; "" is the user's
	prepare func(road.Spec) error               // writes its configuration
	command func(ctx context.Context) *exec.Cmd // makes what it makes of the clone
	binary  func(name string) ([]byte, error)   // returns a binary that it has made
}

// peer returns a tool that has made everything once, unmeasured.
func (b *bench) peer(ctx context.Context, tool string) (*peer, error) {
	if p := b.peers[tool]; p != nil {
		return p, nil
	}
	s, err := b.warmed(ctx)
	if err != nil {
		return nil, err
	}
	p, err := s.newPeer(ctx, tool, filepath.Join(b.dir, "peers", tool))
	if err != nil {
		return nil, err
	}
	b.say("  %s makes everything once", tool)
	if _, err := p.run(ctx); err != nil {
		return nil, err
	}
	if b.peers == nil {
		b.peers = map[string]*peer{}
	}
	b.peers[tool] = p
	return p, nil
}

// newPeer returns a tool that has made nothing yet.
func (s *sides) newPeer(ctx context.Context, tool, clone string) (*peer, error) {
	p := &peer{sides: s, clone: clone}
	if err := s.git(ctx, s.root, "clone", "--quiet", s.ours, p.clone); err != nil {
		return nil, err
	}
	switch tool {
	case "goreleaser":
		return p, p.goreleaser(ctx)
	case "ko":
		return p, p.ko(ctx)
	default:
		p.plainMake()
		return p, nil
	}
}

// run measures the tool.
func (p *peer) run(ctx context.Context) (Sample, error) {
	spec, err := p.spec(ctx, p.platform)
	if err == nil {
		err = p.prepare(spec)
	}
	if err != nil {
		return Sample{}, err
	}
	cmd := p.command(ctx)
	return p.bench.command(ctx, filepath.Base(cmd.Path), cmd)
}

// same checks that the tool has made slipway's binaries. Unless all was cold, that of the edited component has other edits.
func (p *peer) same() error {
	for _, b := range p.binaries {
		if b.Name == edited && p.goCache == "" {
			continue
		}
		theirs, err := p.binary(b.Name)
		if err != nil {
			return err
		}
		ours, err := os.ReadFile(p.ourBinary(p.platform, b.Name))
		if err != nil {
			return err
		}
		if !bytes.Equal(ours, theirs) {
			return fmt.Errorf("%s: %s has made another one than slipway", b.Name, filepath.Base(p.clone))
		}
	}
	return nil
}

// environment is that of the pinned Go.
func (p *peer) environment(ctx context.Context) []string {
	env := append(p.env[:len(p.env):len(p.env)], p.tool.Command(ctx, p.clone, "", "").Env...)
	if p.goCache != "" {
		env = append(env, "GOCACHE="+p.goCache)
	}
	return append(env, "PATH="+filepath.Join(p.tool.Root, "bin")+":"+os.Getenv("PATH"))
}

// program compiles a program of test/peers.
func (b *bench) program(ctx context.Context, pkg string) (string, error) {
	to := filepath.Join(b.dir, "programs") + string(filepath.Separator)
	if err := os.MkdirAll(to, 0o777); err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-o", to, pkg)
	cmd.Dir, cmd.Env = filepath.Join(b.root, "test", "peers"), append(os.Environ(), "GOFLAGS=", "CGO_ENABLED=0")
	if err := execute(ctx, cmd, nil); err != nil {
		return "", &missing{err}
	}
	return to + filepath.Base(strings.TrimSuffix(pkg, "/v2")), nil
}

// flags returns the flags of go build, and those of the linker.
func flags(s road.Spec) (plain []string, linker string) {
	for _, f := range s.BuildFlags() {
		if value, ok := strings.CutPrefix(f, "-ldflags="); ok {
			linker = value
		} else {
			plain = append(plain, f)
		}
	}
	return plain, linker
}

func writeYAML(name string, v any) error {
	data, err := yaml.Marshal(v)
	if err != nil {
		return err
	}
	return os.WriteFile(name, data, 0o644)
}

func (p *peer) goreleaser(ctx context.Context) error {
	program, err := p.program(ctx, "github.com/goreleaser/goreleaser/v2")
	if err != nil {
		return err
	}
	p.prepare = func(s road.Spec) error {
		plain, linker := flags(s)
		var builds []map[string]any
		for _, b := range p.binaries {
			builds = append(builds, map[string]any{
				"id": b.Name, "binary": b.Name, "dir": "cmd", "main": b.Package, "no_main_check": true, "env": []string{"CGO_ENABLED=0"},
				"goos": []string{p.platform.OS}, "goarch": []string{p.platform.Arch}, "flags": plain, "ldflags": []string{linker},
			})
		}
		return writeYAML(filepath.Join(p.clone, ".goreleaser.yaml"), map[string]any{
			"version": 2, "project_name": "kubernetes", "builds": builds,
			"archives": []map[string]any{{"formats": []string{"tar.gz"}}},
		})
	}
	p.command = func(ctx context.Context) *exec.Cmd {
		cmd := exec.CommandContext(ctx, program, "release", "--snapshot", "--clean")
		cmd.Dir, cmd.Env = p.clone, p.environment(ctx)
		return cmd
	}
	p.binary = func(name string) ([]byte, error) {
		built, err := filepath.Glob(filepath.Join(p.clone, "dist", name+"_*", name))
		if err != nil || len(built) != 1 {
			return nil, fmt.Errorf("goreleaser has made %d of %s: %w", len(built), name, err)
		}
		return os.ReadFile(built[0])
	}
	return nil
}

func (p *peer) plainMake() {
	p.prepare = func(s road.Spec) error {
		var packages []string
		for _, b := range p.binaries {
			packages = append(packages, b.Package)
		}
		build := road.ShellCommand("cmd", nil, append(append([]string{"go", "build"}, s.BuildFlags()...),
			append([]string{"-o", "../bin/"}, packages...)...)...)
		text := fmt.Sprintf("all: dist.tar.gz\nbin/%s: FORCE\n\t%s\ndist.tar.gz: bin/%s\n\ttar czf $@ bin\nFORCE:\n", edited,
			strings.ReplaceAll(build, "$", "$$"), edited)
		return os.WriteFile(filepath.Join(p.clone, "peer.mk"), []byte(text), 0o644)
	}
	p.command = func(ctx context.Context) *exec.Cmd {
		cmd := exec.CommandContext(ctx, "make", "-f", "peer.mk")
		cmd.Dir, cmd.Env = p.clone, p.environment(ctx)
		return cmd
	}
	p.binary = func(name string) ([]byte, error) { return os.ReadFile(filepath.Join(p.clone, "bin", name)) }
}

func (p *peer) ko(ctx context.Context) error {
	program, err := p.program(ctx, "github.com/google/ko")
	if err != nil {
		return err
	}
	base, err := p.serveBase()
	if err != nil {
		return err
	}
	layout := filepath.Join(p.clone, "oci")
	var plain []string
	p.prepare = func(s road.Spec) error {
		var linker string
		plain, linker = flags(s)
		return errors.Join(os.RemoveAll(layout), writeYAML(filepath.Join(p.clone, "cmd", ".ko.yaml"), map[string]any{
			"defaultBaseImage": base, "defaultPlatforms": []string{p.platform.String()}, "defaultLdflags": []string{linker},
			"defaultEnv": []string{"CGO_ENABLED=0"},
		}))
	}
	p.command = func(ctx context.Context) *exec.Cmd {
		args := []string{"build", "--push=false", "--oci-layout-path=" + layout}
		for _, b := range p.binaries {
			args = append(args, b.Package)
		}
		cmd := exec.CommandContext(ctx, program, args...)
		cmd.Dir = filepath.Join(p.clone, "cmd")
		cmd.Env = slices.DeleteFunc(p.environment(ctx), func(kv string) bool { return strings.HasPrefix(kv, "GOARM=") }) // ko refuses it
		// ko's defaultFlags do not count, since it adds -trimpath to each program's own.
		cmd.Env = append(cmd.Env, "GOFLAGS="+strings.Join(plain, " "), "KO_DOCKER_REPO="+filepath.Dir(base),
			"KOCACHE="+filepath.Join(p.clone, "kocache"))
		return cmd
	}
	p.binary = func(name string) ([]byte, error) { return inLayer(layout, "ko-app/"+name) }
	return nil
}

// serveBase serves an image without files, and returns its name. The registry ends with the process.
func (p *peer) serveBase() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	server := &http.Server{Handler: registry.New(registry.Logger(log.New(io.Discard, "", 0))), ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(l) }()
	base, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{OS: p.platform.OS, Architecture: p.platform.Arch,
		RootFS: v1.RootFS{Type: "layers"}})
	if err != nil {
		return "", err
	}
	ref, err := name.ParseReference(l.Addr().String() + "/base:1")
	if err != nil {
		return "", err
	}
	return ref.String(), remote.Write(ref, base)
}

// inLayer returns a file in a layer of an image layout.
func inLayer(layout, file string) ([]byte, error) {
	blobs, err := filepath.Glob(filepath.Join(layout, "blobs", "sha256", "*"))
	if err != nil {
		return nil, err
	}
	for _, blob := range blobs {
		if data, err := inTar(blob, file); err != nil || data != nil {
			return data, err
		}
	}
	return nil, fmt.Errorf("none of the %d files in %s has %s", len(blobs), layout, file)
}

// inTar returns a file in a compressed tarball, or nil if the tarball is none or does not have the file.
func inTar(tarball, file string) ([]byte, error) {
	f, err := os.Open(tarball)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, nil
	}
	for t := tar.NewReader(z); ; {
		h, err := t.Next()
		switch {
		case err == io.EOF:
			return nil, nil
		case err != nil:
			return nil, err
		case strings.TrimPrefix(h.Name, "/") == file:
			return io.ReadAll(t)
		}
	}
}

func peerNoop(tool string) func(context.Context, *bench, *Row) error {
	return func(ctx context.Context, b *bench, row *Row) error {
		p, err := b.peer(ctx, tool)
		if err != nil {
			return err
		}
		c := contest{
			ours:   func() (Sample, error) { return b.command(ctx, "make quick-release", p.make(ctx, "quick-release")) },
			theirs: func() (Sample, error) { return p.run(ctx) },
			after:  p.same,
		}
		if err := execute(ctx, p.make(ctx, "quick-release"), nil); err != nil { // another row may have edited
			return err
		}
		return c.rounds(b.n, row)
	}
}

func peerEdit(tool string) func(context.Context, *bench, *Row) error {
	return func(ctx context.Context, b *bench, row *Row) error {
		p, err := b.peer(ctx, tool)
		if err != nil {
			return err
		}
		c := contest{}
		c.ours = func() (Sample, error) {
			return p.edited(ctx, p.ours, p.ourBinary(p.platform, edited), func() (*exec.Cmd, error) { return p.make(ctx, "quick-release"), nil })
		}
		c.theirs = func() (Sample, error) {
			mark, err := p.edit(p.clone)
			if err != nil {
				return Sample{}, err
			}
			sample, err := p.run(ctx)
			if err != nil {
				return sample, err
			}
			binary, err := p.binary(edited)
			if err == nil && !bytes.Contains(binary, []byte(mark)) {
				err = fmt.Errorf("the edit is not in the %s of %s", edited, tool)
			}
			return sample, err
		}
		// Unmeasured first: an edit of a clean tree changes the stamp.
		return c.warmly(b.n, row)
	}
}

// A coldRelease is slipway's side of all comparisons of cold builds, which takes too long to be measured for each tool.
type coldRelease struct {
	*sides
	sample Sample
}

// coldRelease measures a release with an empty Go cache. Other projects' programs, which the tools do not make, are there.
func (b *bench) coldRelease(ctx context.Context) (*coldRelease, error) {
	if b.cold != nil {
		return b.cold, nil
	}
	s, err := b.newSides(ctx, "peers-cold", true)
	if err != nil {
		return nil, err
	}
	if err := s.makeThirdParty(ctx); err != nil {
		return nil, err
	}
	c := &coldRelease{sides: s}
	if c.sample, err = b.command(ctx, "make quick-release, cold", s.make(ctx, "quick-release")); err != nil {
		return nil, err
	}
	b.cold = c
	return c, nil
}

// peerCold is measured once, and slipway first, which leaves the modules' sources in the page cache.
func peerCold(tool string) func(context.Context, *bench, *Row) error {
	return func(ctx context.Context, b *bench, row *Row) (err error) {
		c, err := b.coldRelease(ctx)
		if err != nil {
			return err
		}
		dir := filepath.Join(b.dir, "peers-cold", tool)
		defer func() { err = errors.Join(err, removeAll(dir)) }()
		p, err := c.newPeer(ctx, tool, filepath.Join(dir, "tree"))
		if err != nil {
			return err
		}
		p.goCache = filepath.Join(dir, "cache")
		sample, err := p.run(ctx)
		if err != nil {
			return err
		}
		row.Ours, row.Theirs = []Sample{c.sample}, []Sample{sample}
		return p.same()
	}
}
