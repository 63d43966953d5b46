package cluster

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"slipway.build/pkg/mechanism/atomicfile"
	"slipway.build/pkg/prove/cluster/kubeadm"
	"slipway.build/pkg/prove/cluster/machine"
)

// The nodes of a cluster and this machine reach one another over a switch:
//
//	this machine ── slwID ──┐
//	node 1 ── eth0 ──────── br0 in a network namespace of its own, the switch, where the registry and the load balancer run
//	node 2 ── eth0 ─────────┘
//
// Only the interface slwID is in this machine's network namespace. So the machine's firewall rules and routes do not apply between
// nodes, and none has to be removed. Nothing leads out of the cluster.
const switchName = "switch"

// subnets holds the subnets of clusters, each a /24. RFC 2544 reserves it for tests, so that no real network uses it.
var subnets = netip.MustParsePrefix("198.18.0.0/15")

// The last bytes of addresses on the switch. Services of type LoadBalancer get those between the nodes' and the balancer's.
const (
	machineHost  = 1 // node 1 has the next one
	serviceFirst = 200
	serviceLast  = 249
	balancerHost = 253
	registryHost = 254
	subnetMask   = "/24"
)

// onSwitch returns an address on the switch by its last byte.
func (s *State) onSwitch(host int) string {
	return strings.TrimSuffix(s.Subnet, "0"+subnetMask) + strconv.Itoa(host)
}

// address returns the address of a node.
func (s *State) address(n node) string { return s.onSwitch(machineHost + n.number) }

// hostInterface returns the name of the machine's interface to a cluster.
func (s *State) hostInterface() string { return "slw" + s.ID }

// makeSwitch starts the registry in a network namespace of its own, which is the switch, so the process has that name. Then it chooses a
// subnet, connects this machine, and waits until the registry answers.
func (s *State) makeSwitch(ctx context.Context) error {
	registry, err := s.registryCommand()
	if err != nil {
		return err
	}
	if err := s.start(Process{Name: switchName}, machine.NetworkNamespace, s.dir, registry...); err != nil {
		return err
	}
	p, _ := s.process(switchName)
	err = machine.ChooseSubnet(ctx, subnets, func(subnet netip.Prefix) error {
		if err := s.change(func() { s.Subnet = subnet.String() }); err != nil {
			return err
		}
		if err := machine.IP(ctx, fmt.Sprintf("link add %s type veth peer name host netns %d", s.hostInterface(), p.PID)); err != nil {
			return err
		}
		if err := p.IP(ctx, "link set lo up", "link add br0 type bridge",
			"address add "+s.onSwitch(registryHost)+subnetMask+" dev br0", "address add "+s.onSwitch(balancerHost)+subnetMask+" dev br0",
			"link set br0 up", "link set host master br0 up"); err != nil {
			return err
		}
		return machine.IP(ctx, "address add "+s.onSwitch(machineHost)+subnetMask+" dev "+s.hostInterface(),
			"link set "+s.hostInterface()+" up")
	})
	if err != nil {
		return err
	}
	return s.eventually(ctx, shortPause, s.registry().Ping)
}

// connectNode connects a node to the switch.
func (s *State) connectNode(ctx context.Context, n node) error {
	hub, _ := s.process(switchName)
	p, _ := s.process(n.name)
	port := "node" + strconv.Itoa(n.number)
	if err := hub.IP(ctx, fmt.Sprintf("link add %s type veth peer name eth0 netns %d", port, p.PID),
		"link set "+port+" master br0 up"); err != nil {
		return err
	}
	// Connections to a Service need a route before kube-proxy's rules change their destination.
	return p.IP(ctx, "link set lo up", "address add "+s.address(n)+subnetMask+" dev eth0", "link set eth0 up",
		"route add "+kubeadm.ServiceNetwork+" dev eth0")
}

// disconnect removes the machine's interface. The rest of the network goes with its namespaces.
func (s *State) disconnect(ctx context.Context) error {
	if _, err := net.InterfaceByName(s.hostInterface()); err != nil {
		return nil
	}
	err := machine.IP(ctx, "link delete "+s.hostInterface())
	if _, gone := net.InterfaceByName(s.hostInterface()); gone != nil {
		return nil // it went with its other end, which the switch had
	}
	return err
}

// Several control planes have a load balancer before them, on the switch: HAProxy, from the nodes' root file system. Clients and kubelets
// know its address alone, and reach an API server that is ready.
const balancerName = "balancer"

// endpoint returns the host and port of the API for clients and nodes.
func (s *State) endpoint() string {
	host := s.onSwitch(balancerHost)
	if s.ControlPlanes < 2 {
		host = s.address(s.node(1))
	}
	return net.JoinHostPort(host, strconv.Itoa(kubeadm.APIPort))
}

// startBalancer starts the load balancer. It finds API servers as they become ready.
func (s *State) startBalancer(context.Context) error {
	hub, _ := s.process(switchName)
	// A connection to an API server that is no longer ready ends, so that watches begin again at another one.
	config := `global
  maxconn 4000

defaults
  mode tcp
  timeout connect 2s
  timeout client 1h
  timeout server 1h

frontend api
  bind ` + s.endpoint() + `
  default_backend control-planes

backend control-planes
  option httpchk GET /readyz
  default-server check check-ssl verify none inter 500ms fall 2 rise 1 on-marked-down shutdown-sessions
`
	for i := range s.ControlPlanes {
		n := s.node(i + 1)
		config += fmt.Sprintf("  server %s %s:%d\n", n.name, s.address(n), kubeadm.APIPort)
	}
	const file = "/etc/haproxy.cfg"
	if err := atomicfile.WriteFile(s.path("root", file), []byte(config), 0o644); err != nil {
		return err
	}
	return s.start(Process{Name: balancerName, Address: s.endpoint()}, 0, s.dir, "nsenter", "--target", strconv.Itoa(hub.PID), "--net",
		"--root="+s.path("root"), "--wd="+s.path("root"), "/usr/sbin/haproxy", "-db", "-f", file)
}
