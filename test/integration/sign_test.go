//go:build integration

package integration

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The commands of docs/verify.md sign and verify a real release, and find a change.
func TestCommandsOfTheDocumentOnSignatures(t *testing.T) {
	need(t, "openssl", "openssl")
	r := baseline(t)
	dir, home := t.TempDir(), t.TempDir()
	tars := filepath.Join(dir, "_output", "release-tars")
	if err := os.MkdirAll(filepath.Dir(tars), 0o755); err != nil {
		t.Fatal(err)
	}
	// By links: nobody writes into a file of a release.
	run(t, "/", nil, "cp", "-al", r.path("_output/release-tars"), tars).ok(t)
	layout := filepath.Join(dir, "_output", "release-images", "oci")
	if err := os.MkdirAll(filepath.Dir(layout), 0o755); err != nil {
		t.Fatal(err)
	}
	run(t, "/", nil, "cp", "-al", r.path(images+"/oci"), layout).ok(t)
	script := "set -eu\n"
	for _, m := range regexp.MustCompile("(?s)```sh\n(.*?)```\n").FindAllStringSubmatch(r.tree.read(t, "docs/verify.md"), -1) {
		script += m[1]
	}
	env := []string{"HOME=" + home, "COSIGN_PASSWORD=secret", "PATH=" + filepath.Dir(slipway(t)) + ":" + os.Getenv("PATH")}
	got := run(t, dir, env, "sh", "-c", script).ok(t)
	for _, want := range []string{"signed by the key ", "Verified OK\n", "kubernetes-server-linux-amd64.tar.gz: OK\n"} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("no %q in\n%s", want, got.stdout)
		}
	}
	if strings.Contains(got.stdout+got.stderr, "secret") {
		t.Error("the password is printed")
	}
	// The same sums, made again for another file, are not signed.
	changed := filepath.Join(tars, "kubernetes.tar.gz")
	if err := os.Remove(changed); err != nil { // it is the release's, too
		t.Fatal(err)
	}
	if err := os.WriteFile(changed, []byte("evil"), 0o644); err != nil {
		t.Fatal(err)
	}
	run(t, dir, env, "sh", "-c", `set -e
		cd _output/release-tars
		sha256sum $(cut -c67- SHA256SUMS) >new
		mv new SHA256SUMS`).ok(t)
	got = run(t, dir, env, slipway(t), "verify", tars, "--key", filepath.Join(home, "release.pub")).fails(t, 1, "is not to be trusted")
	for _, want := range []string{"kubernetes.tar.gz: cut short", "SHA256SUMS: changed",
		"SHA256SUMS.sigstore.json: bad signature: it is of another content"} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("no %q in\n%s", want, got.stdout)
		}
	}
}
