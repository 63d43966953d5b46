package app

import (
	"net/netip"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestRangesOfAddresses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text  string
		valid bool
	}{
		{"192.0.2.10-192.0.2.12", true}, {"192.0.2.10-192.0.2.10", true}, {"2001:db8::1-2001:db8::ff", true},
		{"", false}, {"192.0.2.10", false}, {"192.0.2.12-192.0.2.10", false}, {"192.0.2.10-2001:db8::1", false},
		{"192.0.2.10-192.0.2.300", false},
	} {
		var a addresses
		if err := a.Set(tt.text); (err == nil) != tt.valid || tt.valid && a.String() != tt.text {
			t.Errorf("%q: %v, %v", tt.text, &a, err)
		}
	}
}

// A Service keeps the address that it has, gets the one that it asks for, or else the first one that is free.
func TestAddressesOfServices(t *testing.T) {
	t.Parallel()
	var pool addresses
	if err := pool.Set("192.0.2.1-192.0.2.4"); err != nil {
		t.Fatal(err)
	}
	node := netip.MustParsePrefix("192.0.2.1/24") // of the pool, but this node's own
	service := func(wants, has string) *v1.Service {
		s := &v1.Service{Spec: v1.ServiceSpec{LoadBalancerIP: wants}}
		s.UID = "me"
		if has != "" {
			s.Status.LoadBalancer.Ingress = []v1.LoadBalancerIngress{{IP: has}}
		}
		return s
	}
	for _, tt := range []struct {
		wants, has string
		given      map[string]types.UID
		want       string // or "" for an error
	}{
		{want: "192.0.2.2"},
		{given: map[string]types.UID{"192.0.2.2": "other"}, want: "192.0.2.3"},
		{has: "192.0.2.4", want: "192.0.2.4"},
		{has: "192.0.2.4", given: map[string]types.UID{"192.0.2.4": "me"}, want: "192.0.2.4"},
		{has: "192.0.2.4", given: map[string]types.UID{"192.0.2.4": "other"}, want: "192.0.2.2"},
		{has: "198.51.100.1", want: "192.0.2.2"}, // of an earlier pool
		{wants: "192.0.2.3", has: "192.0.2.4", want: "192.0.2.3"},
		{wants: "192.0.2.3", given: map[string]types.UID{"192.0.2.3": "other"}},
		{wants: "192.0.2.1"},
		{wants: "192.0.2.5"},
		{wants: "anything"},
		{given: map[string]types.UID{"192.0.2.2": "a", "192.0.2.3": "b", "192.0.2.4": "c"}},
	} {
		p := &provider{pool: pool, network: node, given: map[netip.Addr]types.UID{}}
		for ip, owner := range tt.given {
			p.given[netip.MustParseAddr(ip)] = owner
		}
		ip, err := p.choose(service(tt.wants, tt.has))
		if (err == nil) != (tt.want != "") || err == nil && ip.String() != tt.want {
			t.Errorf("%+v: %v, %v", tt, ip, err)
		}
	}
}
