package kubetest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"

	"slipway.build/pkg/mechanism/server"
)

// etcdPort is etcd's own port. Tests find it in their environment, and go test caches results only for the same environment.
const etcdPort = 2379

// Integration starts etcd and calls test with options for integration tests that use it, with upstream's defaults. The folder of the
// program goes first on PATH, for tests that start their own etcd. Etcd keeps nothing. If it ends before the tests do, their context ends,
// and the error says why etcd did.
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
	s := server.Server{
		Command: []string{etcd, "--data-dir=" + dir, "--unsafe-no-fsync", "--log-level=warn",
			"--listen-client-urls=" + url, "--advertise-client-urls=" + url, "--listen-peer-urls=http://127.0.0.1:0"},
		Env:    slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "ETCD_") }), // these are flags, too
		Ready:  url + "/health",
		Client: http.DefaultClient,
	}
	o.Env = append(slices.Clone(o.Env), "KUBE_INTEGRATION_ETCD_URL="+url, firstOnPath(o, etcd))
	return s.Run(ctx, func(ctx context.Context) error { return test(ctx, o) })
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
