package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/docker/docker/client"

	"slipway.build/pkg/mechanism/platform"
)

// oldestAPI is the version of the Engine API that is needed: that of Docker Engine 20.10.
const oldestAPI = "1.41"

// patience is how long an engine may take to answer a question that costs it nothing.
const patience = 10 * time.Second

// An Engine is a Docker Engine that answered.
type Engine struct {
	Client   *client.Client
	Address  string            // its socket, or DOCKER_HOST
	Local    bool              // reached by a socket of this machine
	Version  string            // of the engine
	Platform platform.Platform // that it runs containers for by itself
	CPUs     int
	gone     atomic.Bool // it stopped answering
	Memory   int64       // bytes
}

// Connect finds the engine as the docker command does, by DOCKER_HOST, DOCKER_TLS_VERIFY, DOCKER_CERT_PATH and
// DOCKER_API_VERSION of the environment, and looks whether it will do. The error says what was tried and what to do.
func Connect(ctx context.Context) (*Engine, error) {
	c, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		return nil, fmt.Errorf("docker engine: %w: look at DOCKER_HOST, DOCKER_TLS_VERIFY and DOCKER_CERT_PATH", err)
	}
	e := &Engine{Client: c, Address: c.DaemonHost()}
	e.Local = strings.HasPrefix(e.Address, "unix:") || strings.HasPrefix(e.Address, "npipe:")
	if err := e.ask(ctx); err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("docker engine at %s: %w", e.Address, err)
	}
	return e, nil
}

// Close ends the connections to the engine.
func (e *Engine) Close() error { return e.Client.Close() }

func (e *Engine) ask(ctx context.Context) error {
	if strings.HasPrefix(e.Address, "ssh:") {
		return errors.New("an ssh address is not supported: forward its socket (ssh -NL /tmp/docker.sock:/var/run/docker.sock HOST) " +
			"and set DOCKER_HOST=unix:///tmp/docker.sock")
	}
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("no answer within %v", patience))
	defer cancel()
	info, err := e.Client.Info(ctx)
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			err = context.Cause(ctx)
		}
		return fmt.Errorf("%w: start one (systemctl start docker), name another by DOCKER_HOST, or compile here with ROAD=local", err)
	}
	e.Version, e.CPUs, e.Memory = info.ServerVersion, info.NCPU, info.MemTotal
	if api := e.Client.ClientVersion(); versionLess(api, oldestAPI) {
		return fmt.Errorf("version %s speaks API %s, and %s is needed: update it to 20.10 or newer", e.Version, api, oldestAPI)
	}
	if info.OSType != "linux" {
		return fmt.Errorf("it runs %s containers: one that runs linux containers is needed", info.OSType)
	}
	arch, ok := map[string]string{"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}[info.Architecture]
	if !ok {
		return fmt.Errorf("its machine is a %s: an engine on amd64 or arm64 is needed", info.Architecture)
	}
	e.Platform = platform.Platform{OS: "linux", Arch: arch}
	return nil
}

// versionLess compares versions of the Engine API, "1.41".
func versionLess(a, b string) bool {
	var major, minor [2]int
	for i, v := range []string{a, b} {
		_, _ = fmt.Sscanf(v, "%d.%d", &major[i], &minor[i]) // one that cannot be read is the oldest
	}
	return major[0] < major[1] || major[0] == major[1] && minor[0] < minor[1]
}

// String names the engine for the user.
func (e *Engine) String() string {
	return fmt.Sprintf("Docker Engine %s at %s, %s, %d CPUs, %d GiB", e.Version, e.Address, e.Platform, e.CPUs, e.Memory>>30)
}
