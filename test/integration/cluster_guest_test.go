//go:build integration && soak && linux

package integration

import (
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"slipway.build/test/guest"
)

// inGuest boots a cluster on a machine that has only cgroup version 2. The machine is slow, so it makes only a few checks.
const inGuest = `set -eu
if grep ' cgroup ' /proc/mounts; then exit 1; fi
modprobe -a ip_vs ip_vs_rr
mkdir -p /work/release
cd /work
: >release/release.yaml
groups() { { cat /sys/fs/cgroup/cgroup.subtree_control; find /sys/fs/cgroup -mindepth 1 -type d | sort; } >OUT/$1; }

groups before
SLIPWAY cluster up --wait 30m --from TARBALLS
SLIPWAY cluster status
groups during
SLIPWAY cluster verify --timeout 15m --only kubelet/logs,kubelet/memory-limit,services/cluster-ip,services/proxy-ipvs --keep-going

echo without kube-proxy
_output/cluster/slipway/release/kubernetes/server/bin/kubectl --kubeconfig "$(SLIPWAY cluster kubeconfig)" \
	--namespace kube-system delete daemonset kube-proxy
if SLIPWAY cluster verify --timeout 1m --only services/proxy-ipvs --keep-going; then exit 1; fi

SLIPWAY cluster down
groups after
`

// A cluster works on a machine that has only cgroup version 2, as most do by now, and leaves no groups. The guest's kernel has IPVS, so
// kube-proxy's mode of that name is tested here, too.
func TestClusterWorksWithCgroupVersion2(t *testing.T) {
	needRoot(t)
	need(t, "mmdebstrap", "mmdebstrap")
	need(t, "mke2fs", "e2fsprogs")
	need(t, guest.Emulator, guest.EmulatorPackage)
	if runtime.GOARCH != "amd64" {
		t.Skip("guests are for amd64, and this is " + runtime.GOARCH)
	}
	machine, err := guest.Make(t.Context(), t.TempDir(), "iproute2")
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	script := strings.NewReplacer("SLIPWAY", "/host"+slipway(t), "TARBALLS", "/host"+released(t), "OUT", "/host"+out).Replace(inGuest)
	result, err := machine.Run(t.Context(), 5<<10, script)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s", result.Output)
	if result.Code != 0 {
		t.Fatalf("exit code %d", result.Code)
	}
	works, broken, _ := strings.Cut(result.Output, "without kube-proxy\n")
	if !strings.Contains(works, "4 passed, 0 failed, 0 skipped") {
		t.Error("not all checks passed")
	}
	if !strings.Contains(broken, "0 passed, 1 failed, 0 skipped") {
		t.Error("without kube-proxy the check of its mode ipvs does not fail")
	}
	groups := func(when string) []string { return strings.Fields(readFile(filepath.Join(out, when))) }
	pods := func(group string) bool { return strings.Contains(group, "/slipway-1/kubepods/") }
	if during := groups("during"); !slices.ContainsFunc(during, pods) {
		t.Errorf("no Pod has a group of its own among %q", during)
	}
	if before, after := groups("before"), groups("after"); !slices.Equal(before, after) {
		t.Errorf("controllers and groups were %q and are %q", before, after)
	}
}
