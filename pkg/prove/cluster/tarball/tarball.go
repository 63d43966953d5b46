package tarball

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"slipway.build/pkg/mechanism/atomicfile"
	"slipway.build/pkg/mechanism/platform"
	"slipway.build/pkg/mechanism/unpack"
	"slipway.build/pkg/release"
	"slipway.build/pkg/ship/bundle"
	"slipway.build/pkg/ship/verify"
)

// Host is the platform of this machine's clusters.
var Host = platform.Platform{OS: "linux", Arch: runtime.GOARCH}

// A Tarball is a tarball of a release, packed or unpacked, with its release.json.
type Tarball struct {
	Release  *release.Release
	Artifact release.Artifact

	dir         string // or the file of a bundle
	files       fs.FS  // of the release
	program     string
	description []byte            // content of release.json
	members     map[string]string // paths in the tarball by names of artifacts
}

// A MissingError is a tarball, or the description of a release, that a folder lacks.
type MissingError struct {
	File, Dir string
	Tests     bool // it is the test tarball, or its description
	Addons    bool // it is the tarball of addons, or its description
}

func (e MissingError) Error() string { return fmt.Sprintf("there is no %s in %s", e.File, e.Dir) }

// missing returns the error that a folder lacks a file. Test programs are named NAME.test; an archive of an image is asked for only if it
// is for tests. The tarball of addons has no program.
func missing(file, dir, artifact string) error {
	tests := strings.HasSuffix(artifact, ".test") || strings.HasSuffix(artifact, ".tar")
	return MissingError{file, dir, tests, artifact == ""}
}

// Open opens the tarball that holds an artifact, such as a program, for this machine. Dir is a folder, or a file that package ship/bundle
// has written. As everywhere in this package, artifacts have the names of release.json without the platform.
func Open(dir, program string) (*Tarball, error) {
	return open(dir, program, func(b *Tarball) bool { return b.members[program] != "" })
}

// addons begins the name of the tarball of addons.
const addons = "kubernetes-addons-"

// OpenAddons opens the tarball of addons for this machine.
func OpenAddons(dir string) (*Tarball, error) {
	return open(dir, "", func(b *Tarball) bool { return strings.HasPrefix(b.Artifact.Name, addons) })
}

// open opens the tarball for this machine that is the right one.
func open(dir, program string, right func(*Tarball) bool) (*Tarball, error) {
	files, err := filesOf(dir)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, release.File)
	description, err := fs.ReadFile(files, release.File)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, missing(release.File, dir, program)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	r, err := release.Unmarshal(description)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	for _, t := range r.Select(release.Tarball, Host) {
		b := &Tarball{r, t, dir, files, program, description, map[string]string{}}
		for _, m := range t.Members {
			if !fs.ValidPath(m.Path) {
				return nil, fmt.Errorf("%s: member %q of %s %w", file, m.Path, t.Name, unpack.ErrUnsafe)
			}
			b.members[short(m.Artifact)] = m.Path
		}
		if right(b) {
			return b, nil
		}
	}
	if !slices.Contains(r.Platforms, Host) {
		var names []string
		for _, p := range r.Platforms {
			names = append(names, p.String())
		}
		return nil, fmt.Errorf("%s: release %s is for %s, and not for %s", file, r.Version, strings.Join(names, ", "), Host)
	}
	if program == "" {
		return nil, missing("tarball of addons", dir, program)
	}
	return nil, missing("tarball with "+program, dir, program)
}

// filesOf returns the files of the release in a folder, or in a bundle.
func filesOf(dir string) (fs.FS, error) {
	if info, err := os.Stat(dir); err != nil || !info.Mode().IsRegular() {
		return os.DirFS(cmp.Or(dir, ".")), nil
	}
	b, err := bundle.Open(dir)
	if err != nil {
		return nil, err
	}
	return b.Files, nil // its file is open until the process ends
}

// short returns the name of an artifact without the platform.
func short(artifact string) string { return strings.TrimPrefix(artifact, Host.String()+"/") }

// Sum identifies the release by the SHA-256 of its release.json.
func (b *Tarball) Sum() string {
	sum := sha256.Sum256(b.description)
	return hex.EncodeToString(sum[:])
}

// Verify compares the tarball with its description.
func (b *Tarball) Verify(ctx context.Context) error {
	report, err := verify.Files(ctx, b.files, b.dir, b.Release, b.Artifact.Name)
	if err != nil || report.OK() {
		return err
	}
	if f := report.Files[0]; f.Status != verify.Missing {
		return fmt.Errorf("%s: not as %s describes it: %s", b.path(f.Path), release.File, f.Detail)
	}
	return missing(b.Artifact.Path, b.dir, b.program)
}

// Unpack unpacks artifacts and folders of the tarball. It writes release.json last, so a folder that has one is complete.
func (b *Tarball) Unpack(ctx context.Context, dir string, artifacts []string, folders ...string) error {
	if err := b.require(artifacts...); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	wanted := map[string]bool{}
	for _, name := range artifacts {
		wanted[b.members[name]] = true
	}
	tarball, err := b.files.Open(b.Artifact.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return missing(b.Artifact.Path, b.dir, b.program)
	}
	if err != nil {
		return err
	}
	defer tarball.Close()
	err = unpack.Stream(ctx, tarball, b.path(b.Artifact.Path), dir, func(name string) bool {
		return wanted[name] || slices.ContainsFunc(folders, func(folder string) bool { return strings.HasPrefix(name, folder+"/") })
	})
	if err != nil {
		return err
	}
	for name := range wanted {
		if _, err := os.Stat(filepath.Join(dir, filepath.FromSlash(name))); err != nil {
			return fmt.Errorf("%s lacks %s, which %s names: %w", b.Artifact.Path, name, release.File, err)
		}
	}
	return atomicfile.WriteFile(filepath.Join(dir, release.File), b.description, 0o644)
}

// require returns an error that names the artifacts that the tarball lacks.
func (b *Tarball) require(artifacts ...string) error {
	var lacks []string
	for _, name := range artifacts {
		if b.members[name] == "" {
			lacks = append(lacks, Host.String()+"/"+name)
		}
	}
	if len(lacks) > 0 {
		return fmt.Errorf("%s lacks %s", b.Artifact.Path, strings.Join(lacks, ", "))
	}
	return nil
}

// path returns a path in the folder, by one of release.json.
func (b *Tarball) path(name string) string { return filepath.Join(b.dir, filepath.FromSlash(name)) }

// File returns the path of an unpacked artifact.
func (b *Tarball) File(artifact string) (string, error) {
	return b.path(b.members[artifact]), b.require(artifact)
}

// Member returns the path of an artifact in the tarball, which is empty if the tarball lacks it.
func (b *Tarball) Member(artifact string) string { return b.members[artifact] }

// Archives returns the names of the tarball's archives of images.
func (b *Tarball) Archives() []string {
	var names []string
	for _, a := range b.Release.Select(release.Archive, Host) {
		if name := short(a.Name); b.members[name] != "" {
			names = append(names, name)
		}
	}
	return names
}
