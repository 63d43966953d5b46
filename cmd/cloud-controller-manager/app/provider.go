package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"

	"github.com/vishvananda/netlink"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	cloudprovider "k8s.io/cloud-provider"
)

const providerName = "slipway"

// A provider gives addresses of its node's network to Services.
type provider struct {
	pool    addresses
	link    netlink.Link // the node's interface to that network
	network netip.Prefix
	client  kubernetes.Interface

	mu    sync.Mutex
	given map[netip.Addr]types.UID // to which Services; nil until they were listed
}

// newProvider finds the node's interface to the network of the addresses.
func newProvider(pool addresses) (*provider, error) {
	links, err := netlink.LinkList()
	if err != nil {
		return nil, err
	}
	for _, link := range links {
		own, err := netlink.AddrList(link, netlink.FAMILY_ALL)
		if err != nil {
			return nil, err
		}
		for _, a := range own {
			network, err := netip.ParsePrefix(a.IPNet.String())
			if err == nil && !network.IsSingleIP() && network.Contains(pool.first) && network.Contains(pool.last) {
				return &provider{pool: pool, link: link, network: network}, nil
			}
		}
	}
	return nil, errors.New("this node has no interface to a network with these addresses")
}

// list finds out which Services have addresses, and removes from this node those that no Service has any more.
func (p *provider) list(ctx context.Context) error {
	if p.given != nil {
		return nil
	}
	services, err := p.client.CoreV1().Services(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	given := map[netip.Addr]types.UID{}
	for _, s := range services.Items {
		if ip, ok := p.has(&s); ok {
			given[ip] = s.UID
		}
	}
	own, err := netlink.AddrList(p.link, netlink.FAMILY_ALL)
	if err != nil {
		return err
	}
	for _, a := range own {
		ip, _ := netip.AddrFromSlice(a.IP)
		if ip = ip.Unmap(); p.pool.contains(ip) && given[ip] == "" && ip != p.network.Addr() {
			if err := netlink.AddrDel(p.link, &a); err != nil {
				return fmt.Errorf("remove %v from %s: %w", ip, p.link.Attrs().Name, err)
			}
		}
	}
	p.given = given
	return nil
}

// has returns the address of the pool that a Service has.
func (p *provider) has(s *v1.Service) (netip.Addr, bool) {
	for _, i := range s.Status.LoadBalancer.Ingress {
		if ip, err := netip.ParseAddr(i.IP); err == nil && p.pool.contains(ip) {
			return ip, true
		}
	}
	return netip.Addr{}, false
}

// choose returns the address that a Service has, or wants, or else a free one.
func (p *provider) choose(s *v1.Service) (netip.Addr, error) {
	taken := func(ip netip.Addr) bool {
		owner := p.given[ip]
		return owner != "" && owner != s.UID || ip == p.network.Addr()
	}
	if wanted := s.Spec.LoadBalancerIP; wanted != "" {
		ip, err := netip.ParseAddr(wanted)
		if err != nil || !p.pool.contains(ip) || taken(ip) {
			return ip, fmt.Errorf("loadBalancerIP %s is not free in %v", wanted, &p.pool)
		}
		return ip, nil
	}
	if ip, ok := p.has(s); ok && !taken(ip) {
		return ip, nil
	}
	return p.pool.free(taken)
}

// address returns an address as one of the node's interface.
func address(ip netip.Addr) *netlink.Addr {
	return &netlink.Addr{IPNet: &net.IPNet{IP: ip.AsSlice(), Mask: net.CIDRMask(ip.BitLen(), ip.BitLen())}}
}

// EnsureLoadBalancer gives a Service an address, for which this node answers from then on.
func (p *provider) EnsureLoadBalancer(ctx context.Context, _ string, s *v1.Service, _ []*v1.Node) (*v1.LoadBalancerStatus, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.list(ctx); err != nil {
		return nil, err
	}
	ip, err := p.choose(s)
	if err != nil {
		return nil, err
	}
	if err := netlink.AddrReplace(p.link, address(ip)); err != nil {
		return nil, fmt.Errorf("add %v to %s: %w", ip, p.link.Attrs().Name, err)
	}
	p.given[ip] = s.UID
	if err := p.release(s, ip); err != nil {
		return nil, err
	}
	return &v1.LoadBalancerStatus{Ingress: []v1.LoadBalancerIngress{{IP: ip.String()}}}, nil
}

// UpdateLoadBalancer has nothing to do when nodes come and go: kube-proxy of this node leads to Pods of any node.
func (p *provider) UpdateLoadBalancer(context.Context, string, *v1.Service, []*v1.Node) error {
	return nil
}

// EnsureLoadBalancerDeleted takes a Service's address back.
func (p *provider) EnsureLoadBalancerDeleted(ctx context.Context, _ string, s *v1.Service) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.list(ctx); err != nil {
		return err
	}
	return p.release(s, netip.Addr{})
}

// release takes the addresses of a Service back, except one that it keeps.
func (p *provider) release(s *v1.Service, keeps netip.Addr) error {
	own, err := netlink.AddrList(p.link, netlink.FAMILY_ALL)
	if err != nil {
		return err
	}
	for ip, owner := range p.given {
		if owner != s.UID || ip == keeps {
			continue
		}
		if slices.ContainsFunc(own, func(a netlink.Addr) bool { return a.IP.Equal(ip.AsSlice()) }) {
			if err := netlink.AddrDel(p.link, address(ip)); err != nil {
				return fmt.Errorf("remove %v from %s: %w", ip, p.link.Attrs().Name, err)
			}
		}
		delete(p.given, ip)
	}
	return nil
}

func (p *provider) GetLoadBalancer(_ context.Context, _ string, s *v1.Service) (*v1.LoadBalancerStatus, bool, error) {
	_, ok := p.has(s)
	return &s.Status.LoadBalancer, ok, nil
}

func (p *provider) GetLoadBalancerName(_ context.Context, _ string, s *v1.Service) string {
	return cloudprovider.DefaultLoadBalancerName(s)
}

func (p *provider) Initialize(clients cloudprovider.ControllerClientBuilder, _ <-chan struct{}) {
	p.client = clients.ClientOrDie("load-balancer-addresses")
}

func (p *provider) LoadBalancer() (cloudprovider.LoadBalancer, bool) { return p, true }
func (p *provider) Instances() (cloudprovider.Instances, bool)       { return nil, false }
func (p *provider) InstancesV2() (cloudprovider.InstancesV2, bool)   { return nil, false }
func (p *provider) Zones() (cloudprovider.Zones, bool)               { return nil, false }
func (p *provider) Clusters() (cloudprovider.Clusters, bool)         { return nil, false }
func (p *provider) Routes() (cloudprovider.Routes, bool)             { return nil, false }
func (p *provider) ProviderName() string                             { return providerName }
func (p *provider) HasClusterID() bool                               { return true }
