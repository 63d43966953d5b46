package kubetest_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

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

// fault is a variable that says what is wrong with fakeEtcd.
const fault = "FAKE_ETCD_FAULT"

// fakeEtcd serves its health, and fails when it is asked for /crash. It fails at once if its disk is full, and serves nothing if that
// is slow.
func fakeEtcd(args []string) error {
	switch os.Getenv(fault) {
	case "full disk":
		return errors.New("no space left on device")
	case "slow disk":
		return waitForever()
	}
	var address string
	for _, arg := range args {
		if name, url, _ := strings.Cut(arg, "=http://"); name == "--listen-client-urls" {
			address = url
		}
	}
	http.HandleFunc("/health", func(http.ResponseWriter, *http.Request) {})
	http.HandleFunc("/crash", func(http.ResponseWriter, *http.Request) {
		fmt.Fprintln(os.Stderr, "the disk is gone")
		os.Exit(3)
	})
	return http.ListenAndServe(address, nil)
}

func waitForever() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err == nil {
		_, err = l.Accept()
	}
	return err
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

// It is not parallel: two etcds that start at the same time may choose the same free port.
func TestEtcdThatEndsDuringTheTestsStopsThem(t *testing.T) {
	err := kubetest.Integration(t.Context(), linkEtcd(t), kubetest.Options{}, func(ctx context.Context, o kubetest.Options) error {
		get(address(t, o) + "/crash")
		<-ctx.Done()
		return context.Cause(ctx)
	})
	if err == nil || !strings.Contains(err.Error(), "etcd ended: exit status 3") || !strings.Contains(err.Error(), "the disk is gone") {
		t.Errorf("error %v", err)
	}
}

func noTests(context.Context, kubetest.Options) error { return errors.New("tests ran without etcd") }

func TestEtcdThatFailsSaysWhy(t *testing.T) {
	t.Setenv(fault, "full disk")
	err := kubetest.Integration(t.Context(), linkEtcd(t), kubetest.Options{}, noTests)
	if err == nil || !strings.Contains(err.Error(), "etcd ended: exit status 1") || !strings.Contains(err.Error(), "no space left on device") {
		t.Errorf("error %v", err)
	}
}

func TestInterruptWhileEtcdStartsIsNoFailureOfEtcd(t *testing.T) {
	t.Setenv(fault, "slow disk")
	interrupted := errors.New("interrupted")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 200*time.Millisecond, interrupted)
	defer cancel()
	err := kubetest.Integration(ctx, linkEtcd(t), kubetest.Options{}, noTests)
	if !errors.Is(err, interrupted) || err.Error() != interrupted.Error() {
		t.Errorf("error %v", err)
	}
}
