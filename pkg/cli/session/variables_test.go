package session

import (
	"bytes"
	"testing"
)

func TestVariablesWithoutEffectAreNamedOnce(t *testing.T) {
	var out bytes.Buffer
	set := map[string]string{"KUBE_CROSS_IMAGE": "x", "KUBE_CGO_OVERRIDES": "-N", "KUBE_FASTBUILD": "true"}
	for range 2 {
		SayUnread(func(name string) string { return set[name] }, &out)
	}
	const want = "slipway: KUBE_CGO_OVERRIDES, KUBE_CROSS_IMAGE: without effect here, see docs/make.md for what is read instead\n"
	if out.String() != want {
		t.Errorf("said %q, want %q", out.String(), want)
	}
}
