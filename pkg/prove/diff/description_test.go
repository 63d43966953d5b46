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
	local, bazel := read(build(t, program, nil, stripped)), read(build(t, program, nil, "-ldflags=-s -w -randlayout=7"))
	for what, test := range map[string]struct {
		other func(*rel.Release)
		want  diff.Verdict
		about string
	}{
		"of equivalent programs":                    {nil, diff.Equivalent, "artifacts"},
		"with a module that has no sum on one side": {func(r *rel.Release) { r.Inputs[0].Sum = "" }, diff.Equivalent, "module sums"},
		"with another sum of a module":              {func(r *rel.Release) { r.Inputs[0].Sum = "h1:x=" }, diff.Different, "inputs"},
		"with another artifact":                     {func(r *rel.Release) { r.Artifacts[1].Kind = rel.Archive }, diff.Different, "artifacts"},
		"of another version":                        {func(r *rel.Release) { r.Version = "v2" }, diff.Different, "release"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			r, err := diff.Compare(t.Context(), described(t, local, nil), described(t, bazel, test.other))
			if err != nil {
				t.Fatal(err)
			}
			last := r.Files[len(r.Files)-1]
			if last.Name != rel.File || last.Verdict != test.want || !slices.ContainsFunc(last.Reasons, func(x diff.Reason) bool { return x.Kind == test.about }) {
				t.Errorf("%+v, want %v for %s", last, test.want, test.about)
			}
		})
	}
}
