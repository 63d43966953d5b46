package release

import (
	"slices"
	"strings"
	"testing"

	"slipway.build/pkg/mechanism/platform"
)

func TestPackageURLs(t *testing.T) {
	t.Parallel()
	on := platform.Platform{OS: "linux", Arch: "arm"}
	for _, test := range []struct {
		in   Input
		want string
	}{
		{Input{Kind: Module, Name: "k8s.io/api", Version: "v0.37.1"}, "pkg:golang/k8s.io/api@v0.37.1"},
		{Input{Kind: Module, Name: "github.com/Azure/go-ansiterm", Version: "v0.0.0-2"}, "pkg:golang/github.com/Azure/go-ansiterm@v0.0.0-2"},
		{Input{Kind: Module, Name: "k8s.io/api", Version: "v0.37.1+acme.1"}, "pkg:golang/k8s.io/api@v0.37.1%2Bacme.1"},
		{Input{Kind: Module, Name: "go.uber.org/zap", Version: "v1.0.0"}, "pkg:golang/go.uber.org/zap@v1.0.0"},
		{Input{Kind: Module, Name: "./staging/api", Replaces: "k8s.io/api@v0.37.1"}, "pkg:golang/k8s.io/api"},
		{Input{Kind: Tool, Name: "slipway.build", Version: "v0.2.0", Sum: "h1:z="}, "pkg:golang/slipway.build@v0.2.0"},
		{Input{Kind: Tool, Name: "slipway.build", Version: "folder ../slipway", Tree: "00"}, ""},
		{Input{Kind: Toolchain, Name: "golang.org/toolchain", Version: "v0.0.1-go1.26.8.linux-amd64", Platform: on},
			"pkg:golang/golang.org/toolchain@v0.0.1-go1.26.8.linux-amd64"},
		{Input{Kind: Debian, Name: "conntrack", Version: "1:1.4.8-2+b1", Platform: on}, "pkg:deb/debian/conntrack@1:1.4.8-2%2Bb1?arch=armhf"},
		{Input{Kind: Debian, Name: "netbase", Version: "6.5"}, "pkg:deb/debian/netbase@6.5?arch=all"},
		{Input{Kind: Debian, Name: "libc6", Version: "2.41-12+deb13u4", Platform: on, Source: "glibc", Suite: "trixie"},
			"pkg:deb/debian/libc6@2.41-12%2Bdeb13u4?arch=armhf&distro=debian-13&upstream=glibc"},
		{Input{Kind: Debian, Name: "libbpf1", Version: "1:1.5.0-3", Platform: on, Source: "libbpf", SourceVersion: "1.5.0-3", Suite: "forky"},
			"pkg:deb/debian/libbpf1@1:1.5.0-3?arch=armhf&distro=debian-14&upstream=libbpf%401.5.0-3"},
		{Input{Kind: Debian, Name: "curl", Version: "8", Platform: on, Source: "curl", Suite: "bookworm"},
			"pkg:deb/debian/curl@8?arch=armhf&distro=debian-12"},
		{Input{Kind: Debian, Name: "curl", Version: "8", Source: "curl", Suite: "sid"}, "pkg:deb/debian/curl@8?arch=all"},
		{Input{Kind: Source, Name: "kubernetes-src.tar.gz"}, ""},
	} {
		if got := test.in.PURL(); got != test.want {
			t.Errorf("%+v: %s, want %s", test.in, got, test.want)
		}
	}
	r := Release{Go: "go1.26.8"}
	if got, want := r.StandardLibrary(), "pkg:golang/stdlib@1.26.8"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// In older descriptions, the package URLs of Debian packages say only the architecture.
func TestOlderPackageURLsAreRead(t *testing.T) {
	t.Parallel()
	libc := Input{Kind: Debian, Name: "libc6", Version: "2.41+b1", Platform: platform.Platform{OS: "linux", Arch: "amd64"},
		Source: "glibc", Suite: "trixie"}
	r := &Release{Format: Format, Version: "v1", Inputs: []Input{libc}, Artifacts: []Artifact{{
		Name: "image", Kind: Image, SHA256: strings.Repeat("0", 64), SHA512: strings.Repeat("0", 128),
		Inputs: []string{"pkg:deb/debian/libc6@2.41%2Bb1?arch=amd64", "pkg:golang/stdlib@1.26.8"},
	}}}
	data, err := r.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	read, err := Unmarshal(data)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{libc.PURL(), "pkg:golang/stdlib@1.26.8"}; !slices.Equal(read.Artifacts[0].Inputs, want) {
		t.Errorf("%q, want %q", read.Artifacts[0].Inputs, want)
	}
}
