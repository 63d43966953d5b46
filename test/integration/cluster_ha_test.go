//go:build integration && linux

package integration

import (
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// Of three control planes, any one may stop at any time: the API can be reached by a client that tries again, and nothing is lost that it
// has acknowledged.
func TestOneOfThreeControlPlanesStops(t *testing.T) {
	rare(t, "three control planes, of which twenty times one stops, take minutes")
	needNodes(t)
	tr := clusterTree(t)
	before := tracesOf(t)
	tr.slipway(t, "cluster", "up", "--control-planes", "2").fails(t, 2, "--control-planes=2: want 1, 3, 5 or 7")
	tr.slipway(t, "cluster", "up", "--control-planes", "3", "--nodes", "2").fails(t, 2, "3 control planes need as many nodes")
	took := tr.up(t, "--control-planes", "3").ok(t).took
	t.Logf("three control planes after %v", took)
	tr.slipway(t, "cluster", "verify", "--only", "components,controllers/leader-election").ok(t)

	// By default a kubelet waits up to five minutes before it starts a container again that has ended often.
	for _, n := range clusterNodes(tr.clusterStatus(t)) {
		const next = "evictionPressureTransitionPeriod:"
		changedConfiguration(t, n, next, "crashLoopBackOff: {maxContainerRestartPeriod: 5s}\n"+next)
	}
	tr.restartKubelets(t)

	w := tr.startWriter(t)
	for i := range 20 {
		node := clusterNodes(tr.clusterStatus(t))[rand.N(3)]
		time.Sleep(rand.N(3 * time.Second))
		mend := tr.stopControlPlane(t, node)
		start := time.Now()
		w.goesOn(t, 5)
		t.Logf("%d: without %s, 5 writes took %v", i+1, node.name, time.Since(start))
		mend()
	}
	w.end(t)
	tr.slipway(t, "cluster", "down").ok(t)
	before.nothingLeft(t)
}

// A clusterNode is a node of a cluster that is up.
type clusterNode struct {
	name, address string
	pid           int // of its init
}

// clusterNodes returns the nodes in the order of their numbers.
func clusterNodes(s clusterStatus) []clusterNode {
	var nodes []clusterNode
	for _, p := range s.Parts {
		if p.Name != "switch" && p.Name != "balancer" {
			nodes = append(nodes, clusterNode{p.Name, p.Address, p.PID})
		}
	}
	slices.SortFunc(nodes, func(a, b clusterNode) int { return strings.Compare(a.name, b.name) })
	return nodes
}

// stopControlPlane kills the programs of a node's control plane and keeps the kubelet from starting them again.
func (tr tree) stopControlPlane(t *testing.T, n clusterNode) (mend func()) {
	t.Helper()
	kill := func(program string, sig syscall.Signal) {
		for _, pid := range processesBelow(t, n.pid, program) {
			if err := syscall.Kill(pid, sig); err != nil {
				t.Errorf("%v to %s of %s: %v", sig, program, n.name, err)
			}
		}
	}
	kill("kubelet", syscall.SIGSTOP)
	for _, program := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		kill(program, syscall.SIGKILL)
	}
	return func() {
		kill("kubelet", syscall.SIGCONT)
		tr.eventually(t, func() string { // its API server answers once its etcd has caught up
			c, err := net.DialTimeout("tcp", net.JoinHostPort(n.address, "6443"), time.Second)
			if err != nil {
				return err.Error()
			}
			c.Close()
			if got := tr.kubectl(t, "--server=https://"+net.JoinHostPort(n.address, "6443"), "get", "--raw", "/readyz"); got.stdout != "ok" {
				return got.String()
			}
			return ""
		})
	}
}

// A writer writes objects one after the other, and tries again until each is acknowledged.
type writer struct {
	tr           tree
	acknowledged atomic.Int64
	finish       func() // ends it; may be called again
}

func (tr tree) startWriter(t *testing.T) *writer {
	t.Helper()
	stop, ended := make(chan struct{}), make(chan struct{})
	w := &writer{tr: tr, finish: sync.OnceFunc(func() { close(stop); <-ended })}
	t.Cleanup(w.finish) // a test that fails must not leave it
	tr.kubectl(t, "create", "namespace", "written").ok(t)
	go func() {
		defer close(ended)
		for {
			select {
			case <-stop:
				return
			case <-time.After(300 * time.Millisecond): // more would be the clients' load, not the cluster's
			}
			name := "n" + strconv.FormatInt(w.acknowledged.Load(), 10)
			got := tr.kubectl(t, "--namespace=written", "create", "configmap", name, "--request-timeout=5s")
			if got.code == 0 || strings.Contains(got.stderr, "already exists") { // an answer may have been lost
				w.acknowledged.Add(1)
			}
		}
	}()
	return w
}

// goesOn waits until some more objects are written.
func (w *writer) goesOn(t *testing.T, more int64) {
	t.Helper()
	want := w.acknowledged.Load() + more
	w.tr.eventually(t, func() string {
		if n := w.acknowledged.Load(); n < want {
			return fmt.Sprintf("%d objects are written, want %d", n, want)
		}
		return ""
	})
}

// end ends the writer, and requires that all it has written is there.
func (w *writer) end(t *testing.T) {
	t.Helper()
	w.finish()
	names := strings.Fields(w.tr.kubectl(t, "--namespace=written", "get", "configmaps", "-o",
		"jsonpath={.items[*].metadata.name}").ok(t).stdout)
	for i := range w.acknowledged.Load() {
		if name := "n" + strconv.FormatInt(i, 10); !slices.Contains(names, name) {
			t.Errorf("%s was acknowledged, and is lost", name)
		}
	}
	t.Logf("%d objects were written", w.acknowledged.Load())
}
