package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/docker/docker/api/types/versions"
	"github.com/docker/docker/client"

	"slipway.build/pkg/mechanism/platform"
)

// oldestAPI is the oldest supported version of the Engine API: that of Docker Engine 20.10.
const oldestAPI = "1.41"

// patience is how long an engine may take to answer a simple question.
const patience = 10 * time.Second

// An Engine is a connection to a Docker Engine.
type Engine struct {
	Client   *client.Client
	Address  string // its socket, or DOCKER_HOST
	Local    bool   // reached by a socket of this machine
	Version  string
	Platform platform.Platform // of its containers
	CPUs     int
	Memory   int64 // bytes

	gone atomic.Bool // it stopped answering
}

// A ConnectError reports that no usable engine was found.
type ConnectError struct {
	Address string // empty if the environment names none that is valid
	Err     error
}

func (e *ConnectError) Error() string {
	if e.Address == "" {
		return fmt.Sprintf("docker engine: %v", e.Err)
	}
	return fmt.Sprintf("docker engine at %s: %v", e.Address, e.Err)
}

func (e *ConnectError) Unwrap() error { return e.Err }

// Connect finds the engine as the docker command does, by DOCKER_HOST, DOCKER_TLS_VERIFY, DOCKER_CERT_PATH and
// DOCKER_API_VERSION in the environment, and checks that it is usable. The error is a *ConnectError.
func Connect(ctx context.Context) (*Engine, error) {
	c, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		return nil, &ConnectError{"", fmt.Errorf("%w: look at DOCKER_HOST, DOCKER_TLS_VERIFY and DOCKER_CERT_PATH", err)}
	}
	e := &Engine{Client: c, Address: c.DaemonHost()}
	e.Local = strings.HasPrefix(e.Address, "unix:") || strings.HasPrefix(e.Address, "npipe:")
	if err := e.ask(ctx); err != nil {
		_ = c.Close()
		return nil, &ConnectError{e.Address, err}
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
		return fmt.Errorf("%w: start it (systemctl start docker), or name another one with DOCKER_HOST", err)
	}
	e.Version, e.CPUs, e.Memory = info.ServerVersion, info.NCPU, info.MemTotal
	if api := e.Client.ClientVersion(); versions.LessThan(api, oldestAPI) {
		return fmt.Errorf("version %s has API %s, and %s is needed: update it to 20.10 or newer", e.Version, api, oldestAPI)
	}
	if info.OSType != "linux" {
		return fmt.Errorf("it runs %s containers, and linux containers are needed", info.OSType)
	}
	arch, ok := map[string]string{"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}[info.Architecture]
	if !ok {
		return fmt.Errorf("its machine is %s, and amd64 or arm64 is needed", info.Architecture)
	}
	e.Platform = platform.Platform{OS: "linux", Arch: arch}
	return nil
}

// String describes the engine for the user.
func (e *Engine) String() string {
	return fmt.Sprintf("Docker Engine %s at %s, %s, %d CPUs, %d GiB", e.Version, e.Address, e.Platform, e.CPUs, e.Memory>>30)
}
