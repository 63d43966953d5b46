package kubetest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"slipway.build/pkg/mechanism/child"
	"slipway.build/pkg/mechanism/tail"
)

// etcdPort is etcd's own port. Tests find it in their environment, and go test caches results only for the same environment.
const etcdPort = 2379

// ready is how long etcd may take to serve, and to end.
const ready = time.Minute

// Integration starts etcd and calls test with options for integration tests that use it, with upstream's defaults. The folder of the
// program goes first on PATH, for tests that start their own etcd. Etcd keeps nothing. If it ends before the tests do, their context ends,
// and its cause says why etcd did.
func Integration(ctx context.Context, etcd string, o Options, test func(context.Context, Options) error) (err error) {
	dir, err := os.MkdirTemp("", "slipway-etcd-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	address, err := freeAddress(etcdPort)
	if err != nil {
		return err
	}
	url := "http://" + address
	running, end := context.WithCancelCause(ctx)
	cmd := exec.CommandContext(running, etcd, "--data-dir="+dir, "--unsafe-no-fsync", "--log-level=warn",
		"--listen-client-urls="+url, "--advertise-client-urls="+url, "--listen-peer-urls=http://127.0.0.1:0")
	cmd.Env = slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "ETCD_") }) // these are flags, too
	log := &tail.Lines{}
	cmd.Stdout, cmd.Stderr = log, log
	child.Group(cmd)
	cmd.Cancel = func() error { return child.SignalGroup(cmd, syscall.SIGTERM) }
	cmd.WaitDelay = ready
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err := child.Run(cmd, syscall.SIGKILL, nil)
		if err == nil {
			err = errors.New("exit status 0")
		}
		end(fmt.Errorf("etcd ended: %w", log.Explain(err))) // it stays unread if the context ended first
	}()
	stop := func() { end(nil); <-ended }
	defer stop()
	for deadline := time.Now().Add(ready); !healthy(url); time.Sleep(50 * time.Millisecond) {
		if running.Err() != nil {
			return context.Cause(running)
		}
		if time.Now().After(deadline) {
			stop()
			return log.Explain(fmt.Errorf("etcd did not serve on %s within %v", url, ready))
		}
	}
	o.Env = append(slices.Clone(o.Env), "KUBE_INTEGRATION_ETCD_URL="+url, firstOnPath(o, etcd))
	return test(running, o)
}

func healthy(url string) bool {
	resp, err := (&http.Client{Timeout: time.Second}).Get(url + "/health")
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// freeAddress returns an address of this machine that nothing listens on: with the preferred port, if that is free.
func freeAddress(port int) (string, error) {
	var failed error
	for _, candidate := range []int{port, 0} {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", candidate))
		if err == nil {
			return l.Addr().String(), l.Close()
		}
		failed = err
	}
	return "", failed
}
