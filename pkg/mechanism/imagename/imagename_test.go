package imagename_test

import (
	"strings"
	"testing"

	"slipway.build/pkg/mechanism/imagename"
)

func TestNamesAreThoseThatEnginesUnderstand(t *testing.T) {
	t.Parallel()
	digest := "@sha256:" + strings.Repeat("a", 64)
	for _, tt := range []struct {
		kind  string
		check func(string) error
		good  []string
		bad   []string
	}{
		{"registry", imagename.Registry, []string{"registry.example.com", "registry.example.com/team/more", "localhost:5000", "10.0.0.1:5000/a",
			"[::1]:5000", "acme"},
			[]string{"https://registry.acme.example", "registry.acme.example/", ":5000", "/", "-x", "a b", "registry.example.com/Team",
				"registry.example.com//a",
				"registry.example.com:port", "registry.example.com/a:v1", "registry.example.com/a" + digest, "registry.example.com?a", "a/../b",
				"user:pw@registry.example.com",
				strings.Repeat("a", 300)}},
		{"registry with a host", imagename.RegistryHost, []string{"registry.example.com", "localhost:5000/folder", "localhost/a"},
			[]string{"acme", "acme/team", "https://registry.acme.example", "registry.acme.example/", ":5000"}},
		{"image", imagename.Image, []string{"kube-apiserver", "team/kube-apiserver", "a__b"},
			[]string{"", "Kube", "/a", "a/", "a//b", "-a", "a:v1", "a" + digest, "a b"}},
		{"tag", imagename.Tag, []string{"v1.37.1_acme.1", "_x", "5000", strings.Repeat("a", 128)},
			[]string{"", "-x", ".x", "v1.37.1+acme.1", "a/b", "a:b", "x" + digest, "a b", strings.Repeat("a", 129)}},
		{"reference", imagename.Reference, []string{"debian:bookworm-slim", "debian", "registry.example.com/debian" + digest,
			"sha256:" + strings.Repeat("a", 64)},
			[]string{"", "https://debian", "debian:", "Debian", "debian:-x"}},
	} {
		for _, name := range tt.good {
			if err := tt.check(name); err != nil {
				t.Errorf("%s %q: %v", tt.kind, name, err)
			}
		}
		for _, name := range tt.bad {
			if tt.check(name) == nil {
				t.Errorf("%s %q is accepted", tt.kind, name)
			}
		}
	}
}
