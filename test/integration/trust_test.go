//go:build integration

package integration

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"slipway.build/pkg/mechanism/signature"
)

// signedCopy returns a folder with a copy of the shared release, its images included, signed by a key whose public half is beside them. All
// tests share it, and must not change it.
func signedCopy(t *testing.T) (dir, public string) {
	t.Helper()
	dir, err := sharedSignedCopy()
	if err != nil {
		t.Fatal(err)
	}
	return dir, filepath.Join(dir, "release.pub")
}

var sharedSignedCopy = sync.OnceValues(func() (string, error) {
	r, err := sharedRelease()
	if err != nil {
		return "", err
	}
	bin, err := slipwayBinary()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(workspace, "signed")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", err
	}
	const script = `set -e
		cp -al "$release" release-tars # by links: nobody writes into a file of a release
		cp -al "$layout" oci
		"$slipway" keys new "$PWD/release"
		"$slipway" sign release-tars --layout oci --key release.key`
	env := []string{"COSIGN_PASSWORD=secret", "release=" + r.path(tars), "layout=" + r.path(layoutDir), "slipway=" + bin}
	return dir, madeBeside("a signed copy of the release", command(dir, env, "sh", "-c", script))
})

// Bills of materials are valid by their standards' own schemas.
func TestBillsOfMaterialsAreValid(t *testing.T) {
	containerLane.join(t)
	r := baseline(t)
	files, err := filepath.Glob(r.path(tars) + "/*.*.json")
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob(r.path(tars) + "/sbom/*.json")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 4 || len(more) != 2*(len(imageNames)+len(addonImages)) {
		t.Fatalf("%d documents of the release, %d of images", len(files), len(more))
	}
	run(t, "../clients", nil, client(t, "schema"), append(files, more...)...).ok(t)
}

// Syft finds nothing in a release that its bill of materials does not have.
func TestBillsOfMaterialsHaveWhatSyftFinds(t *testing.T) {
	rare(t, "compiling syft takes minutes, and its scans take more")
	containerLane.join(t)
	r := baseline(t)
	scan := func(source, document string) {
		t.Helper()
		env := []string{"SYFT_CHECK_FOR_APP_UPDATE=false", "HOME=" + t.TempDir()}
		var found struct {
			Artifacts []struct{ Name, Version, Type string }
		}
		if err := json.Unmarshal([]byte(run(t, "/", env, client(t, "syft"), "scan", source, "-q", "-o",
			"json").ok(t).stdout), &found); err != nil {
			t.Fatal(err)
		}
		var ours struct {
			Components []struct{ Name, Version string }
		}
		if err := json.Unmarshal([]byte(r.read(t, tars+"/"+document)), &ours); err != nil {
			t.Fatal(err)
		}
		known := map[string]bool{}
		for _, c := range ours.Components {
			known[c.Name+"@"+strings.TrimPrefix(c.Version, "go")] = true
		}
		kinds := map[string]int{}
		for _, a := range found.Artifacts {
			kinds[a.Type]++
			switch name := a.Name + "@" + strings.TrimPrefix(a.Version, "go"); {
			case known[name]:
			case strings.HasPrefix(a.Name, "slipway.build/"): // the main module: the tree, which is there as its source tarball
			case a.Type == "deb" && a.Name == "gcc-14": // a guess: the source package of gcc-14-base, not a package that is there
			default:
				t.Errorf("%s has %s %s, which %s does not have", source, a.Type, name, document)
			}
		}
		if kinds["go-module"] == 0 {
			t.Errorf("syft finds no Go module in %s", source)
		}
		if strings.Contains(source, "kube-proxy") && kinds["deb"] < 20 {
			t.Errorf("syft finds %d Debian packages in %s", kinds["deb"], source)
		}
	}
	scan("file:"+r.path(tars+"/kubernetes-server-"+host+".tar.gz"), "kubernetes-release.cdx.json")
	scan("file:"+r.path(tars+"/kubernetes-node-"+host+".tar.gz"), "kubernetes-release.cdx.json")
	scan("file:"+r.path(hostBin("kubectl")), "kubernetes-release.cdx.json")
	for _, image := range []string{"kube-apiserver", "kube-proxy", "coredns"} {
		scan("docker-archive:"+r.path(hostImage(image+".tar")), "sbom/"+image+"-"+host+".cdx.json")
	}
}

// Cosign and sigstore-go accept what slipway signs, without network, and nothing else.
func TestOtherClientsAcceptSignatures(t *testing.T) {
	containerLane.join(t)
	dir, key := signedCopy(t)
	folder := filepath.Join(dir, "release-tars")
	offline := func(args ...string) result {
		return run(t, folder, []string{"HOME=" + dir}, "unshare", append([]string{"--net", "--"}, args...)...)
	}
	cosign, bundle := cosign(t), client(t, "bundle")
	small := "kubernetes-manifests.tar.gz"
	attestation := "attestations/" + small + ".provenance.sigstore.json"

	offline(cosign, "verify-blob", "--key", key, "--bundle", "SHA256SUMS.sigstore.json", "--insecure-ignore-tlog", "SHA256SUMS").ok(t)
	offline(cosign, "verify-blob-attestation", "--key", key, "--bundle", attestation, "--insecure-ignore-tlog", "--type",
		"slsaprovenance1", small).ok(t)
	offline(bundle, key, "release.json.sigstore.json", "release.json").ok(t)
	offline(bundle, key, attestation, small).ok(t)
	offline(bundle, key, "attestations/provenance.sigstore.json", "release.json").ok(t)

	offline(cosign, "verify-blob", "--key", key, "--bundle", "SHA256SUMS.sigstore.json", "--insecure-ignore-tlog",
		"SHA512SUMS").fails(t, 1, "")
	offline(cosign, "verify-blob-attestation", "--key", key, "--bundle", attestation, "--insecure-ignore-tlog", "--type", "slsaprovenance1",
		"kubernetes.tar.gz").fails(t, 1, "")
	offline(bundle, key, attestation, "kubernetes.tar.gz").fails(t, 1, "")

	keys, env := t.TempDir(), []string{"COSIGN_PASSWORD=secret", "HOME=" + dir}
	for _, kind := range signature.Types() {
		run(t, keys, env, slipway(t), "keys", "new", kind, "--type", kind).ok(t)
		run(t, keys, env, slipway(t), "trust", "set", kind+".json", "--key", kind+".pub").ok(t)
		run(t, keys, env, slipway(t), "trust", "sign", kind+".json", "--key", kind+".key").ok(t)
		run(t, keys, env, cosign, "verify-blob", "--key", kind+".pub", "--bundle", kind+".json.sigstore.json", "--insecure-ignore-tlog",
			kind+".json").ok(t)
		run(t, keys, env, cosign, "verify-blob", "--key", kind+".pub", "--bundle", kind+".json.sigstore.json", "--insecure-ignore-tlog",
			kind+".pub").fails(t, 1, "")
		run(t, keys, env, bundle, kind+".pub", kind+".json.sigstore.json", kind+".json").ok(t)
		run(t, keys, env, bundle, kind+".pub", kind+".json.sigstore.json", kind+".pub").fails(t, 1, "")
	}
}

func TestVerifyOfAWebServer(t *testing.T) {
	containerLane.join(t)
	dir, key := signedCopy(t)
	folder := filepath.Join(dir, "changed-tars")
	run(t, dir, nil, "cp", "-al", "release-tars", folder).ok(t)
	var broken, resumed atomic.Int64
	files := http.FileServer(http.Dir(folder))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.Header.Get("Range"), "bytes=") {
			resumed.Add(1)
		}
		if strings.HasSuffix(r.URL.Path, "/release.json") || !strings.HasSuffix(r.URL.Path, ".tar.gz") {
			files.ServeHTTP(w, r)
			return
		}
		files.ServeHTTP(&breaking{ResponseWriter: w, left: 50 << 20, broken: &broken}, r)
	}))
	t.Cleanup(server.Close)
	address, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	got := run(t, dir, nil, slipway(t), "verify", address.JoinPath("/").String()+"/", "--key", key).ok(t)
	if !strings.Contains(got.stdout, "signed by the key") || broken.Load() == 0 || resumed.Load() == 0 {
		t.Errorf("%d connections broke and %d were resumed: %s", broken.Load(), resumed.Load(), got.stdout)
	}
	run(t, dir, nil, slipway(t), "verify", server.URL+"/kubernetes.tar.gz", "--key", key).ok(t)
	changed := filepath.Join(folder, "kubernetes.tar.gz")
	data, err := os.ReadFile(changed)
	if err != nil {
		t.Fatal(err)
	}
	data = slices.Clone(data)
	data[len(data)/2]++
	if err := os.Remove(changed); err != nil { // it is the release's, too
		t.Fatal(err)
	}
	if err := os.WriteFile(changed, data, 0o644); err != nil {
		t.Fatal(err)
	}
	got = run(t, dir, nil, slipway(t), "verify", server.URL+"/kubernetes.tar.gz", "--key", key).fails(t, 1, "")
	if !strings.Contains(got.stdout, "kubernetes.tar.gz: changed") {
		t.Errorf("a changed file: %s", got.stdout)
	}
	run(t, dir, nil, slipway(t), "verify", server.URL+"/none.tar.gz", "--key", key).fails(t, 1, "is not a file of release")
}

// breaking ends a connection after a number of bytes.
type breaking struct {
	http.ResponseWriter
	left   int64
	broken *atomic.Int64
}

func (b *breaking) Write(p []byte) (int, error) {
	if b.left -= int64(len(p)); b.left < 0 {
		b.broken.Add(1)
		panic(http.ErrAbortHandler)
	}
	return b.ResponseWriter.Write(p)
}

// Verifying needs little memory, however large a release is.
func TestVerifyNeedsLittleMemory(t *testing.T) {
	containerLane.join(t)
	dir, key := signedCopy(t)
	verify := exec.Command(slipway(t), "verify", filepath.Join(dir, "release-tars"), "--key", key)
	stdout, err := verify.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := verify.Start(); err != nil {
		t.Fatal(err)
	}
	// What the kernel says of a process that has ended counts the memory of the one that started it.
	var used int64 // KiB
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, stdout)
	}()
	for samples := 0; ; samples++ {
		used = max(used, peak(verify.Process.Pid))
		select {
		case <-ended:
			if err := verify.Wait(); err != nil {
				t.Fatal(err)
			}
			if t.Logf("%d KiB in %d samples", used, samples); used == 0 || used > 100<<10 {
				t.Errorf("%d KiB, want at most 100 MiB", used)
			}
			return
		case <-time.After(time.Millisecond):
		}
	}
}

// peak returns how much memory of a process was resident at most, in KiB, or 0 once it has ended.
func peak(pid int) (kib int64) {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(data)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			_, _ = fmt.Sscanf(value, "%d", &kib)
		}
	}
	return kib
}

// Of a file, slipway says what made it, of what, and where else it is; of a module, which imports bring it in.
func TestWhyNamesTheOriginOfFiles(t *testing.T) {
	r := baseline(t)
	server := "kubernetes-server-" + host + ".tar.gz"
	ask := func(into any, args ...string) {
		t.Helper()
		if err := json.Unmarshal([]byte(r.slipway(t, append([]string{"why", "--json"}, args...)...).ok(t).stdout), into); err != nil {
			t.Fatal(err)
		}
	}
	type place struct{ Artifact, Member string }
	type input struct{ Kind, Name string }
	var answer struct {
		Action, Package, SHA256, Source, License string
		Flags                                    []string
		Inputs                                   []input
		In                                       []place
		Debian                                   input
	}
	ask(&answer, server, "kubernetes/server/bin/kubelet")
	if answer.Action != "compile linux/"+hostArch+" kubelet" || answer.Package != "slipway.build/cmd/kubelet" ||
		answer.SHA256 != r.sum(t, hostBin("kubelet")) ||
		!slices.Contains(answer.Flags, "-trimpath") || !slices.Contains(answer.Inputs, input{"module", "k8s.io/kubernetes"}) ||
		!slices.Contains(answer.In, place{"kubernetes-node-" + host + ".tar.gz", "kubernetes/node/bin/kubelet"}) {
		t.Errorf("kubelet: %+v", answer)
	}
	for member, want := range map[string]string{
		"kubernetes/addons/coredns/rbac.yaml":                  "release/manifests/addons/coredns/rbac.yaml",
		"kubernetes/LICENSES/vendor/k8s.io/kubernetes/LICENSE": "k8s.io/kubernetes@" + kubernetesOf(t, r.tree),
	} {
		answer.Source, answer.License = "", ""
		if ask(&answer, server, member); answer.Source+answer.License != want {
			t.Errorf("%s: %+v", member, answer)
		}
	}
	for _, name := range []string{"usr/sbin/xtables-nft-multi", "usr/sbin/iptables"} { // a file, and a link to it that was chosen
		answer.Debian = input{}
		if ask(&answer, "kube-proxy.tar", name); answer.Debian != (input{"debian", "iptables"}) {
			t.Errorf("%s: %+v", name, answer)
		}
	}
	var module struct {
		Links []struct {
			Binary string
			Chain  []string
		}
	}
	ask(&module, "sigs.k8s.io/yaml")
	chains := 0
	for _, l := range module.Links {
		if l.Binary != "linux/"+hostArch+"/kubectl" {
			continue
		}
		chains = len(l.Chain)
		for i, pkg := range l.Chain[1:] {
			imports := run(t, r.path("cmd"), likeRelease, "go", "list", "-f", "{{.Imports}}", l.Chain[i]).ok(t).stdout
			if !slices.Contains(strings.Fields(strings.Trim(imports, "[]\n")), pkg) {
				t.Errorf("%s does not import %s", l.Chain[i], pkg)
			}
		}
	}
	if chains < 2 {
		t.Errorf("kubectl has no chain of imports to sigs.k8s.io/yaml: %+v", module)
	}
	r.slipway(t, "why", "kubelot").fails(t, 1, "did you mean kubelet?")
}
