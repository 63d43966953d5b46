//go:build integration

package integration

import (
	"debug/elf"
	"debug/pe"
	"testing"
)

func TestCrossCompilesForOtherPlatforms(t *testing.T) {
	cloneLane.join(t)
	tr := clone(t).with("KUBE_BUILD_PLATFORMS=linux/arm64 windows/amd64", "WHAT=kube-log-runner")
	tr.make(t, "cross").ok(t)
	if got := elfMachine(t, tr.path(binaries+"/linux/arm64/kube-log-runner")); got != elf.EM_AARCH64 {
		t.Errorf("linux/arm64 is for %v", got)
	}
	f, err := pe.Open(tr.path(binaries + "/windows/amd64/kube-log-runner.exe"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Machine != pe.IMAGE_FILE_MACHINE_AMD64 {
		t.Errorf("windows/amd64 is for machine %#x", f.Machine)
	}
	for _, name := range []string{"_output/bin", hostBin("kube-log-runner")} {
		if tr.exists(name) && host != "linux-arm64" {
			t.Errorf("%s was made for a platform that was not asked for", name)
		}
	}
}

func elfMachine(t *testing.T, name string) elf.Machine {
	t.Helper()
	if why := dynamic(t, name); why != "" {
		t.Errorf("%s is not static: it has %s", name, why)
	}
	f, err := elf.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return f.Machine
}
