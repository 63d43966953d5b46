//go:build integration

package integration

import (
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Jobs that each build one platform, and share only the server, leave nothing to make for a job that builds all platforms. The server is
// bazel-remote, where everybody may read.
func TestJobsOfOnePlatformShareACache(t *testing.T) {
	needRoot(t) // for namespaces
	need(t, "unshare", "util-linux")
	cloneLane.join(t)
	server := startBazelRemote(t)
	keys := t.TempDir()
	run(t, keys, []string{"COSIGN_PASSWORD="}, slipway(t), "keys", "new", "ci").ok(t)
	proxy := strings.TrimSpace(run(t, "", nil, "go", "env", "GOPROXY").ok(t).stdout)
	small := filepath.Join(t.TempDir(), "small") // its programs link nothing but Go's runtime
	if err := writeSmallTree(small); err != nil {
		t.Fatal(err)
	}
	job := func(path, platforms string, more ...string) result {
		tr := tree{dir: filepath.Join(t.TempDir(), "clone")}
		run(t, "/", nil, "cp", "-a", small, tr.dir).ok(t)
		env := append([]string{
			"HOME=/root", "PATH=" + path, "GOCACHE=", "GOMODCACHE=", "GOPATH=", "GOPROXY=" + proxy,
			"SLIPWAY_CACHE=grpcs://" + server.address, "SLIPWAY_CACHE_TLS_CA=" + server.ca, "SLIPWAY_CACHE_KEYS=" + filepath.Join(keys, "ci.pub"),
		}, more...)
		// The home of this machine's user, with all caches, is another one in there, unless the job has these.
		inside := `mount -t tmpfs tmpfs /root && exec "$@"`
		if len(more) > 0 && strings.HasPrefix(more[0], "GOCACHE=") {
			inside = `exec "$@"`
		}
		return run(t, tr.dir, env, "unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", inside, "sh",
			slipway(t), "--progress=plain", "build", "kubectl", "--platform", platforms)
	}
	platforms := []string{"linux/arm64", "windows/amd64"}
	secret, err := os.ReadFile(filepath.Join(keys, "ci.key"))
	if err != nil {
		t.Fatal(err)
	}
	sign := []string{"SLIPWAY_CACHE_UPLOAD=true", "SLIPWAY_CACHE_SIGNING_KEY=env://CACHE_KEY",
		"CACHE_KEY=" + string(secret), "COSIGN_PASSWORD="}
	here := []string{"GOCACHE=" + goEnv(t, "GOCACHE"), "GOMODCACHE=" + goEnv(t, "GOMODCACHE")}
	if refused := job(os.Getenv("PATH"), platforms[0], append(here, sign...)...).ok(t); !strings.Contains(refused.stderr,
		"not stored in the cache: compile linux") {
		t.Errorf("without a password, storing says %v", refused)
	}
	sign = append(sign, "SLIPWAY_CACHE_CREDENTIAL_HELPER="+server.helper)
	for _, platform := range platforms {
		made := job(os.Getenv("PATH"), platform, sign...).ok(t)
		if !strings.Contains(made.stdout+made.stderr, " stored, ") || strings.Contains(made.stderr, "not stored") {
			t.Errorf("%s: %v", platform, made)
		}
	}
	whole := job(withoutGo(t)+":/usr/bin:/bin", strings.Join(platforms, " ")).ok(t)
	if !strings.Contains(whole.stdout, "2 from the cache in ") {
		t.Errorf("of both platforms: %v", whole)
	}
}

// A bazelRemote is a server of a shared cache with TLS, where everybody may read, and users with a password may write.
type bazelRemote struct {
	address string // HOST:PORT
	helper  string // a credential helper that knows a password
	certificates
}

// startBazelRemote starts the server with TLS and a password.
func startBazelRemote(t *testing.T) bazelRemote {
	t.Helper()
	dir := t.TempDir()
	s := bazelRemote{address: freeAddress(t), helper: filepath.Join(dir, "helper"), certificates: certify(t, dir)}
	sum := sha1.Sum([]byte("sesame"))
	put(t, fmt.Appendf(nil, "ci:{SHA}%s\n", base64.StdEncoding.EncodeToString(sum[:])), filepath.Join(dir, "htpasswd"))
	put(t, fmt.Appendf(nil, "#!/bin/sh\nprintf '{\"headers\": {\"Authorization\": [\"Basic %s\"]}}'\n",
		base64.StdEncoding.EncodeToString([]byte("ci:sesame"))), s.helper)
	if err := os.Chmod(s.helper, 0o755); err != nil {
		t.Fatal(err)
	}
	stop, err := runBazelRemote(dir, s.address, "--tls_cert_file="+s.certificate, "--tls_key_file="+s.key,
		"--htpasswd_file="+filepath.Join(dir, "htpasswd"), "--allow_unauthenticated_reads")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	await(t, insecure.DialContext, s.address, filepath.Join(dir, "log"))
	return s
}

// bazelRemoteProgram compiles the server in test/servers.
var bazelRemoteProgram = sync.OnceValues(func() (string, error) {
	name := filepath.Join(workspace, "bazel-remote")
	return name, madeBeside("bazel-remote", command("../servers", likeRelease, "go", "build", "-o", name, "github.com/buchgr/bazel-remote/v2"))
})

// runBazelRemote starts bazel-remote at an address, with its data and its log in a folder.
func runBazelRemote(dir, address string, flags ...string) (stop func(), err error) {
	program, err := bazelRemoteProgram()
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	flags = append(flags, "--dir="+filepath.Join(dir, "data"), "--max_size=10", "--grpc_address="+address,
		"--http_address=unix://"+filepath.Join(dir, "http"))
	cmd := exec.Command(program, flags...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	}, nil
}
