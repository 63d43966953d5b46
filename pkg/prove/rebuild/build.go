package rebuild

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"slipway.build/pkg/mechanism/checksum"
	"slipway.build/pkg/mechanism/child"
	"slipway.build/pkg/release"
	"slipway.build/pkg/release/provenance"
	"slipway.build/pkg/tree/catalog"
)

// handedOn are the variables of the environment that say where things are on this machine, and decide no bytes.
var handedOn = []string{
	"PATH", "HOME", "USER", "TMPDIR", "LANG", "TERM", "XDG_CACHE_HOME", "GOCACHE", "GOMODCACHE", "GOPATH", "GOROOT", "GOPROXY",
	"GOSUMDB", "GONOSUMDB",
	"GOPRIVATE", "GONOPROXY", "GOINSECURE", "GOAUTH", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "SLIPWAY_DEBIAN_MIRROR", "SLIPWAY_DEBIAN_SECURITY_MIRROR", "SLIPWAY_DEBIAN_SNAPSHOT", "DOCKER_HOST",
}

// environment returns what a build gets of an environment, and the variables with which the release was made.
func (t *Tree) environment(all []string) []string {
	// A repository around the folder is not the tree's.
	return append(handed(all, handedOn), "GIT_CEILING_DIRECTORIES="+filepath.Dir(t.Dir), "KUBE_RELEASE_RUN_TESTS=n")
}

// handed returns the variables of an environment that have one of some names.
func handed(all, names []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return !slices.Contains(names, name)
	})
}

// goVersion returns the version of the Go on PATH, such as go1.26.8.
func goVersion(ctx context.Context, dir string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "env", "GOVERSION")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOTOOLCHAIN=local", "GOFLAGS=")
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err
}

// Commands returns the commands that make the release in the tree's folder: its own slipway, and with that the release.
func (t *Tree) Commands() [][]string {
	p := t.Statement.Predicate.Definition.Parameters
	args := []string{
		filepath.Join("_output", "bin", "slipway"), "release", "--road=local", "--platform=" + strings.Join(p.Platforms, " "),
		fmt.Sprintf("--test-set=%t", slices.Contains(p.Sets, "test")), fmt.Sprintf("--inputs=%t", p.Inputs),
	}
	if slices.Contains(p.Sets, "addons") {
		args = append(args, "--addons") // a tree from before this flag has no such set
	}
	if slices.ContainsFunc(t.Statement.Subject, func(s provenance.Subject) bool { return s.Name == catalog.APITarball }) {
		args = append(args, "--api") // a tree from before this flag has no such tarball
	}
	if slices.ContainsFunc(t.Statement.Subject, func(s provenance.Subject) bool { return path.Dir(s.Name) == release.PackageFolder }) {
		args = append(args, "--packages") // a tree from before this flag has no packages
	}
	return [][]string{{"make", "slipway"}, args}
}

// Build makes the release. What it prints goes to out. An interrupted build is resumed by another one.
func (t *Tree) Build(ctx context.Context, out io.Writer) error {
	p := t.Statement.Predicate.Definition.Parameters
	for i, args := range t.Commands() {
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		if i > 0 {
			cmd = exec.CommandContext(ctx, filepath.Join(t.Dir, args[0]), args[1:]...)
		}
		cmd.Dir, cmd.Stdout, cmd.Stderr = t.Dir, out, out
		cmd.Env = t.environment(os.Environ())
		if i > 0 { // make sets flags of its own for slipway
			for _, name := range slices.Sorted(maps.Keys(p.Variables)) {
				cmd.Env = append(cmd.Env, name+"="+p.Variables[name])
			}
		}
		child.Interrupt(cmd, time.Minute)
		if err := child.Run(cmd, syscall.SIGTERM, nil); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("%s, in %s: %w", strings.Join(args, " "), t.Dir, err)
		}
	}
	return nil
}

// Made is the folder of the release that Build makes.
func (t *Tree) Made() string { return filepath.Join(t.Dir, "_output", "release-tars") }

// A Report compares a release with the one that was made again.
type Report struct {
	Version  string    `json:"version"`
	Made     string    `json:"made"` // folder
	Same     bool      `json:"same"` // everything
	Subjects []Subject `json:"subjects"`
}

// A Subject is something that the provenance is about.
type Subject struct {
	Name string `json:"name"`
	Want string `json:"sha256"`
	Got  string `json:"made,omitempty"` // empty if it was not made
}

// Same reports whether the same was made.
func (s Subject) Same() bool { return s.Want == s.Got }

// Compare compares what was made with what the provenance is about, by content. Files are read, and not only their description.
func (t *Tree) Compare() (*Report, error) {
	r, err := release.Read(t.Made())
	if err != nil {
		return nil, err
	}
	report := &Report{Version: t.Statement.Predicate.Definition.Parameters.Version, Made: t.Made(), Same: true}
	for _, s := range t.Statement.Subject {
		subject := Subject{Name: s.Name, Want: s.Digest["sha256"]}
		a, ok := r.Artifact(s.Name)
		switch {
		case s.Name == release.File:
			subject.Got, err = checksum.File(filepath.Join(t.Made(), release.File))
		case ok && a.Path != "":
			subject.Got, err = checksum.File(filepath.Join(t.Made(), filepath.FromSlash(a.Path)))
		case ok:
			subject.Got = a.SHA256
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		report.Same = report.Same && subject.Same()
		report.Subjects = append(report.Subjects, subject)
	}
	return report, nil
}

// Text writes a line for each difference, and a summary.
func (r *Report) Text(w io.Writer) error {
	var b strings.Builder
	different := 0
	for _, s := range r.Subjects {
		switch {
		case s.Same():
			continue
		case s.Got == "":
			fmt.Fprintf(&b, "%s: was not made\n", s.Name)
		default:
			fmt.Fprintf(&b, "%s: differs: its SHA-256 is %s, want %s\n", s.Name, s.Got, s.Want)
		}
		different++
	}
	if different > 0 {
		fmt.Fprintf(&b, "release %s: %d of %d are not the same\n", r.Version, different, len(r.Subjects))
	} else {
		fmt.Fprintf(&b, "release %s: all %d files and images are the same, in %s\n", r.Version, len(r.Subjects), r.Made)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
