package machine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// IP runs commands of ip(8).
func IP(ctx context.Context, commands ...string) error {
	_, err := Output(ctx, strings.Join(commands, "\n"), "ip", "-batch", "-")
	return err
}

// IP runs commands of ip(8) in the network namespace of the process.
func (p Process) IP(ctx context.Context, commands ...string) error {
	_, err := Output(ctx, strings.Join(commands, "\n"), "nsenter", "--target", strconv.Itoa(p.PID), "--net", "ip", "-batch", "-")
	return err
}

// networkLock is an abstract socket, which one process at a time can have. It leaves no file, and goes with the process.
const networkLock = "@slipway-cluster-network"

// ChooseSubnet calls use with a /24 of the pool that the machine has no route to. It chooses no other before use has returned: two
// clusters that choose at the same time would choose the same one.
func ChooseSubnet(ctx context.Context, pool netip.Prefix, use func(netip.Prefix) error) error {
	unlock, err := lockNetwork(ctx, networkLock, time.Minute)
	if err != nil {
		return err
	}
	defer unlock()
	routes, err := Output(ctx, "", "ip", "-json", "route", "show", "table", "all")
	if err != nil {
		return err
	}
	taken, err := routePrefixes(routes)
	if err != nil {
		return err
	}
	subnet, err := freeSubnet(pool, taken)
	if err != nil {
		return err
	}
	return use(subnet)
}

// routePrefixes returns the prefixes that the machine has a route to, except the default route.
func routePrefixes(routes string) ([]netip.Prefix, error) {
	var list []struct{ Dst string }
	if err := json.Unmarshal([]byte(routes), &list); err != nil {
		return nil, fmt.Errorf("ip route: %w", err)
	}
	var taken []netip.Prefix
	for _, route := range list {
		p, err := netip.ParsePrefix(route.Dst)
		if a, noAddress := netip.ParseAddr(route.Dst); noAddress == nil {
			p, err = a.Prefix(a.BitLen())
		}
		if err == nil && p.Bits() > 0 { // neither "default" nor 0.0.0.0/0
			taken = append(taken, p)
		}
	}
	return taken, nil
}

// freeSubnet returns the first /24 of a pool that overlaps no taken prefix.
func freeSubnet(pool netip.Prefix, taken []netip.Prefix) (netip.Prefix, error) {
	for a := pool.Addr().As4(); pool.Contains(netip.AddrFrom4(a)); {
		p := netip.PrefixFrom(netip.AddrFrom4(a), 24)
		if !slices.ContainsFunc(taken, p.Overlaps) {
			return p, nil
		}
		if a[2]++; a[2] == 0 {
			a[1]++
		}
	}
	return netip.Prefix{}, fmt.Errorf("every subnet of %s has a route: remove a cluster or a route", pool)
}

// lockNetwork keeps other clusters from choosing a subnet. It waits for another cluster that is choosing one, which takes seconds, but
// not forever: any user's process can have the socket.
func lockNetwork(ctx context.Context, socket string, patience time.Duration) (unlock func(), err error) {
	limit, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf(
		"another process has had the socket %s for %v: end it if it is no cluster that is being made (ss -xlp names it)", socket, patience))
	defer cancel()
	var l net.Listener
	err = Retry(limit, 20*time.Millisecond, func() (err error) {
		if l, err = net.Listen("unix", socket); err != nil && !errors.Is(err, syscall.EADDRINUSE) {
			return Stop(err)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("choose a subnet: %w", err)
	}
	return func() { _ = l.Close() }, nil
}
