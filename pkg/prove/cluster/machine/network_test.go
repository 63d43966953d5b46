package machine

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
	pool := netip.MustParsePrefix("198.18.0.0/15")
	taken, err := routePrefixes(`[{"dst":"default","gateway":"192.0.2.1"},{"dst":"198.18.0.0/24","dev":"a"},` +
		`{"dst":"198.18.1.7","dev":"b"},{"dst":"0.0.0.0/0"}]`)
	if err != nil {
		t.Fatal(err)
	}
	if p, err := freeSubnet(pool, taken); err != nil || p.String() != "198.18.2.0/24" {
		t.Errorf("%v, %v", p, err)
	}
	if p, err := freeSubnet(pool, []netip.Prefix{netip.MustParsePrefix("198.18.0.0/16")}); err != nil || p.String() != "198.19.0.0/24" {
		t.Errorf("with half of them taken: %v, %v", p, err)
	}
	if p, err := freeSubnet(pool, []netip.Prefix{pool}); err == nil {
		t.Errorf("with all of them taken: %v", p)
	}
	if _, err := routePrefixes("Device not found"); err == nil {
		t.Error("what is not JSON is taken for no routes")
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
