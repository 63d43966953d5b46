package project

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/tree/worktree/gittest"
)

func status(t *testing.T, p *Project) []byte {
	t.Helper()
	status, err := p.WorkspaceStatus(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return status
}

func TestStatusChangesWithSourcesAndTags(t *testing.T) {
	t.Parallel()
	root := tree(t)
	before := status(t, open(t, root))
	if again := status(t, open(t, root)); !bytes.Equal(before, again) {
		t.Errorf("two statuses of one tree differ:\n%s%s", before, again)
	}
	tagged := string(status(t, open(t, root, "KUBE_DOCKER_REGISTRY=acme.example", "KUBE_DOCKER_IMAGE_TAG=nightly")))
	if want := string(before) + registryKey + " acme.example\n" + imageTagKey + " nightly\n"; tagged != want {
		t.Errorf("with tags, the status is\n%swant\n%s", tagged, want)
	}
	if err := os.WriteFile(filepath.Join(root, "README.md"), []byte("another\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if after := status(t, open(t, root)); bytes.Equal(before, after) {
		t.Error("the status is the same after an edit")
	}
	for line := range strings.Lines(tagged) {
		if !strings.HasPrefix(line, "STABLE_") {
			t.Errorf("Bazel would not rerun anything for %q", line)
		}
	}
}

func TestPackedSourcesHaveTheVersionOfTheStatus(t *testing.T) {
	t.Parallel()
	root := tree(t)
	env := environment()
	known := status(t, open(t, root, "KUBE_GIT_VERSION=v1.36.3+acme.7"))
	var packed, again bytes.Buffer
	for _, to := range []*bytes.Buffer{&packed, &again} {
		if err := PackSources(t.Context(), to, root, known, env); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(packed.Bytes(), again.Bytes()) || packed.Len() == 0 {
		t.Errorf("tarballs of %d and %d bytes differ, or are empty", packed.Len(), again.Len())
	}
	// The environment is ignored: the status has the version that is stamped into binaries.
	again.Reset()
	if err := PackSources(t.Context(), &again, root, known, environment("KUBE_GIT_VERSION=v1.36.3+acme.8")); err != nil ||
		!bytes.Equal(packed.Bytes(), again.Bytes()) {
		t.Errorf("with another version in the environment: %v, %d bytes", err, again.Len())
	}
	if err := os.WriteFile(filepath.Join(root, "README.md"), []byte("another\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := PackSources(t.Context(), &again, root, known, env); err == nil || !strings.Contains(err.Error(), "run the same command again") {
		t.Errorf("a tree that changed since: error %v", err)
	}
	if err := PackSources(t.Context(), &again, root, []byte("BUILD_HOST h\n"), env); err == nil ||
		!strings.Contains(err.Error(), "not built as a release") {
		t.Errorf("without a status: error %v", err)
	}
}

// A work tree gives the same sources as the unpacked source tarball.
func TestSourcesOfAWorkTreeAreThoseOfTheCommit(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	from := tree(t)
	if err := os.Remove(filepath.Join(from, "version")); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(r.Dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	r.Commit()
	p, err := Open(t.Context(), r.Dir, Settings{}, r.Env())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := statusValue(status(t, p), sourcesKey), r.Git("rev-parse", "HEAD^{tree}"); got != want {
		t.Errorf("the status names %q, want the commit's tree %q", got, want)
	}
	var packed bytes.Buffer
	if err := PackSources(t.Context(), &packed, r.Dir, status(t, p), r.Env()); err != nil || packed.Len() == 0 {
		t.Errorf("%d bytes: %v", packed.Len(), err)
	}
}

// A copy has only sources, and the version of the original.
func TestCopiedSourcesAreATree(t *testing.T) {
	t.Parallel()
	root, dir := tree(t), t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "_output", "local"), 0o755); err != nil {
		t.Fatal(err)
	}
	p := open(t, root, "KUBE_GIT_VERSION=v1.36.3+acme.7")
	if err := p.CopySources(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	copied := open(t, dir)
	if copied.Stamp != p.Stamp {
		t.Errorf("stamp %v, want %v", copied.Stamp, p.Stamp)
	}
	if diff := cmp.Diff(p.Sources.Files, copied.Sources.Files); diff != "" {
		t.Errorf("sources (-tree +copy):\n%s", diff)
	}
}
