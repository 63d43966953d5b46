//go:build integration

package integration

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"slipway.build/pkg/ship/bundle"
)

// bundleOf returns arguments for a bundle of a signed copy for this machine.
func bundleOf(output string) []string {
	return []string{"bundle", "release-tars", "--layout=oci", "--key=release.pub", "--platform=linux/" + hostArch, "--output=" + output}
}

// sharedBundle is the bundle of the shared release, which no test changes.
func sharedBundle(t *testing.T) string {
	t.Helper()
	file, err := makeBundle()
	if err != nil {
		t.Fatal(err)
	}
	return file
}

var makeBundle = sync.OnceValues(func() (string, error) {
	dir, err := sharedSignedCopy()
	bin, noBinary := slipwayBinary()
	if err := errors.Join(err, noBinary); err != nil {
		return "", err
	}
	file := filepath.Join(workspace, "acme.tar")
	return file, madeBeside("a bundle of the release", command(dir, []string{"HOME=" + dir}, bin, bundleOf(file)...))
})

// A bundle is read by what people have behind an air gap: engines, skopeo, podman, the release's own containerd, registries.
func TestBundleIsReadByOthers(t *testing.T) {
	needRoot(t) // containerd and podman
	need(t, "docker", "docker.io")
	for _, program := range []string{"skopeo", "podman", "docker-registry"} {
		need(t, program, program)
	}
	treeLane.join(t) // no other test has these images in the engine
	r := baseline(t)
	file, tmp := sharedBundle(t), t.TempDir()
	_, key := signedCopy(t)
	b, err := bundle.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	names := b.Summary().Images
	b.Close()
	if len(names) != len(imageNames)+len(addonImages)+1 { // coredns has two names
		t.Errorf("it has the images %q", names)
	}
	env := []string{"HOME=" + tmp, "TMPDIR=" + tmp, "XDG_RUNTIME_DIR=" + tmp}
	has := func(what, listed string) {
		t.Helper()
		for _, name := range names {
			if !strings.Contains(listed, name) {
				t.Errorf("%s lacks %s: %s", what, name, listed)
			}
		}
	}

	t.Cleanup(func() { run(t, tmp, nil, "docker", append([]string{"image", "rm"}, names...)...) })
	has("docker", run(t, tmp, nil, "docker", "load", "--input", file).ok(t).stdout)
	kubectl := names[slices.IndexFunc(names, func(name string) bool { return strings.Contains(name, "/kubectl:") })]

	podman := []string{"--root=" + tmp + "/podman", "--runroot=" + tmp + "/run", "--storage-driver=vfs"}
	policy := filepath.Join(tmp, "policy.json")
	put(t, []byte(`{"default":[{"type":"insecureAcceptAnything"}]}`), policy)
	has("podman", run(t, tmp, env, "podman", append(podman, "load", "--signature-policy="+policy, "--input", file)...).ok(t).stdout)

	for _, transport := range []string{"oci-archive", "docker-archive"} {
		to := "dir:" + filepath.Join(tmp, transport)
		run(t, tmp, env, "skopeo", "--insecure-policy", "copy", "--quiet", transport+":"+file+":"+kubectl, to).ok(t)
	}

	config, socket := filepath.Join(tmp, "config.toml"), filepath.Join(tmp, "containerd.sock")
	put(t, []byte("version = 3\nroot = '"+tmp+"/root'\nstate = '"+tmp+"/state'\n[grpc]\naddress = '"+socket+"'\n"+
		"[plugins.'io.containerd.nri.v1.nri']\ndisable = true\n"), config) // whose socket would be in /run
	containerd := tree{dir: tmp}.start(t, r.path(hostBin("containerd")), "--config", config)
	defer containerd.kill(t)
	ctr := func(args ...string) result {
		return run(t, tmp, nil, r.path(hostBin("ctr")), append([]string{"--address", socket, "--namespace=k8s.io"}, args...)...)
	}
	for deadline := time.Now().Add(30 * time.Second); ctr("version").code != 0; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("containerd does not answer: %v", ctr("version"))
		}
	}
	ctr("images", "import", "--no-unpack", file).ok(t)
	listed := ctr("images", "list", "--quiet").ok(t).stdout
	has("containerd", listed)
	if strings.Contains(listed, "sha256-") {
		t.Errorf("containerd takes referrers for images: %s", listed)
	}

	at := registryServer(t)
	publish := []string{"publish", file, "--key=" + key, "--registry=" + at + "/k8s"}
	run(t, tmp, env, slipway(t), publish...).ok(t)
	if again := run(t, tmp, env, slipway(t), publish...).ok(t).stdout; !strings.Contains(again, ": 0 images and 0 referrers sent, 0 B; ") {
		t.Errorf("again: %s", again)
	}
	run(t, tmp, env, slipway(t), "verify", at+"/k8s/"+filepath.Base(kubectl), "--key="+key).ok(t)
	run(t, tmp, env, cosign(t), "verify", "--key="+key, "--insecure-ignore-tlog", at+"/k8s/"+filepath.Base(kubectl)).ok(t)
}

// Neither a kill nor a full disk leaves a part of a bundle under its name, and the same command ends the same, wherever it runs.
func TestBundleIsWholeOrNotThere(t *testing.T) {
	needRoot(t)
	treeLane.join(t)
	dir, _ := signedCopy(t)
	tmp := t.TempDir()
	at := tree{dir: filepath.Join(tmp, "small")}
	file := at.path("acme.tar")
	if err := os.Mkdir(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	small := append(bundleOf(file), "--tarballs=false")
	if got := run(t, tmp, nil, "mount", "-t", "tmpfs", "-o", "size=50m", "slipway-test", filepath.Dir(file)); got.code != 0 {
		missing(t, "file systems cannot be mounted here: "+got.stderr)
	}
	unmount := sync.OnceFunc(func() { run(t, "/", nil, "umount", filepath.Dir(file)).ok(t) })
	t.Cleanup(unmount)
	env := []string{"HOME=" + tmp}
	run(t, dir, env, slipway(t), small...).fails(t, 1, "acme.tar is not written: ", "no space left on device")
	empty := func() {
		t.Helper()
		if left, err := os.ReadDir(filepath.Dir(file)); len(left) > 0 {
			t.Errorf("it left %v, %v", left, err)
		}
	}
	empty()
	unmount()
	took := run(t, dir, env, slipway(t), small...).ok(t).took
	whole := at.sum(t, "acme.tar")
	kills := 3
	if soak {
		kills = 20
	}
	for range kills {
		p := tree{dir: dir}.with(env...).start(t, slipway(t), small...)
		p.after(time.Duration(rand.Int64N(int64(took))))
		p.kill(t)
		if got := at.sum(t, "acme.tar"); got != whole {
			t.Fatalf("a kill has left a bundle with the sum %s, want %s", got, whole)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	elsewhere := append([]string{"TZ=Asia/Tokyo"}, env...)
	run(t, dir, elsewhere, "sh", append([]string{"-c", `umask 077; exec "$@"`, "sh", slipway(t)}, small...)...).ok(t)
	if got := at.sum(t, "acme.tar"); got != whole {
		t.Errorf("elsewhere, its sum is %s, want %s", got, whole)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	empty()
}
