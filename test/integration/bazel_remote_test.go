//go:build integration && soak && linux

package integration

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// newREAPI starts buildbox-casd, which is a cache and executes actions, on loopback, and returns its address. It has its own root
// of Debian packages, as the machine's own Debian may be older than its package.
func newREAPI(t *testing.T) (server *process, address string) {
	t.Helper()
	needRoot(t)
	need(t, "mmdebstrap", "mmdebstrap")
	need(t, "apt-get", "apt")
	root := filepath.Join(workspace, "reapi")
	if _, err := os.Stat(root); err != nil {
		script := `set -e
			uri=$(apt-get indextargets --format '$(REPO_URI)' | head -n 1)
			mmdebstrap --quiet --variant=minbase --include=buildbox,gcc,libc6-dev \
				--aptopt='Acquire::Check-Valid-Until "false"' --aptopt='APT::Install-Recommends "false"' \
				forky "$1" "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $uri forky main"`
		run(t, workspace, nil, "sh", "-c", script, "sh", root).ok(t)
	}
	port := freePort(t)
	script := `set -e
		mount --bind /dev "$1/dev"
		mount -t proc proc "$1/proc"
		mkdir -p "$1/cas"
		exec chroot "$1" buildbox-casd --bind=127.0.0.1:"$2" --quota-high=20G --jobs=2 --buildbox-run=/usr/bin/buildbox-run-hosttools /cas`
	server = tree{dir: workspace}.start(t, "unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script, "sh", root, fmt.Sprint(port))
	t.Cleanup(func() { server.kill(t) })
	direct := fmt.Sprintf("127.0.0.1:%d", port)
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		if c, err := net.Dial("tcp", direct); err == nil {
			_ = c.Close()
			return server, olderAPI(t, direct)
		}
		if time.Now().After(deadline) {
			t.Fatalf("buildbox-casd does not start:\n%s", tail(readFile(server.err)))
		}
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// olderAPI hands on what it is asked to a server that says it speaks the Remote Execution API from 2.1 on, and says it does from
// 2.0 on: Bazel 7 says that it speaks 2.0, and would turn away. What it uses of 2.0 is the same in 2.1.
func olderAPI(t *testing.T, to string) (address string) {
	t.Helper()
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{
		Protocols: &protocols,
		Handler: &httputil.ReverseProxy{
			Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: to}) },
			Transport:     &http.Transport{Protocols: &protocols},
			FlushInterval: -1,
			ModifyResponse: func(r *http.Response) error {
				if !strings.HasSuffix(r.Request.URL.Path, "/GetCapabilities") {
					return nil
				}
				return lowered(r)
			},
			ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
		},
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Shutdown(context.Background()) })
	return l.Addr().String()
}

// lowered adds to a gRPC message, a ServerCapabilities, another field 4, low_api_version { major: 2 }, which counts instead of the
// first.
func lowered(r *http.Response) error {
	data, err := io.ReadAll(r.Body) // its trailer is here then, too
	if err != nil || len(data) < 5 {
		return err
	}
	data = append(data, 0x22, 0x04, 0x08, 0x02, 0x10, 0x00)
	binary.BigEndian.PutUint32(data[1:], uint32(len(data)-5))
	r.Body = io.NopCloser(bytes.NewReader(data))
	r.ContentLength = -1
	r.Header.Del("Content-Length")
	return nil
}

var (
	processes  = regexp.MustCompile(`(?m)^INFO: (\d+) processes?: (.*)\.$`)
	remoteHits = regexp.MustCompile(`(\d+) remote cache hit`)
)

// A clean build takes everything from a remote cache; what the cache loses, and a cache that goes away, is made up for. An action
// done elsewhere makes the same.
func TestBazelRemoteCacheAndExecution(t *testing.T) {
	tr := bazelTree(t)
	server, address := newREAPI(t)
	remote := []string{"build", "--config=remote", "--remote_cache=grpc://" + address, "--"}
	var labels []string
	for _, name := range bazelComponents {
		labels = append(labels, "//cmd/"+name)
	}
	tr.bazel(t, append(remote, labels...)...).ok(t)
	binary := func(label string) string {
		out := tr.bazel(t, "cquery", "--output=files", label).ok(t).stdout
		return filepath.Join(strings.TrimSpace(tr.bazel(t, "info", "execution_root").ok(t).stdout), strings.TrimSpace(out))
	}
	sum := func(label string) string {
		s, err := sha256File(binary(label))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	want := sum(labels[0])

	t.Run("cache", func(t *testing.T) {
		tr.bazel(t, "clean").ok(t)
		got := tr.bazel(t, append(remote, labels...)...).ok(t)
		m := processes.FindStringSubmatch(got.stderr)
		hits := remoteHits.FindStringSubmatch(got.stderr)
		if m == nil || hits == nil || strings.Contains(m[2], "sandbox") || strings.Contains(m[2], "worker") {
			t.Errorf("not every action was a hit: %v", got)
		}
		if s := sum(labels[0]); s != want {
			t.Errorf("kubectl is %s from the cache, and was %s", s, want)
		}
	})
	t.Run("execution", func(t *testing.T) {
		const label = "//cmd:kube-log-runner"
		tr.bazel(t, "build", label).ok(t)
		here := sum(label)
		tr.bazel(t, "clean").ok(t)
		got := tr.bazel(t, "build", "--config=remote", "--remote_executor=grpc://"+address, "--noremote_accept_cached", label).ok(t)
		if m := processes.FindStringSubmatch(got.stderr); m == nil || !strings.Contains(m[2], " remote") || strings.Contains(m[2], "sandbox") {
			t.Errorf("it was not made by remote execution: %v", got)
		}
		if there := sum(label); there != here {
			t.Errorf("kube-log-runner is %s by remote execution, and %s here", there, here)
		}
	})
	t.Run("server gone", func(t *testing.T) {
		server.kill(t)
		tr.bazel(t, "clean").ok(t)
		got := tr.bazel(t, "build", "--config=remote", "--remote_cache=grpc://"+address, "//cmd:kube-log-runner")
		if got.code != 0 && !strings.Contains(got.stderr, "remote") {
			t.Errorf("the error is not clear: %v", got)
		}
	})
}
