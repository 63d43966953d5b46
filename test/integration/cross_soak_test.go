//go:build integration && soak

package integration

import (
	"debug/elf"
	"debug/macho"
	"testing"
)

func TestCrossCompilesKubectlForArm(t *testing.T) {
	tr := clone(t).with("KUBE_BUILD_PLATFORMS=linux/arm64 darwin/arm64", "WHAT=cmd/kubectl")
	tr.make(t, "cross").ok(t)
	if got := elfMachine(t, tr.path(binaries+"/linux/arm64/kubectl")); got != elf.EM_AARCH64 {
		t.Errorf("linux/arm64 is for %v", got)
	}
	f, err := macho.Open(tr.path(binaries + "/darwin/arm64/kubectl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Cpu != macho.CpuArm64 || f.Type != macho.TypeExec {
		t.Errorf("darwin/arm64 is a %v for %v", f.Type, f.Cpu)
	}
}
