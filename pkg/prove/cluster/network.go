package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// The nodes of a cluster and this machine reach one another over a switch:
//
//	this machine ── slwID ──┐
//	node 1 ── eth0 ──────── br0 in a network namespace of its own, the switch, where the registry runs
//	node 2 ── eth0 ─────────┘
//
// Only the interface slwID is in this machine's network namespace. So the machine's firewall rules and routes do not apply between
// nodes, and none has to be removed. Nothing leads out of the cluster.
const switchName = "switch"

// subnets holds the subnets of clusters. RFC 2544 reserves it for tests, so that no real network uses it.
var subnets = netip.MustParsePrefix("198.18.0.0/15")

// Pods of a node have addresses from a part of podNetwork that the controller manager chooses.
const (
	podNetwork     = "10.244.0.0/16"
	serviceNetwork = "10.96.0.0/12"
)

// serviceHosts are the last bytes of the addresses on the switch that Services of type LoadBalancer get. The first ones are the nodes', and
// the last ones are those of the balancer and the registry.
var serviceHosts = struct{ first, last int }{200, 249}

// hostInterface returns the name of the machine's interface to a cluster.
func (s *State) hostInterface() string { return "slw" + s.ID }

// address returns the address of a node by its number. The machine has number 0.
func (s *State) address(node int) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(s.Subnet)
	if err != nil {
		return p, err
	}
	a := p.Addr()
	for range node + 1 {
		a = a.Next()
	}
	return netip.PrefixFrom(a, p.Bits()), nil
}

// onSwitch returns an address on the switch by its last byte.
func (s *State) onSwitch(host int) (string, error) {
	p, err := netip.ParsePrefix(s.Subnet)
	if err != nil {
		return "", err
	}
	a := p.Addr().As4()
	a[3] = byte(host)
	return netip.AddrFrom4(a).String(), nil
}

// makeSwitch chooses a subnet and connects the machine to it. Then the registry answers.
func (s *State) makeSwitch(ctx context.Context) error {
	registry, err := s.registryCommand()
	if err != nil {
		return err
	}
	if err := s.start(Process{Name: switchName}, switchNamespaces, s.dir, registry...); err != nil {
		return err
	}
	p, _ := s.process(switchName)
	// Without the lock, two clusters that choose at the same time would choose the same subnet.
	unlock, err := lockNetwork(ctx, networkLock, time.Minute)
	if err != nil {
		return err
	}
	defer unlock()
	routes, err := output(ctx, "", "ip", "-json", "route", "show", "table", "all")
	if err != nil {
		return err
	}
	taken, err := takenPrefixes(routes)
	if err != nil {
		return err
	}
	subnet, err := freeSubnet(taken)
	if err != nil {
		return err
	}
	if err := s.change(func() { s.Subnet = subnet.String() }); err != nil {
		return err
	}
	host, err := s.address(0)
	if err != nil {
		return err
	}
	pid := strconv.Itoa(p.PID)
	if err := ip(ctx, "link add "+s.hostInterface()+" type veth peer name host netns "+pid); err != nil {
		return err
	}
	lines := []string{"link set lo up", "link add br0 type bridge"}
	for _, of := range []int{registryHost, balancerHost} {
		own, err := s.onSwitch(of)
		if err != nil {
			return err
		}
		lines = append(lines, fmt.Sprintf("address add %s/%d dev br0", own, subnet.Bits()))
	}
	if err := ipIn(ctx, p, append(lines, "link set br0 up", "link set host master br0 up")...); err != nil {
		return err
	}
	if err := ip(ctx, "address add "+host.String()+" dev "+s.hostInterface(), "link set "+s.hostInterface()+" up"); err != nil {
		return err
	}
	address, err := s.Registry()
	if err != nil {
		return err
	}
	return s.awaitRegistry(ctx, address)
}

// plug connects a node to the switch.
func (s *State) plug(ctx context.Context, node Process, number int) error {
	p, ok := s.process(switchName)
	if !ok {
		return errors.New("the cluster has no switch")
	}
	address, err := s.address(number)
	if err != nil {
		return err
	}
	port := "node" + strconv.Itoa(number)
	if err := ipIn(ctx, p, fmt.Sprintf("link add %s type veth peer name eth0 netns %d", port, node.PID),
		"link set "+port+" master br0 up"); err != nil {
		return err
	}
	// Connections to a Service need a route before kube-proxy's rules change their destination.
	return ipIn(ctx, node, "link set lo up", "address add "+address.String()+" dev eth0", "link set eth0 up",
		"route add "+serviceNetwork+" dev eth0")
}

// unplug removes the machine's interface. The rest of the network goes with its namespaces.
func (s *State) unplug(ctx context.Context) error {
	if _, err := net.InterfaceByName(s.hostInterface()); err != nil {
		return nil
	}
	err := ip(ctx, "link delete "+s.hostInterface())
	if _, gone := net.InterfaceByName(s.hostInterface()); gone != nil {
		return nil // it went with its other end, which the switch had
	}
	return err
}

func ip(ctx context.Context, lines ...string) error {
	_, err := output(ctx, strings.Join(lines, "\n"), "ip", "-batch", "-")
	return err
}

// ipIn runs ip in a process's network namespace.
func ipIn(ctx context.Context, p Process, lines ...string) error {
	_, err := output(ctx, strings.Join(lines, "\n"), "nsenter", "--target", strconv.Itoa(p.PID), "--net", "ip", "-batch", "-")
	return err
}

// takenPrefixes returns the prefixes that the machine has a route to, except the default route.
func takenPrefixes(routes string) ([]netip.Prefix, error) {
	var list []struct{ Dst string }
	if err := json.Unmarshal([]byte(routes), &list); err != nil {
		return nil, fmt.Errorf("ip route: %w", err)
	}
	var taken []netip.Prefix
	for _, route := range list {
		p, err := netip.ParsePrefix(route.Dst)
		if err != nil {
			a, err := netip.ParseAddr(route.Dst)
			if err != nil {
				continue // default
			}
			p = netip.PrefixFrom(a, a.BitLen())
		}
		if p.Bits() > 0 {
			taken = append(taken, p)
		}
	}
	return taken, nil
}

// freeSubnet returns the first /24 that overlaps no taken prefix.
func freeSubnet(taken []netip.Prefix) (netip.Prefix, error) {
	for a := subnets.Addr(); subnets.Contains(a); {
		p := netip.PrefixFrom(a, 24)
		free := true
		for _, t := range taken {
			free = free && !p.Overlaps(t)
		}
		if free {
			return p, nil
		}
		b := a.As4()
		if b[2]++; b[2] == 0 {
			b[1]++
		}
		a = netip.AddrFrom4(b)
	}
	return netip.Prefix{}, fmt.Errorf("every subnet of %s has a route: remove a cluster or a route", subnets)
}

// networkLock is an abstract socket, which one process at a time can have. It leaves no file, and goes with the process.
const networkLock = "@slipway-cluster-network"

// lockNetwork keeps other clusters from choosing a subnet. It waits for another cluster that is choosing one, which takes seconds, but
// not for ever: any user's process can have the socket.
func lockNetwork(ctx context.Context, socket string, patience time.Duration) (unlock func(), err error) {
	var l net.Listener
	limit, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err = until(limit, 20*time.Millisecond, func() (bool, error) {
		l, err = net.Listen("unix", socket)
		if errors.Is(err, syscall.EADDRINUSE) {
			return false, nil
		}
		return err == nil, err
	})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = fmt.Errorf("another process has had the socket %s for %v: end it if it is no cluster that is being made (ss -xlp names it)",
			socket, patience)
	}
	if err != nil {
		return nil, fmt.Errorf("choose a subnet: %w", err)
	}
	return func() { _ = l.Close() }, nil
}
