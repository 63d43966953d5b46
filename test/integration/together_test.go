//go:build integration

package integration

import (
	"strings"
	"testing"
)

func TestSecondRunInATreeWaits(t *testing.T) {
	r := baseline(t)
	r.remove(t, tars, images, hostBin("kube-apiserver"), hostBin("kubelet"), "_output/.slipway/links") // so that the first takes a while
	first := r.start(t, "make", quick)
	if !first.until(t, first.says("image linux/")) {
		t.Fatalf("the first run ended too early: %v", first.wait(t))
	}
	second := r.start(t, "make", quick)
	if !second.until(t, second.says("waiting for another run in this tree (process ")) {
		t.Errorf("the second run does not say that it waits: %v", second.wait(t))
	}
	first.wait(t).ok(t)
	if got := second.wait(t).ok(t); !strings.Contains(got.stdout, " unchanged in ") {
		t.Errorf("the second run repeated what the first had done: %v", got)
	}
	r.sameFiles(t, r.tree)
}

func TestCleanWaitsForARun(t *testing.T) {
	tr := clone(t)
	build := tr.start(t, slipway(t), "build", "kube-log-runner", "kubectl")
	if !build.until(t, build.says("compile linux/")) {
		t.Fatalf("the build ended too early: %v", build.wait(t))
	}
	clean := tr.start(t, slipway(t), "clean")
	build.wait(t).ok(t)
	if got := clean.wait(t).ok(t); !strings.Contains(got.stdout, "waiting for another run in this tree") {
		t.Errorf("clean does not say that it waits: %v", got)
	}
	if tr.exists("_output") {
		t.Error("_output is still there")
	}
}
