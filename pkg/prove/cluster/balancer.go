package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"

	"slipway.build/pkg/mechanism/atomicfile"
)

// Several control planes have a load balancer before them, on the switch: HAProxy, from the nodes' root file system. Clients and kubelets
// know its address alone, and reach an API server that is ready.
const (
	balancerName = "balancer"
	balancerHost = 253 // the last byte of its address
	apiPort      = 6443
)

// endpoint returns the host and port of the API for clients and nodes.
func (s *State) endpoint() (string, error) {
	host := balancerHost
	if s.ControlPlanes < 2 {
		host = s.node(1).number + 1 // the machine's address is the first
	}
	address, err := s.onSwitch(host)
	return net.JoinHostPort(address, strconv.Itoa(apiPort)), err
}

// startBalancer starts the load balancer. It finds API servers as they become ready.
func (s *State) startBalancer(ctx context.Context) error {
	p, ok := s.process(switchName)
	if !ok {
		return errors.New("the cluster has no switch")
	}
	endpoint, err := s.endpoint()
	if err != nil {
		return err
	}
	var servers []string
	for i := range s.ControlPlanes {
		n := s.node(i + 1)
		address, err := s.address(n.number)
		if err != nil {
			return err
		}
		servers = append(servers, fmt.Sprintf("  server %s %s", n.name, net.JoinHostPort(address.Addr().String(), strconv.Itoa(apiPort))))
	}
	root, file := s.path("root"), "/etc/haproxy.cfg"
	if err := atomicfile.WriteFile(filepath.Join(root, file), []byte(balancerConfig(endpoint, servers)), 0o644); err != nil {
		return err
	}
	return s.start(Process{Name: balancerName, Address: endpoint}, 0, s.dir,
		"nsenter", "--target", strconv.Itoa(p.PID), "--net", "--root="+root, "--wd="+root, "/usr/sbin/haproxy", "-db", "-f", file)
}

// balancerConfig returns HAProxy's configuration. A connection to an API server that is no longer ready ends, so that watches begin again
// at another one.
func balancerConfig(endpoint string, servers []string) string {
	return `global
  maxconn 4000

defaults
  mode tcp
  timeout connect 2s
  timeout client 1h
  timeout server 1h

frontend api
  bind ` + endpoint + `
  default_backend control-planes

backend control-planes
  option httpchk GET /readyz
  default-server check check-ssl verify none inter 500ms fall 2 rise 1 on-marked-down shutdown-sessions
` + strings.Join(servers, "\n") + "\n"
}
