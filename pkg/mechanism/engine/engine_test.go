package engine

import (
	"context"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestMissingEngineIsNamed(t *testing.T) {
	t.Setenv("DOCKER_HOST", "unix://"+t.TempDir()+"/none.sock")
	_, err := Connect(t.Context())
	if err == nil || !strings.Contains(err.Error(), "none.sock") || !strings.Contains(err.Error(), "systemctl start docker") {
		t.Errorf("error %v", err)
	}
}

func TestSilentEngineIsGivenUp(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	t.Setenv("DOCKER_HOST", "tcp://"+silent.Addr().String())
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := Connect(ctx); err == nil || !strings.Contains(err.Error(), silent.Addr().String()) {
		t.Errorf("error %v", err)
	}
}

func TestUnusableAddressIsRefused(t *testing.T) {
	for host, want := range map[string]string{
		"nonsense":           "DOCKER_HOST",
		"ssh://user@machine": "forward its socket",
	} {
		t.Setenv("DOCKER_HOST", host)
		if _, err := Connect(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", host, err, want)
		}
	}
}

func TestTreesHaveDifferentOwners(t *testing.T) {
	t.Parallel()
	a, b := t.TempDir(), t.TempDir()
	first := OwnerOf(a)
	if again := OwnerOf(a + "/."); again.ID != first.ID {
		t.Errorf("a tree has two IDs, %s and %s", first.ID, again.ID)
	}
	if OwnerOf(a).ID == OwnerOf(b).ID {
		t.Error("two trees have one ID")
	}
}

func TestExitDescribesHowAContainerEnded(t *testing.T) {
	t.Parallel()
	for code, want := range map[int64]string{1: "exit status 1", 2: "exit status 2", 137: "signal 9", 143: "signal 15",
		255: "exit status 255"} {
		if got := exitOf(code).Error(); !strings.Contains(got, want) {
			t.Errorf("%d: %q, want %q", code, got, want)
		}
	}
	if exit := exitOf(130); exit.Signal != syscall.SIGINT || exit.Code != 130 {
		t.Errorf("%+v", exit)
	}
	if got := (Exit{Code: 137, Signal: syscall.SIGKILL, Memory: true}).Error(); !strings.Contains(got, "out of memory") {
		t.Error(got)
	}
}

func TestLastValueOfAVariableCounts(t *testing.T) {
	t.Parallel()
	got := withoutRepeats([]string{"A=1", "B=2", "A=3", "C"})
	if diff := cmp.Diff([]string{"B=2", "A=3", "C"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
