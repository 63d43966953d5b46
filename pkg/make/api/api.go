package api

import (
	"context"
	"crypto/rand"
	"embed"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/recipe"
	"slipway.build/pkg/mechanism/server"
)

//go:embed *.go
var sources embed.FS

var code = recipe.Of("make/api", sources)

// A Spec decides the files, together with the programs. Paths are relative to the tree's root and separated by slashes.
type Spec struct {
	Server string // kube-apiserver, for this machine
	Etcd   string // for this machine
	Output string // the folder that gets openapi-spec and discovery
}

// Action returns the action that writes the files.
func Action(root string, s Spec) *action.Action {
	out := s.Output + "/"
	return &action.Action{
		ID:      "api",
		Phase:   "api",
		Recipe:  code.Recipe(s),
		Inputs:  []string{s.Server, s.Etcd},
		Outputs: []string{out},
		Cost:    action.Cost{CPU: 2, Memory: 1 << 30},
		Run: func(ctx context.Context, t *action.Task) error {
			programs := programs{filepath.Join(root, filepath.FromSlash(s.Server)), filepath.Join(root, filepath.FromSlash(s.Etcd))}
			return programs.write(ctx, t.Path(out), t.Dir())
		},
	}
}

// programs are the paths of what has to run.
type programs struct{ server, etcd string }

// write writes the files to a folder. The programs write to another one. They get no environment: variables are flags of etcd, and feature
// gates of the API server.
func (p programs) write(ctx context.Context, to, dir string) error {
	addresses, err := server.FreeAddresses(2)
	if err != nil {
		return err
	}
	etcd := "http://" + addresses[0]
	database := server.Server{
		Command: []string{p.etcd, "--data-dir=" + filepath.Join(dir, "etcd"), "--unsafe-no-fsync", "--log-level=warn",
			"--listen-client-urls=" + etcd, "--advertise-client-urls=" + etcd, "--listen-peer-urls=http://127.0.0.1:0"},
		Env:    []string{},
		Ready:  etcd + "/health",
		Client: &http.Client{Transport: &http.Transport{}}, // no proxy
	}
	s, client, err := p.apiServer(dir, etcd, addresses[1])
	if err != nil {
		return err
	}
	return database.Run(ctx, func(ctx context.Context) error {
		return s.Run(ctx, func(ctx context.Context) error { return client.write(ctx, to) })
	})
}

// apiServer returns an API server that listens on an address, and a client for it.
func (p programs) apiServer(dir, etcd, address string) (*server.Server, *client, error) {
	cert, key, tokens := filepath.Join(dir, "server.crt"), filepath.Join(dir, "server.key"), filepath.Join(dir, "tokens.csv")
	trusted, err := writeCertificate(cert, key)
	if err != nil {
		return nil, nil, err
	}
	c := &client{url: "https://" + address, token: rand.Text()}
	c.Transport = &http.Transport{TLSClientConfig: trusted, ForceAttemptHTTP2: true}
	if err := os.WriteFile(tokens, []byte(c.token+",admin,admin\n"), 0o600); err != nil {
		return nil, nil, err
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, nil, err
	}
	return &server.Server{
		Command: []string{p.server, "--bind-address=" + host, "--secure-port=" + port, "--etcd-servers=" + etcd,
			"--advertise-address=10.10.10.10", "--external-hostname=10.10.10.10:8050", // upstream's, which are in discovery/api.json
			"--cert-dir=" + dir, "--tls-cert-file=" + cert, "--tls-private-key-file=" + key, "--token-auth-file=" + tokens,
			"--service-account-key-file=" + key, "--service-account-signing-key-file=" + key,
			"--service-account-issuer=https://kubernetes.default.svc", "--service-cluster-ip-range=10.0.0.0/24",
			"--authorization-mode=RBAC", "--enable-logs-handler=true",
			"--feature-gates=AllAlpha=true,AllBeta=true,OpenAPIEnums=false", "--runtime-config=api/all=true"},
		Env:    []string{"KUBE_APISERVER_STRICT_REMOVED_API_HANDLING_IN_ALPHA=true"}, // no API that this version is to remove
		Ready:  c.url + "/readyz",
		Client: &c.Client,
	}, c, nil
}
