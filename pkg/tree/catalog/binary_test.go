package catalog

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBinariesOfASetForAPlatform(t *testing.T) {
	t.Parallel()
	c := load(t)
	for _, tt := range []struct {
		set      Set
		platform Platform
		want     string
	}{
		{Server, Platform{OS: "linux", Arch: "arm64"}, "kube-apiserver kube-aggregator kubelet kube-log-runner kubectl"},
		{Node, Platform{OS: "windows", Arch: "amd64"}, "kubelet kube-log-runner kubectl"},
		{Client, Platform{OS: "darwin", Arch: "arm64"}, "kubectl"},
		{Test, Platform{OS: "linux", Arch: "amd64"}, "e2e.test ginkgo go-runner e2e_node.test smoke.test"},
		{Test, Platform{OS: "linux", Arch: "arm64"}, "e2e.test ginkgo go-runner smoke.test"},
		{Server, Platform{OS: "windows", Arch: "amd64"}, ""},
		{Server, Platform{OS: "linux", Arch: "riscv64"}, ""},
		{"desktop", Platform{OS: "linux", Arch: "amd64"}, ""},
	} {
		if got := names(c.BinariesFor(tt.set, tt.platform)); got != tt.want {
			t.Errorf("%s for %s: got %q, want %q", tt.set, tt.platform, got, tt.want)
		}
	}
}

func TestDefaultLeavesOutTestsAndWhatIsInNoSet(t *testing.T) {
	t.Parallel()
	want := "kube-apiserver kube-aggregator kubelet kube-log-runner kubectl"
	if got := names(load(t).Default()); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPlatformsOfABinary(t *testing.T) {
	t.Parallel()
	c := load(t)
	for _, tt := range []struct{ name, want string }{
		{"kube-apiserver", "linux/amd64 linux/arm64"},
		{"kubectl", "linux/amd64 linux/arm64 windows/amd64 darwin/arm64"},
		{"hyperkube", "linux/amd64 linux/arm64"},
		{"e2e_node.test", "linux/amd64"},
	} {
		b, ok := c.Binary(tt.name)
		if !ok {
			t.Fatalf("no binary %s", tt.name)
		}
		if got := join(c.PlatformsOf(b)); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestImportPaths(t *testing.T) {
	t.Parallel()
	c := load(t)
	for _, tt := range []struct {
		name, want string
		test       bool
	}{
		{"kubectl", "slipway.build/cmd/kubectl", false},
		{"kube-log-runner", "k8s.io/component-base/logs/kube-log-runner", false},
		{"e2e.test", "k8s.io/kubernetes/test/e2e", true},
		{"smoke.test", "slipway.build/cmd/smoke", true},
	} {
		b, ok := c.Binary(tt.name)
		if !ok {
			t.Fatalf("no binary %s", tt.name)
		}
		if b.ImportPath() != tt.want || b.IsTest() != tt.test {
			t.Errorf("%s: got %s, test %v", tt.name, b.ImportPath(), b.IsTest())
		}
	}
}

func TestWhatIsReturnedIsTheCallers(t *testing.T) {
	t.Parallel()
	c := load(t)
	for _, get := range []func() []Platform{
		c.AllPlatforms,
		func() []Platform { p, _ := c.Platforms("linux/amd64,linux/arm64"); return p },
	} {
		want := slices.Clone(get())
		clear(get())
		if diff := cmp.Diff(want, get()); diff != "" {
			t.Error(diff)
		}
	}
}

func TestTarballNames(t *testing.T) {
	t.Parallel()
	c := load(t)
	got := c.Tarballs([]Platform{{OS: "linux", Arch: "arm64"}, {OS: "darwin", Arch: "arm64"}})
	want := []string{
		"kubernetes-server-linux-arm64.tar.gz",
		"kubernetes-node-linux-arm64.tar.gz",
		"kubernetes-client-darwin-arm64.tar.gz",
		"kubernetes-test-linux-arm64.tar.gz",
		"kubernetes-test-portable.tar.gz",
		"kubernetes-manifests.tar.gz",
		"kubernetes-src.tar.gz",
		"kubernetes.tar.gz",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestNameThatTheGoCommandGivesAFile(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pkg  string
		test bool
		want string
	}{
		{"./kubectl", false, "kubectl"},
		{"github.com/onsi/ginkgo/v2/ginkgo", false, "ginkgo"},
		{"example.com/tool/v2", false, "tool"},
		{"gopkg.in/tool.v2", false, "tool.v2"},
		{"k8s.io/kubernetes/test/e2e", true, "e2e.test"},
	} {
		if got := GoName(tt.pkg, tt.test); got != tt.want {
			t.Errorf("%s is %s, want %s", tt.pkg, got, tt.want)
		}
	}
}

func TestSameGoNameIsFineWhereItIsNotMadeTogether(t *testing.T) {
	t.Parallel()
	const hyperkube = "- {name: hyperkube, package: ./hyperkube, only: [linux/arm64, linux/amd64]}"
	for _, other := range []string{
		"- {name: windows-kubectl, package: k8s.io/kubernetes/cmd/hyperkube, only: [windows/amd64]}", // another platform
		"- {name: hyperkube.test, test: k8s.io/kubernetes/cmd/hyperkube, sets: [test]}",              // tests and programs
	} {
		if _, err := Load(tree(t, edit{hyperkube, hyperkube + "\n" + other})); err != nil {
			t.Error(err)
		}
	}
}
