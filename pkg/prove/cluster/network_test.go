package cluster

import (
	"net/netip"
	"testing"
)

func TestSubnetHasNoRoute(t *testing.T) {
	t.Parallel()
	taken, err := takenPrefixes(`[{"dst":"default","gateway":"192.0.2.1"},{"dst":"198.18.0.0/24","dev":"a"},{"dst":"198.18.1.7","dev":"b"},{"dst":"0.0.0.0/0"}]`)
	if err != nil {
		t.Fatal(err)
	}
	if p, err := freeSubnet(taken); err != nil || p.String() != "198.18.2.0/24" {
		t.Errorf("%v, %v", p, err)
	}
	if p, err := freeSubnet([]netip.Prefix{netip.MustParsePrefix("198.18.0.0/16")}); err != nil || p.String() != "198.19.0.0/24" {
		t.Errorf("with half of them taken: %v, %v", p, err)
	}
	if p, err := freeSubnet([]netip.Prefix{subnets}); err == nil {
		t.Errorf("with all of them taken: %v", p)
	}
	if _, err := takenPrefixes("Device not found"); err == nil {
		t.Error("what is not JSON is taken for no routes")
	}
}

func TestNodesHaveAddressesOfTheSubnet(t *testing.T) {
	t.Parallel()
	s := &State{Subnet: "198.18.3.0/24"}
	for number, want := range map[int]string{0: "198.18.3.1/24", 1: "198.18.3.2/24", 100: "198.18.3.101/24"} {
		if a, err := s.address(number); err != nil || a.String() != want {
			t.Errorf("node %d has %v (%v), want %s", number, a, err, want)
		}
	}
}

func TestNamesOfInterfacesFit(t *testing.T) {
	t.Parallel()
	s, err := newState(t.TempDir(), "a-name-of-32-characters-0123456789"[:32], "", false, 1)
	if err != nil {
		t.Fatal(err)
	}
	if name := s.hostInterface(); len(name) > 15 { // IFNAMSIZ less one
		t.Errorf("%s has %d characters", name, len(name))
	}
}
