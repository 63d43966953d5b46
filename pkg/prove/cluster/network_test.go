package cluster

import "testing"

func TestNodesHaveAddressesOfTheSubnet(t *testing.T) {
	t.Parallel()
	s := &State{Name: "c", Subnet: "198.18.3.0/24", ControlPlanes: 3}
	for number, want := range map[int]string{1: "198.18.3.2", 100: "198.18.3.101"} {
		if got := s.address(s.node(number)); got != want {
			t.Errorf("node %d has %s, want %s", number, got, want)
		}
	}
	if got := s.registry(); got != "198.18.3.254:5000" {
		t.Errorf("the registry is at %s", got)
	}
	if got := s.endpoint(); got != "198.18.3.253:6443" {
		t.Errorf("behind the load balancer, the API is at %s", got)
	}
	s.ControlPlanes = 1
	if got := s.endpoint(); got != "198.18.3.2:6443" {
		t.Errorf("without a load balancer, the API is at %s", got)
	}
}

func TestNamesOfInterfacesFit(t *testing.T) {
	t.Parallel()
	s := created(t, t.TempDir(), "a-name-of-32-characters-0123456789"[:32])
	if name := s.hostInterface(); len(name) > 15 { // IFNAMSIZ less one
		t.Errorf("%s has %d characters", name, len(name))
	}
}
