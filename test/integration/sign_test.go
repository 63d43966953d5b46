//go:build integration

package integration

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"slipway.build/pkg/mechanism/timestamp/timestamptest"
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
	server, root := timestamptest.Serve(t)
	run(t, "/", nil, "cp", root, filepath.Join(dir, "tsa.pem")).ok(t)
	if !strings.Contains(script, "https://timestamp.example.com") {
		t.Error("the document has no timestamp")
	}
	script = strings.ReplaceAll(script, "https://timestamp.example.com", server)
	script = strings.ReplaceAll(script, "slipway trust set trust.json --key ~/release.pub --revoke", "sleep 1.1\n"+
		"slipway trust set trust.json --key ~/release.pub --revoke") // a timestamp has seconds
	env := []string{"HOME=" + home, "COSIGN_PASSWORD=secret", "PATH=" + filepath.Dir(slipway(t)) + ":" + os.Getenv("PATH")}
	got := run(t, dir, env, "sh", "-c", script).ok(t)
	for _, want := range []string{"signed by the key ", " and the key ", "Verified OK\n", "kubernetes-server-linux-amd64.tar.gz: OK\n"} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("no %q in\n%s", want, got.stdout)
		}
	}
	if strings.Contains(got.stdout+got.stderr, "secret") {
		t.Error("the password is printed")
	}
	// sigstore-go reads the timestamps, and misses those that are not there.
	stamped := []string{filepath.Join(home, "release.pub"), "release.json.sigstore.json", "release.json", filepath.Join(dir, "tsa.pem")}
	run(t, tars, env, client(t, "bundle"), stamped...).ok(t)
	added, err := filepath.Glob(tars + "/signatures/*/release.json.sigstore.json")
	if err != nil || len(added) != 1 {
		t.Fatalf("signatures that were added: %s, %v", added, err)
	}
	stamped[0], stamped[1] = filepath.Join(home, "next.pub"), added[0]
	run(t, tars, env, client(t, "bundle"), stamped...).fails(t, 1, "timestamps")
	run(t, tars, env, client(t, "bundle"), stamped[:3]...).ok(t)
	// The revoked key counts by its timestamps, and without them the other key does.
	trusted := []string{"verify", tars, "--trust", filepath.Join(dir, "trust.json"), "--key", filepath.Join(home, "root.pub")}
	if got := run(t, dir, env, slipway(t), trusted...).ok(t); !strings.Contains(got.stdout, " and the key ") {
		t.Errorf("by timestamps: %s", got.stdout)
	}
	run(t, dir, env, slipway(t), "sign", tars, "--key", filepath.Join(home, "release.key")).ok(t)
	if got := run(t, dir, env, slipway(t), trusted...).ok(t); strings.Contains(got.stdout, " and the key ") ||
		!strings.Contains(got.stdout, "no timestamp that is believed") {
		t.Errorf("without timestamps: %s", got.stdout)
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
