package release

import (
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
		{Input{Kind: Toolchain, Name: "golang.org/toolchain", Version: "v0.0.1-go1.26.8.linux-amd64", Platform: on},
			"pkg:golang/golang.org/toolchain@v0.0.1-go1.26.8.linux-amd64"},
		{Input{Kind: Debian, Name: "conntrack", Version: "1:1.4.8-2+b1", Platform: on}, "pkg:deb/debian/conntrack@1:1.4.8-2%2Bb1?arch=armhf"},
		{Input{Kind: Debian, Name: "netbase", Version: "6.5"}, "pkg:deb/debian/netbase@6.5?arch=all"},
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
