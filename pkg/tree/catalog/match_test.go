package catalog

import (
	"testing"

	"slipway.build/pkg/mechanism/badrequest"
)

func TestMatchKnowsEverySpelling(t *testing.T) {
	t.Parallel()
	c := load(t)
	for _, tt := range []struct{ what, want string }{
		{"", ""},
		{"kubectl", "kubectl"},
		{"cmd/kubectl", "kubectl"},
		{"./cmd/kubectl", "kubectl"},
		{"./cmd/kubectl/", "kubectl"},
		{"./kubectl", "kubectl"},
		{"slipway.build/cmd/kubectl", "kubectl"},
		{"k8s.io/kubernetes/cmd/kubectl", "kubectl"},
		{"staging/src/k8s.io/kube-aggregator", "kube-aggregator"},
		{"vendor/k8s.io/kube-aggregator", "kube-aggregator"},
		{"k8s.io/component-base/logs/kube-log-runner", "kube-log-runner"},
		{"staging/src/k8s.io/component-base/logs/kube-log-runner", "kube-log-runner"},
		{"vendor/k8s.io/component-base/logs/kube-log-runner/", "kube-log-runner"},
		{"vendor/github.com/onsi/ginkgo/v2/ginkgo", "ginkgo"},
		{"test/conformance/image/go-runner", "go-runner"},
		{"e2e.test", "e2e.test"},
		{"test/e2e", "e2e.test"},
		{"test/e2e/e2e.test", "e2e.test"},
		{"./test/e2e_node/e2e_node.test", "e2e_node.test"},
		{"k8s.io/kubernetes/test/e2e/e2e.test", "e2e.test"},
		{"cmd/smoke/smoke.test", "smoke.test"},
		{" kubectl\tkube-apiserver\n kubectl ./cmd/kubectl ", "kube-apiserver kubectl"},
		{"hyperkube", "hyperkube"},
		{"cmd/...", "kube-apiserver kube-aggregator kubelet kubectl hyperkube smoke.test"},
		{"./cmd/kubectl/...", "kubectl"},
		{"test/...", "e2e.test go-runner e2e_node.test"},
		{"./...", names(c.Binaries)},
	} {
		got, err := c.Match(tt.what)
		if err != nil || names(got) != tt.want {
			t.Errorf("%q: got %q, %v, want %q", tt.what, names(got), err, tt.want)
		}
	}
}

func TestMatchSuggestsWhatWasMeant(t *testing.T) {
	t.Parallel()
	c := load(t)
	for _, tt := range []struct{ what, want string }{
		{"kubctl", "unknown component \"kubctl\"; did you mean kubectl?"},
		{"KubeCTL", "unknown component \"KubeCTL\"; did you mean kubectl?"},
		{"cmd/kubctl", "unknown component \"cmd/kubctl\"; did you mean kubectl?"},
		{"./cmd/kubctl/", "unknown component \"./cmd/kubctl/\"; did you mean kubectl?"},
		{"apiserver", "unknown component \"apiserver\"; did you mean kube-apiserver?"},
		{"e2e", "unknown component \"e2e\"; did you mean e2e.test or e2e_node.test?"},
		{"cmd/etcd", "unknown component \"cmd/etcd\""},
		{"kubectl...", "unknown component \"kubectl...\"; did you mean kubectl?"},
		{"--", "unknown component \"--\""},
		{"kubectl etcd kublet etcd", "unknown component \"etcd\"\n" +
			"unknown component \"kublet\"; did you mean kubelet?"},
	} {
		got, err := c.Match(tt.what)
		if err == nil || err.Error() != tt.want || got != nil {
			t.Errorf("%q: got %q and error\n%v\nwant\n%s", tt.what, names(got), err, tt.want)
		}
		if !badrequest.Is(err) {
			t.Errorf("%q: the error is not the request's fault", tt.what)
		}
	}
}

func TestPlatformsOfTheCommandLine(t *testing.T) {
	t.Parallel()
	c := load(t)
	for _, tt := range []struct{ words, want, err string }{
		{words: ""},
		{words: " , "},
		{words: "linux/arm64", want: "linux/arm64"},
		{words: "darwin/arm64 linux/amd64", want: "linux/amd64 darwin/arm64"},
		{words: "darwin/arm64,linux/amd64,\nlinux/amd64", want: "linux/amd64 darwin/arm64"},
		{words: "linux/amd46", err: "unknown platform \"linux/amd46\"; did you mean linux/amd64?"},
		{words: "linux/amd64 plan9/arm", err: "unknown platform \"plan9/arm\""},
		{words: "x y x", err: "unknown platform \"x\"\n" +
			"unknown platform \"y\""},
	} {
		got, err := c.Platforms(tt.words)
		message := ""
		if err != nil {
			message = err.Error()
		}
		if join(got) != tt.want || message != tt.err {
			t.Errorf("%q: got %q, %q, want %q, %q", tt.words, join(got), message, tt.want, tt.err)
		}
	}
}
