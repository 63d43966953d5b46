package diff_test

import (
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"os"
	"slices"
	"testing"

	"slipway.build/pkg/prove/diff"
	rel "slipway.build/pkg/release"
)

// described makes a folder with a tarball of a program, and with its description.
func described(t *testing.T, program []byte, edit func(*rel.Release)) string {
	t.Helper()
	tarball := pack(t, 6, content{"bin/kubelet", 0o755, program})
	dir := release(t, tarball)
	sum := func(data []byte) (string, string) {
		short, long := sha256.Sum256(data), sha512.Sum512(data)
		return hex.EncodeToString(short[:]), hex.EncodeToString(long[:])
	}
	tar, kubelet := rel.Artifact{Name: "kubernetes.tar.gz", Kind: rel.Tarball, Path: "kubernetes.tar.gz", Size: int64(len(tarball)),
		Members: []rel.Member{{Path: "bin/kubelet", Artifact: "linux/amd64/kubelet"}}},
		rel.Artifact{Name: "linux/amd64/kubelet", Kind: rel.Binary, Size: int64(len(program))}
	tar.SHA256, tar.SHA512 = sum(tarball)
	kubelet.SHA256, kubelet.SHA512 = sum(program)
	r := &rel.Release{Format: rel.Format, Version: "v1", Artifacts: []rel.Artifact{tar, kubelet},
		Inputs: []rel.Input{{Kind: rel.Module, Name: "example.com/m", Version: "v1.0.0", Sum: "h1:m="}}}
	if edit != nil {
		edit(r)
	}
	data, err := r.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, rel.File, data)
	return dir
}

func TestDescriptionsOfReleases(t *testing.T) {
	t.Parallel()
	read := func(file string) []byte {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	one, two := read(build(t, program, nil, stripped)), read(build(t, program, nil, "-ldflags=-s -w -randlayout=7"))
	for what, test := range map[string]struct {
		program []byte
		other   func(*rel.Release)
		about   string
		named   string
	}{
		"of another program":           {two, nil, "artifacts", "linux/amd64/kubelet"},
		"with another sum of a module": {one, func(r *rel.Release) { r.Inputs[0].Sum = "h1:x=" }, "inputs", "example.com/m@v1.0.0"},
		"with another version of a module": {one, func(r *rel.Release) { r.Inputs[0].Version = "v1.0.1" }, "inputs",
			"example.com/m@v1.0.1 only in B"},
		"with another artifact": {one, func(r *rel.Release) { r.Artifacts[1].Kind = rel.Archive }, "artifacts", "linux/amd64/kubelet"},
		"of another version":    {one, func(r *rel.Release) { r.Version = "v2" }, "release", ""},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			r, err := diff.Compare(t.Context(), described(t, one, nil), described(t, test.program, test.other))
			if err != nil {
				t.Fatal(err)
			}
			at := slices.IndexFunc(r.Files, func(f diff.File) bool { return f.Name == rel.File })
			if at < 0 || r.Files[at].Verdict != diff.Different || !slices.ContainsFunc(r.Files[at].Reasons, func(x diff.Reason) bool {
				return x.Kind == test.about && (test.named == "" || slices.Contains(x.Examples, test.named))
			}) {
				t.Errorf("%+v, want a difference of %s %s", r.Files, test.about, test.named)
			}
		})
	}
}
