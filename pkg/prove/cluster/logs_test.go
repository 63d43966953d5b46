package cluster

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway.build/pkg/prove/cluster/logs"
)

// withNode returns the state of a cluster with nodes, of which nothing runs, and a function that writes a file below /var/log of a node.
func withNode(t *testing.T, nodes ...string) (*State, func(node, name, text string) string) {
	t.Helper()
	s := &State{Name: "x", dir: t.TempDir()}
	for _, n := range nodes {
		s.Processes = append(s.Processes, Process{Name: n})
	}
	return s, func(node, name, text string) string {
		t.Helper()
		file := s.NodeFile(node, "var-log", name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return file
	}
}

func logged(t *testing.T, s *State, component string, o LogOptions) []string {
	t.Helper()
	var lines []string
	err := s.Logs(t.Context(), component, o, func(from, line string) error {
		lines = append(lines, from+": "+line)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

func TestLogsAreThoseOfTheNewestContainers(t *testing.T) {
	t.Parallel()
	s, write := withNode(t, "x-1", "x-2")
	write("x-1", "kubelet.log", "one\ntwo\nthree")
	write("x-2", "kubelet.log", "other\n")
	old := write("x-1", "pods/kube-system_etcd-x-1_aaa/etcd/0.log", "2026-01-01T00:00:00Z stderr F before\n")
	long := time.Now().Add(-time.Hour)
	if err := os.Chtimes(old, long, long); err != nil {
		t.Fatal(err)
	}
	write("x-1", "pods/kube-system_etcd-x-1_bbb/etcd/9.log", "2026-01-01T00:00:00Z stderr F earlier\n")
	write("x-1", "pods/kube-system_etcd-x-1_bbb/etcd/10.log", "2026-01-01T00:00:00Z stderr P a lo\n2026-01-01T00:00:00Z stderr F ng line\n")
	write("x-2", "pods/kube-system_coredns-1-a_ccc/coredns/0.log", "2026-01-01T00:00:00Z stdout F a\n")
	write("x-2", "pods/kube-system_coredns-1-b_ddd/coredns/0.log", "2026-01-01T00:00:00Z stdout F b\n")
	write("x-2", "pods/default_coredns_eee/coredns/0.log", "2026-01-01T00:00:00Z stdout F a user's\n")

	for _, tt := range []struct {
		component string
		o         LogOptions
		want      []string
	}{
		{"kubelet", LogOptions{Options: logs.Options{Last: -1}}, []string{"x-1: one", "x-1: two", "x-1: three", "x-2: other"}},
		{"kubelet", LogOptions{Options: logs.Options{Last: 2}}, []string{"x-1: two", "x-1: three", "x-2: other"}},
		{"kubelet", LogOptions{"x-1", logs.Options{Last: 1}}, []string{": three"}},
		{"etcd", LogOptions{Options: logs.Options{Last: -1}}, []string{"x-1: a long line"}},
		{"coredns", LogOptions{Options: logs.Options{Last: -1}}, []string{"x-2 coredns-1-a: a", "x-2 coredns-1-b: b"}},
	} {
		if got := logged(t, s, tt.component, tt.o); !slices.Equal(got, tt.want) {
			t.Errorf("%s %+v: got %q, want %q", tt.component, tt.o, got, tt.want)
		}
	}
	for component, want := range map[string]string{"kubelt": "did you mean kubelet?", "web": "coredns, etcd or kubelet"} {
		if err := s.Logs(t.Context(), component, LogOptions{}, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", component, err, want)
		}
	}
	if err := s.Logs(t.Context(), "kubelet", LogOptions{Node: "x-3"}, nil); err == nil ||
		!strings.Contains(err.Error(), `unknown node "x-3"`) {
		t.Errorf("got %v", err)
	}
}

func TestLogsAreFollowedThroughRotationAndRestart(t *testing.T) {
	t.Parallel()
	s, write := withNode(t, "x-1")
	const folder = "pods/kube-system_etcd-x-1_aaa/etcd/"
	container := func(text string) string { return "2026-01-01T00:00:00Z stderr F " + text + "\n" }
	file := write("x-1", folder+"0.log", container("first")+container("second"))
	// Each line is written when the one before it was read.
	next := map[string]func(){
		"second": func() {
			if err := os.Rename(file, file+".20260101"); err != nil {
				t.Error(err)
			}
			write("x-1", folder+"0.log", container("rotated"))
		},
		"rotated":   func() { write("x-1", folder+"1.log", container("restarted")) },
		"restarted": func() { write("x-1", folder+"1.log", container("cut")) },
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var got []string
	err := s.Logs(ctx, "etcd", LogOptions{Options: logs.Options{Last: 1, Follow: true}}, func(_, line string) error {
		got = append(got, line)
		if line == "cut" {
			cancel()
		} else {
			next[line]()
		}
		return nil
	})
	if want := []string{"second", "rotated", "restarted", "cut"}; !errors.Is(err, context.Canceled) || !slices.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}
