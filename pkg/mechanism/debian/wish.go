package debian

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ulikunitz/xz"
	"golang.org/x/sync/errgroup"
)

// A Wish is the Debian packages that an image needs: its packages.txt.
type Wish struct {
	Suite    string
	Packages []string // with their dependencies
	Without  []string // dependencies to leave out, written with a minus
}

// ReadWish reads a packages.txt: a line like "suite trixie", then a package on each line.
func ReadWish(file string) (*Wish, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	w := &Wish{}
	n := 0
	for line := range strings.Lines(string(data)) {
		n++
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		suite, isSuite := strings.CutPrefix(line, "suite ")
		without, isWithout := strings.CutPrefix(line, "-")
		switch {
		case isSuite && w.Suite == "" && suiteName.MatchString(strings.TrimSpace(suite)):
			w.Suite = strings.TrimSpace(suite)
		case isWithout && packageName.MatchString(without):
			w.Without = append(w.Without, without)
		case !isSuite && packageName.MatchString(line):
			w.Packages = append(w.Packages, line)
		default:
			return nil, fmt.Errorf("%s:%d: %q is neither a package nor, once, a suite like \"suite trixie\"", file, n, line)
		}
	}
	if w.Suite == "" || len(w.Packages) == 0 {
		return nil, fmt.Errorf("%s: it needs a line like \"suite trixie\", and packages", file)
	}
	return w, nil
}

// Resolve asks an archive for the packages of a wish and their dependencies, for some architectures by Go's names. The
// archive's index is checked against its Release file, and that by the keys of Debian's archive, if gpgv and the keys are
// installed; otherwise Resolve calls say.
func (w *Wish) Resolve(ctx context.Context, mirror string, goarchs []string, say func(string)) (*Lock, error) {
	m, err := findMirrors(mirror, "/")
	if err != nil {
		return nil, err
	}
	return w.resolve(ctx, m, goarchs, "/"+keyring, say)
}

func (w *Wish) resolve(ctx context.Context, m *mirrors, goarchs []string, keys string, say func(string)) (*Lock, error) {
	release, err := m.read(ctx, "dists/"+w.Suite+"/InRelease")
	if err != nil {
		return nil, err
	}
	if release, err = signed(ctx, release, keys, say); err != nil {
		return nil, fmt.Errorf("dists/%s/InRelease: %w", w.Suite, err)
	}
	found := make([][]Package, len(goarchs))
	all, ctx := errgroup.WithContext(ctx)
	for i, goarch := range goarchs {
		all.Go(func() (err error) { // to unpack an index takes seconds
			found[i], err = w.packages(ctx, m, release, Arch(goarch))
			return err
		})
	}
	if err := all.Wait(); err != nil {
		return nil, err
	}
	lock := &Lock{Suite: w.Suite, Time: time.Now().UTC().Format("20060102T150405Z")}
	for _, packages := range found {
		lock.Packages = append(lock.Packages, packages...)
	}
	return lock, nil
}

// packages returns the packages of an architecture, as the index that a Release file names has them.
func (w *Wish) packages(ctx context.Context, m *mirrors, release []byte, arch string) ([]Package, error) {
	name := "main/binary-" + arch + "/Packages.xz"
	sum := sumIn(release, name)
	if sum == "" {
		return nil, fmt.Errorf("dists/%s/InRelease names no %s", w.Suite, name)
	}
	index, err := m.read(ctx, "dists/"+w.Suite+"/"+name)
	if err != nil {
		return nil, err
	}
	if got := sha256.Sum256(index); hex.EncodeToString(got[:]) != sum {
		return nil, fmt.Errorf("dists/%s/%s: its SHA-256 is %x, and that in InRelease is %s; the mirror may be changing: try again", w.Suite, name, got, sum)
	}
	plain, err := xz.NewReader(bytes.NewReader(index))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	packages, err := w.closure(arch, plain)
	if err != nil {
		return nil, fmt.Errorf("%s of %s: %w", name, w.Suite, err)
	}
	return packages, nil
}

// maxIndex is a limit that no file of a suite reaches, in bytes.
const maxIndex = 256 << 20

func (m *mirrors) read(ctx context.Context, path string) (data []byte, err error) {
	err = m.get(ctx, path, func(r io.Reader) error {
		data, err = io.ReadAll(io.LimitReader(r, maxIndex))
		return err
	})
	return data, err
}

// signed returns the signed text of a Release file, checked by the keys.
func signed(ctx context.Context, release []byte, keys string, say func(string)) ([]byte, error) {
	program, err := exec.LookPath("gpgv")
	if err == nil {
		_, err = os.Stat(keys)
	}
	if err != nil {
		say("the signature of Debian's archive is not checked: install gpgv and debian-archive-keyring for that")
		return release, nil
	}
	var text, stderr bytes.Buffer
	c := exec.CommandContext(ctx, program, "--keyring", keys, "--output", "-", "-")
	c.Stdin, c.Stdout, c.Stderr = bytes.NewReader(release), &text, &stderr
	if err := c.Run(); err != nil {
		return nil, fmt.Errorf("its signature is not one of Debian's archive: gpgv: %w: %s", err, strings.TrimSpace(stderr.String()))
	}
	return text.Bytes(), nil
}

// sumIn finds the SHA-256 of a file in a Release file.
func sumIn(release []byte, name string) string {
	within := false
	for line := range strings.Lines(string(release)) {
		if !strings.HasPrefix(line, " ") {
			within = strings.HasPrefix(line, "SHA256:")
			continue
		}
		if fields := strings.Fields(line); within && len(fields) == 3 && fields[2] == name {
			return fields[0]
		}
	}
	return ""
}

// An indexed package is an entry of a Packages file.
type indexed struct {
	Package
	needs []string // alternatives: "a | b"
}

// closure finds the wish's packages in an index, and their dependencies. Of alternatives, it takes the first that exists.
func (w *Wish) closure(arch string, index io.Reader) ([]Package, error) {
	known, provided, err := readIndex(arch, index)
	if err != nil {
		return nil, err
	}
	found := map[string]Package{}
	todo := slices.Clone(w.Packages)
	for len(todo) > 0 {
		p, ok := known[todo[0]]
		if !ok {
			return nil, fmt.Errorf("there is no package %s", todo[0])
		}
		todo = todo[1:]
		if _, done := found[p.Name]; done {
			continue
		}
		found[p.Name] = p.Package
		for _, need := range p.needs {
			name := w.choose(need, known, provided)
			switch {
			case name == "":
				return nil, fmt.Errorf("%s depends on %s, which nothing is or provides", p.Name, need)
			case !slices.Contains(w.Without, name):
				todo = append(todo, name)
			}
		}
	}
	var packages []Package
	for _, name := range slices.Sorted(maps.Keys(found)) {
		packages = append(packages, found[name])
	}
	return packages, nil
}

// choose returns the package for a dependency, or "".
func (w *Wish) choose(need string, known map[string]indexed, provided map[string]string) string {
	for alternative := range strings.SplitSeq(need, "|") {
		name := nameIn(alternative)
		if _, ok := known[name]; ok || slices.Contains(w.Without, name) {
			return name
		}
		if provider := provided[name]; provider != "" {
			return provider
		}
	}
	return ""
}

// nameIn returns the name in "name:any (>= 1.0)".
func nameIn(dependency string) string {
	name, _, _ := strings.Cut(strings.TrimSpace(dependency), " ")
	name, _, _ = strings.Cut(name, ":")
	return name
}

// readIndex reads a Packages file: its packages by name, and for each virtual name the first package that provides it.
func readIndex(arch string, index io.Reader) (known map[string]indexed, provided map[string]string, err error) {
	known, provided = map[string]indexed{}, map[string]string{}
	fields := map[string]string{}
	add := func() error {
		if len(fields) == 0 {
			return nil
		}
		size, err := strconv.ParseInt(fields["Size"], 10, 64)
		if err != nil {
			return fmt.Errorf("package %q: size %q", fields["Package"], fields["Size"])
		}
		p := indexed{Package: Package{arch, fields["Package"], fields["Version"], fields["SHA256"], size, fields["Filename"]}}
		for _, name := range []string{"Pre-Depends", "Depends"} {
			for need := range strings.SplitSeq(fields[name], ",") {
				if strings.TrimSpace(need) != "" {
					p.needs = append(p.needs, strings.TrimSpace(need))
				}
			}
		}
		known[p.Name] = p
		for name := range strings.SplitSeq(fields["Provides"], ",") {
			if name = nameIn(name); name != "" && provided[name] == "" {
				provided[name] = p.Name
			}
		}
		clear(fields)
		return nil
	}
	s := bufio.NewScanner(io.LimitReader(index, maxUnpacked))
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		line := s.Text()
		if line == "" {
			if err := add(); err != nil {
				return nil, nil, err
			}
			continue
		}
		if name, value, ok := strings.Cut(line, ":"); ok && line[0] != ' ' {
			fields[name] = strings.TrimSpace(value)
		}
	}
	if err := errors.Join(s.Err(), add()); err != nil {
		return nil, nil, err
	}
	return known, provided, nil
}
