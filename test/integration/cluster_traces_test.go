//go:build integration && linux

package integration

import (
	"bytes"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// traces are things that a cluster could leave on a machine, one a line.
type traces []string

// tracesOf lists the processes and control groups of clusters, and everything else that clusters change. What a cluster has changed is
// the difference between two lists.
func tracesOf(t *testing.T) traces {
	t.Helper()
	var all traces
	add := func(kind string, lines ...string) {
		for _, line := range lines {
			if line = strings.TrimSpace(line); line != "" {
				all = append(all, kind+" "+line)
			}
		}
	}
	add("process", clusterProcesses(t)...)
	add("cgroup", clusterCgroups(t)...)
	add("mount", mounts(t)...)
	add("loop", loops(t)...)
	interfaces, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range interfaces {
		bridge, _ := os.Readlink("/sys/class/net/" + i.Name + "/master")
		if filepath.Base(bridge) != "docker0" { // another test's container
			add("interface", i.Name)
		}
	}
	add("route", strings.Split(run(t, "/", nil, "ip", "route", "show", "table", "all").ok(t).stdout, "\n")...)
	for _, list := range []string{"iptables-save", "iptables-legacy-save"} {
		counters := regexp.MustCompile(`(?m)^#.*$|\[\d+:\d+\]`)
		add("rule", strings.Split(counters.ReplaceAllString(run(t, "/", nil, list).ok(t).stdout, ""), "\n")...)
	}
	for _, name := range []string{
		"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys",
		"kernel/keys/root_maxbytes",
		"kernel/hostname", "net/ipv4/ip_forward", "net/ipv4/conf/all/forwarding", "net/ipv4/conf/all/route_localnet",
		"net/netfilter/nf_conntrack_max",
	} {
		if value, err := os.ReadFile("/proc/sys/" + name); err == nil {
			add("sysctl", name+" = "+string(value))
		}
	}
	for _, dir := range []string{"/etc", "/opt", "/run", "/srv", "/mnt", "/usr/libexec", "/var/lib", "/var/log"} {
		for _, pattern := range []string{"/*", "/*/*"} {
			files, err := filepath.Glob(dir + pattern)
			if err != nil {
				t.Fatal(err)
			}
			add("file", slices.DeleteFunc(files, ofOthers)...)
		}
	}
	add("controllers", readFile("/sys/fs/cgroup/cgroup.subtree_control"))
	slices.Sort(all)
	return all
}

// loops returns the files of clusters that loop devices hold.
func loops(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		t.Fatal(err)
	}
	var of []string
	for _, file := range files {
		if name, err := os.ReadFile(file); err == nil && strings.Contains(string(name), "/_output/cluster/") {
			of = append(of, string(name))
		}
	}
	return of
}

// mounts returns the mount points of the machine, except those of other software: of a container engine, and in folders for temporary
// files.
func mounts(t *testing.T) []string {
	t.Helper()
	var points []string
	for line := range strings.Lines(readFile("/proc/self/mountinfo")) {
		point := strings.Fields(line)[4]
		others := strings.HasPrefix(point, os.TempDir()+"/") || ofEngine(point)
		if others && !strings.Contains(point, "/_output/cluster/") && !strings.HasPrefix(point, workspace) {
			continue
		}
		points = append(points, point)
	}
	return points
}

// ofOthers reports whether a file is of software that other tests use meanwhile: of a container engine, the shared memory of programs such
// as faketime, the table of mount(8), or what podman, skopeo and dnf keep. An engine's containerd makes two folders for the sockets of all
// of its containers; a file in them may be of a cluster.
func ofOthers(name string) bool {
	folders := []string{"/run/mount", "/run/libpod", "/var/lib/containers", "/var/lib/dnf"}
	return ofEngine(name) || strings.HasPrefix(name, "/run/shm/") || name == "/run/containerd" || name == "/run/containerd/s" ||
		slices.ContainsFunc(folders, func(dir string) bool { return name == dir || strings.HasPrefix(name, dir+"/") })
}

// ofEngine reports whether a file is a container engine's.
func ofEngine(name string) bool {
	return strings.HasPrefix(name, "/var/lib/docker/") || strings.HasPrefix(name, "/run/docker/")
}

// clusterProcesses returns the processes of clusters, including those of killed ones.
func clusterProcesses(t *testing.T) []string {
	t.Helper()
	var all []string
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		line, _ := os.ReadFile(dir + "/cmdline")
		groups, _ := os.ReadFile(dir + "/cgroup")
		cwd, _ := os.Readlink(dir + "/cwd")
		exe, _ := os.Readlink(dir + "/exe")
		command := string(bytes.ReplaceAll(line, []byte{0}, []byte{' '}))
		if strings.Contains(string(groups), "slipway-") || strings.Contains(command, "/run/slipway/") ||
			strings.Contains(cwd+exe, "/_output/cluster/") || strings.Contains(cwd+exe, "/run/slipway/") {
			all = append(all, filepath.Base(dir)+" "+strings.Join(strings.Fields(command), " "))
		}
	}
	return all
}

// clusterCgroups returns the control groups of clusters.
func clusterCgroups(t *testing.T) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir("/sys/fs/cgroup", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // it was removed meanwhile
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), "slipway-") || strings.HasPrefix(d.Name(), "kubepods")) {
			all = append(all, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// nothingLeft requires that the machine is as it was. The kernel takes a moment to remove a network namespace.
func (before traces) nothingLeft(t *testing.T) {
	t.Helper()
	var changes []string
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if changes = before.changes(tracesOf(t)); len(changes) == 0 {
			return
		}
	}
	t.Errorf("the machine is not as it was:\n%s", strings.Join(changes, "\n"))
}

func (before traces) changes(after traces) []string {
	var changes []string
	for _, line := range after {
		if !slices.Contains(before, line) {
			changes = append(changes, fmt.Sprintf("new  %.200s", line))
		}
	}
	for _, line := range before {
		if !slices.Contains(after, line) {
			changes = append(changes, fmt.Sprintf("gone %.200s", line))
		}
	}
	return changes
}

// has requires new traces of some kinds, because a list that misses them would also miss what is left.
func (before traces) has(t *testing.T, kinds ...string) {
	t.Helper()
	changes := before.changes(tracesOf(t))
	for _, kind := range kinds {
		if !slices.ContainsFunc(changes, func(line string) bool { return strings.HasPrefix(line, "new  "+kind+" ") }) {
			t.Errorf("a running cluster has no %s in %q", kind, changes)
		}
	}
}
