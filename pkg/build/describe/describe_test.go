package describe

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/recipe/recipetest"
	"slipway.build/pkg/release"
)

func TestEveryFieldOfASpecIsInItsRecipe(t *testing.T) {
	t.Parallel()
	recipetest.EachField(t, Spec{})
	recipetest.EachField(t, File{})
}

// small returns a release with one tarball, which holds one binary.
func small() Spec {
	return Spec{
		Release: release.Release{
			Format: release.Format, Version: "v1",
			Artifacts: []release.Artifact{
				{Name: "linux/amd64/kubelet", Kind: release.Binary}, {Name: "a.tar.gz", Kind: release.Tarball, Path: "a.tar.gz"},
			},
			Inputs: []release.Input{{Kind: release.Source, Name: "a.tar.gz"}},
		},
		Files: []File{
			{Artifact: "a.tar.gz", Path: "tars/a.tar.gz", SHA512: "sums/a.tar.gz"}, {Artifact: "linux/amd64/kubelet", Path: "bin/kubelet"},
		},
		Modules: []string{"modules.json"},
		Folder:  "tars",
	}
}

var long = strings.Repeat("5", 128)

// tree returns a tree with the files of the small release.
func tree(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	err := os.CopyFS(root, fstest.MapFS{
		"tars/a.tar.gz": {Data: []byte("tarball")}, "sums/a.tar.gz": {Data: []byte(long + "\n")}, "bin/kubelet": {Data: []byte("program")},
		"modules.json": {Data: []byte(`[{"path": "example.com/b", "version": "v2.0.0", "sum": "h1:b="},
			{"path": "example.com/a", "version": "v0.0.0", "sum": "h1:a=", "replace": {"path": "example.com/fork", "version": "v1.0.0"}}]`)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// run makes the description of a release and reads it.
func run(t *testing.T, root string, s Spec) *release.Release {
	t.Helper()
	g := action.Graph{Root: root, State: "state", Actions: []*action.Action{Action(root, s)}}
	if err := g.Run(t.Context(), action.Options{}); err != nil {
		t.Fatal(err)
	}
	r, err := release.Read(filepath.Join(root, "tars"))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestADescriptionHasDigestsAndInputsFromFiles(t *testing.T) {
	t.Parallel()
	root := tree(t)
	r := run(t, root, small())
	tar, _ := r.Artifact("a.tar.gz")
	if tar.Size != 7 || len(tar.SHA256) != 64 || tar.SHA512 != long {
		t.Errorf("tarball %+v", tar)
	}
	kubelet, _ := r.Artifact("linux/amd64/kubelet")
	if kubelet.Size != 7 || len(kubelet.SHA256) != 64 || len(kubelet.SHA512) != 128 || kubelet.SHA512 == long {
		t.Errorf("binary %+v", kubelet)
	}
	if r.Artifacts[0].Name != "a.tar.gz" {
		t.Errorf("artifacts are not sorted: %v", r.Artifacts)
	}
	want := []release.Input{
		{Kind: release.Source, Name: "a.tar.gz", SHA256: tar.SHA256},
		{Kind: release.Module, Name: "example.com/b", Version: "v2.0.0", Sum: "h1:b="},
		{Kind: release.Module, Name: "example.com/fork", Version: "v1.0.0", Sum: "h1:a=", Replaces: "example.com/a"},
	}
	if len(r.Inputs) != len(want) {
		t.Fatalf("inputs %+v", r.Inputs)
	}
	for i, in := range want {
		if r.Inputs[i] != in {
			t.Errorf("input %+v, want %+v", r.Inputs[i], in)
		}
	}

	// A changed binary gets new digests.
	if err := os.WriteFile(filepath.Join(root, "bin/kubelet"), []byte("another"), 0o644); err != nil {
		t.Fatal(err)
	}
	if next, _ := run(t, root, small()).Artifact("linux/amd64/kubelet"); next.SHA256 == kubelet.SHA256 || next.SHA512 == kubelet.SHA512 {
		t.Errorf("changed binary %+v", next)
	}
}

func TestAFileOfNoPlannedArtifactIsAnError(t *testing.T) {
	t.Parallel()
	root := tree(t)
	s := small()
	s.Files[1].Artifact = "linux/amd64/kubeadm"
	g := action.Graph{Root: root, State: "state", Actions: []*action.Action{Action(root, s)}}
	if err := g.Run(t.Context(), action.Options{}); err == nil || !strings.Contains(err.Error(), "linux/amd64/kubeadm: not planned") {
		t.Errorf("error %v", err)
	}
}

func TestChecksumsAreNotMadeIfTheTreeChanged(t *testing.T) {
	t.Parallel()
	root := tree(t)
	changed := errors.New("the tree changed")
	for _, test := range []struct{ before, want error }{{nil, nil}, {changed, changed}} {
		a := Checksums(root, "tars", small().Files[:1], func(context.Context) error { return test.before })
		g := action.Graph{Root: root, State: "state", Actions: []*action.Action{a}}
		if err := os.RemoveAll(filepath.Join(root, "state")); err != nil {
			t.Fatal(err)
		}
		if err := g.Run(t.Context(), action.Options{}); !errors.Is(err, test.want) {
			t.Errorf("error %v, want %v", err, test.want)
		}
	}
	sums, err := os.ReadFile(filepath.Join(root, "tars", "SHA512SUMS"))
	if err != nil || string(sums) != long+"  a.tar.gz\n" {
		t.Errorf("%q, %v", sums, err)
	}
}
