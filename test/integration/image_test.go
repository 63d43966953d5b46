//go:build integration

package integration

import (
	"archive/tar"
	"encoding/json"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// repoTags returns the names of the image in an archive.
func repoTags(t *testing.T, archive string) []string {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if err != nil {
			t.Fatalf("%s: no manifest.json: %v", archive, err)
		}
		if h.Name != "manifest.json" {
			continue
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		var manifest []struct{ RepoTags []string }
		if err := json.Unmarshal(data, &manifest); err != nil || len(manifest) != 1 {
			t.Fatalf("%s: manifest.json is %q (%v), want one image", archive, data, err)
		}
		slices.Sort(manifest[0].RepoTags)
		return manifest[0].RepoTags
	}
}

// imageTags returns the names of an image in a registry.
func imageTags(registry, name, tag string) []string {
	return []string{registry + "/" + name + "-" + runtime.GOARCH + ":" + tag, registry + "/" + name + ":" + tag}
}

func TestImagesHaveTheDockerTag(t *testing.T) {
	r := baseline(t)
	for _, name := range imageNames {
		tag := strings.TrimSpace(r.read(t, hostImage(name)+".docker_tag"))
		if got, want := repoTags(t, r.path(hostImage(name)+".tar")), imageTags("registry.k8s.io", name, tag); !slices.Equal(got, want) {
			t.Errorf("%s.tar has the tags %q, want %q", name, got, want)
		}
	}
}

func TestImagesRun(t *testing.T) {
	need(t, "docker", "docker.io")
	r := baseline(t)
	for _, name := range imageNames {
		tags := repoTags(t, r.path(hostImage(name)+".tar"))
		for _, tag := range tags {
			if run(t, r.dir, nil, "docker", "image", "inspect", tag).code == 0 {
				t.Fatalf("docker has an image %s already, which this test would remove", tag)
			}
		}
		t.Cleanup(func() { run(t, r.dir, nil, "docker", append([]string{"image", "rm"}, tags...)...) })
		run(t, r.dir, nil, "docker", "load", "--quiet", "--input", r.path(hostImage(name)+".tar")).ok(t)
		args, want := []string{"--version"}, "Kubernetes "+r.version+"\n"
		if name == "kubectl" {
			args, want = []string{"version", "--client"}, "Client Version: "+r.version+"\n"
		}
		for _, tag := range tags {
			line := append([]string{"run", "--rm", "--network=none", "--read-only", tag}, args...)
			if got := run(t, r.dir, nil, "docker", line...).ok(t).stdout; !strings.HasPrefix(got, want) {
				t.Errorf("docker %s prints %q, want %q", strings.Join(line, " "), got, want)
			}
		}
	}
}
