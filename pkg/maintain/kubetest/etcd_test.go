package kubetest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"slipway.build/pkg/maintain/kubetest"
)

// TestMain makes the test's program an etcd if it is called so.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "etcd" {
		fmt.Fprintln(os.Stderr, fakeEtcd(os.Args[1:]))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// fakeEtcd serves its health.
func fakeEtcd(args []string) error {
	var address string
	for _, arg := range args {
		if name, url, _ := strings.Cut(arg, "=http://"); name == "--listen-client-urls" {
			address = url
		}
	}
	http.HandleFunc("/health", func(http.ResponseWriter, *http.Request) {})
	return http.ListenAndServe(address, nil)
}

func linkEtcd(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	etcd := filepath.Join(t.TempDir(), "etcd")
	if err := os.Symlink(self, etcd); err != nil {
		t.Fatal(err)
	}
	return etcd
}

// address returns the address of etcd that tests find in their environment.
func address(t *testing.T, o kubetest.Options) string {
	t.Helper()
	const name = "KUBE_INTEGRATION_ETCD_URL="
	i := slices.IndexFunc(o.Env, func(kv string) bool { return strings.HasPrefix(kv, name) })
	if i < 0 {
		t.Fatalf("no %s in %q", name, o.Env)
	}
	return strings.TrimPrefix(o.Env[i], name)
}

// get asks for a page, and reports whether there was an answer.
func get(url string) bool {
	resp, err := http.Get(url)
	if err != nil {
		return false
	}
	resp.Body.Close()
	return true
}

func TestIntegrationTestsFindARunningEtcd(t *testing.T) {
	t.Parallel()
	etcd := linkEtcd(t)
	url, failed := "", errors.New("a test failed")
	err := kubetest.Integration(t.Context(), etcd, kubetest.Options{Env: []string{"A=b", "PATH=/bin"}},
		func(ctx context.Context, o kubetest.Options) error {
			if want := "PATH=" + filepath.Dir(etcd) + string(filepath.ListSeparator) + "/bin"; !slices.Contains(o.Env, want) {
				t.Errorf("got %q, want %s", o.Env, want)
			}
			if url = address(t, o); !get(url+"/health") || ctx.Err() != nil {
				t.Errorf("no etcd at %s: %v", url, ctx.Err())
			}
			return failed
		})
	if !errors.Is(err, failed) || err.Error() != failed.Error() {
		t.Errorf("error %v, want that of the tests alone", err)
	}
	if get(url + "/health") {
		t.Error("etcd still serves")
	}
}
