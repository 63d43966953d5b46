package cluster

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
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

func TestSubnetsAreChosenByOneClusterAtATime(t *testing.T) {
	t.Parallel()
	socket := "@slipway-test-" + strconv.Itoa(os.Getpid())
	unlock, err := lockNetwork(t.Context(), socket, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lockNetwork(t.Context(), socket, time.Millisecond); err == nil || !strings.Contains(err.Error(), socket) {
		t.Errorf("while another process has the socket: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := lockNetwork(ended, socket, time.Minute); !errors.Is(err, context.Canceled) {
		t.Errorf("after Ctrl-C: %v", err)
	}
	unlock()
	if unlock, err = lockNetwork(t.Context(), socket, time.Minute); err != nil {
		t.Fatalf("once it is free: %v", err)
	}
	unlock()
	// It cannot become free where sockets cannot be made at all.
	if _, err := lockNetwork(t.Context(), filepath.Join(t.TempDir(), "none", "socket"), time.Hour); err == nil {
		t.Error("a socket that cannot be made is waited for")
	}
}
