//go:build integration

package integration

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A remoteEngine is a container engine that might as well be on another machine: it has a network, process numbers and a /run of its
// own, and cannot see the folder of a tree. It ends like a machine, all at once.
type remoteEngine struct {
	netns   string
	address string // of the engine
	data    string // folder with what it keeps
	driver  string // storage driver
	hidden  []string
	machine *process
}

// newRemoteEngine makes the network and starts the engine. Both are removed after the test.
func newRemoteEngine(t *testing.T, hidden ...string) *remoteEngine {
	t.Helper()
	needRoot(t)
	need(t, "ip", "iproute2")
	need(t, "nsenter", "util-linux")
	need(t, "dockerd", "docker.io")
	subnet := os.Getpid() % 250
	r := &remoteEngine{
		netns:   fmt.Sprintf("slipway-%d", os.Getpid()),
		address: fmt.Sprintf("10.213.%d.2", subnet),
		data:    t.TempDir(),
		driver:  strings.TrimSpace(run(t, workspace, nil, "docker", "info", "--format", "{{.Driver}}").ok(t).stdout),
		hidden:  hidden,
	}
	here, there := fmt.Sprintf("sw%dh", os.Getpid()), fmt.Sprintf("sw%dt", os.Getpid())
	t.Cleanup(func() {
		run(t, "/", nil, "ip", "netns", "delete", r.netns).ok(t)
		run(t, "/", nil, "ip", "link", "delete", here) // it is removed with the other end, sooner or later
	})
	script := `set -e
		ip netns add "$netns"
		ip link add "$here" type veth peer name "$there" netns "$netns"
		ip addr add "10.213.$subnet.1/30" dev "$here"
		ip link set "$here" up
		ip -n "$netns" addr add "10.213.$subnet.2/30" dev "$there"
		ip -n "$netns" link set "$there" up
		ip -n "$netns" link set lo up`
	env := []string{"netns=" + r.netns, "here=" + here, "there=" + there, fmt.Sprint("subnet=", subnet)}
	if got := run(t, "/", env, "sh", "-c", script); got.code != 0 {
		missing(t, "network namespaces cannot be made here: "+got.stderr)
	}
	r.start(t)
	return r
}

func (r *remoteEngine) host() string { return "DOCKER_HOST=tcp://" + r.address + ":2375" }

// start starts the engine, for the first time or again.
func (r *remoteEngine) start(t *testing.T) {
	t.Helper()
	script := `set -e
		mount --make-rprivate /
		mount -t tmpfs tmpfs /run
		for folder in $hidden; do mount -t tmpfs tmpfs "$folder"; done
		echo '{}' >/run/daemon.json # not this machine's settings
		exec dockerd --config-file=/run/daemon.json --host="tcp://$address:2375" --tls=false --data-root="$data" --storage-driver="$driver" \
			--iptables=false --ip-masq=false --ip-forward=false --bridge=none`
	machine := tree{dir: "/"}.with("address="+r.address, "data="+r.data, "driver="+r.driver, "hidden="+strings.Join(r.hidden, " "))
	r.machine = machine.start(t, "nsenter", "--net=/run/netns/"+r.netns, "unshare", "--mount", "--pid", "--fork", "--kill-child",
		"--mount-proc", "sh", "-c", script)
	t.Cleanup(func() { r.stop(t) })
	for deadline := time.Now().Add(time.Minute); run(t, workspace, []string{r.host()}, "docker",
		"version").code != 0; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) || len(r.machine.living()) == 0 {
			t.Fatalf("the second engine does not start:\n%s", tail(readFile(r.machine.err)))
		}
	}
}

// stop ends the machine and everything on it without warning. When the first process of a PID namespace dies, so do all others: the
// engine, its containerd, the containers.
func (r *remoteEngine) stop(t *testing.T) {
	t.Helper()
	r.machine.kill(t)
}

// inside runs a command in the engine's namespaces.
func (r *remoteEngine) inside(t *testing.T, command ...string) result {
	t.Helper()
	pids := strings.Fields(run(t, "/", nil, "ip", "netns", "pids", r.netns).ok(t).stdout)
	for _, pid := range pids {
		if name := strings.TrimSpace(readFile(filepath.Join("/proc", pid, "comm"))); name == "dockerd" {
			return run(t, "/", nil, "nsenter", append([]string{"--target", pid, "--mount", "--net", "--pid"}, command...)...)
		}
	}
	t.Fatalf("no dockerd among the processes %q", pids)
	return result{}
}

// copyImage copies an image from the usual engine, under the same name.
func (r *remoteEngine) copyImage(t *testing.T, name string) {
	t.Helper()
	save := command(workspace, nil, "docker", "save", name)
	load := command(workspace, []string{r.host()}, "docker", "load")
	var said bytes.Buffer
	save.Stderr, load.Stdout, load.Stderr = &said, &said, &said
	var err error
	if load.Stdin, err = save.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := save.Start(); err != nil {
		t.Fatal(err)
	}
	err = load.Run()
	if saved := save.Wait(); err != nil || saved != nil {
		t.Fatalf("copy %s to the second engine: %v, %v: %s", name, saved, err, said.String())
	}
}

func TestContainerEngineOnAnotherMachine(t *testing.T) {
	rare(t, "it starts another engine, and compiles there three times from nothing")
	clusterLane.join(t) // its network would be new to tests that look for what clusters leave
	needEngine(t)
	image, err := buildImage()
	if err != nil {
		t.Fatal(err)
	}
	tr := newSmallTree(t)
	local := tr.quickRelease(t, "local")
	r := newRemoteEngine(t, filepath.Dir(tr.dir), goEnv(t, "GOMODCACHE"), goEnv(t, "GOCACHE"))
	for _, name := range []string{tr.path("LICENSE"), "/run/docker.sock", "/run/containerd/containerd.sock"} {
		if got := r.inside(t, "test", "-e", name); got.code == 0 {
			t.Fatalf("the engine on the other machine sees %s of this one", name)
		}
	}
	r.copyImage(t, image)
	tr = tr.with(r.host())

	t.Run("release", func(t *testing.T) {
		here := tree{dir: tr.dir}
		since := time.Now()
		if diff := cmp.Diff(local, tr.quickRelease(t, "container")); diff != "" {
			t.Errorf("releases (-local road +container road):\n%s", diff)
		}
		if n := len(tr.happened(t, since).started("build")); n != 1 {
			t.Errorf("%d build containers were started there", n)
		}
		here.happened(t, since).none(t)
		tr.jsonRun(t, quickByContainer...).didNothing(t)
		tr.onlyData(t)
	})
	t.Run("command", func(t *testing.T) {
		if got := tr.slipway(t, "run", "--", "sh", "-c", "cat LICENSE; exit 3"); got.code != 3 || got.stdout != tr.read(t, "LICENSE") {
			t.Errorf("want the LICENSE and exit code 3: %v", got)
		}
	})
	for _, c := range []struct {
		name string
		at   func(p *process) func() bool
	}{
		{"while sources are sent", func(p *process) func() bool { return p.says(syncing) }},
		{"while compiling", func(p *process) func() bool { return p.inBuildContainer }},
	} {
		whole := t // the engine outlives the subtest
		t.Run("engine dies "+c.name, func(t *testing.T) {
			tr.remove(t, "_output")
			tr := tr.with("DBG=1") // with a cold cache, so that it takes a moment
			p := tr.start(t, slipway(t), "build", "--road=container", "--json")
			if !p.until(t, c.at(p)) {
				t.Fatalf("it ended before its engine could be stopped: %v", p.wait(t))
			}
			start := time.Now()
			r.stop(t)
			got := p.wait(t)
			if took := time.Since(start); got.code != 1 || took > soon {
				t.Errorf("want exit code 1 soon, came after %v: %v", took, got)
			}
			if !strings.Contains(got.stdout, "docker engine at tcp://"+r.address+":2375") {
				t.Errorf("the error does not name the engine: %v", got)
			}
			if strings.Contains(got.stdout, "panic") || strings.Count(got.stderr, "\n") > 12 {
				t.Errorf("the error is not clear: %v", got)
			}
			p.gone(t)
			tr.slipway(t, "build", "--road=container").fails(t, 1, "docker engine at tcp://"+r.address+":2375", "DOCKER_HOST")
			r.start(whole)
		})
	}
	t.Run("release after that", func(t *testing.T) {
		if diff := cmp.Diff(local, tr.quickRelease(t, "container")); diff != "" {
			t.Errorf("releases (-local road +container road):\n%s", diff)
		}
		tr.onlyData(t)
	})
	t.Run("clean", func(t *testing.T) {
		tr.cleanEngine(t)
		if left := tr.docker(t, "ps", "--all", "--quiet").ok(t).stdout + tr.docker(t, "volume", "ls", "--quiet").ok(t).stdout; left != "" {
			t.Errorf("the engine there still has %q", left)
		}
	})
}

// An engine that stops answering without closing the connection, as when a cable is pulled, is reported as well.
func TestContainerEngineThatFallsSilentIsReported(t *testing.T) {
	rare(t, "it waits for the network's patience")
	clusterLane.join(t)
	needEngine(t)
	image, err := buildImage()
	if err != nil {
		t.Fatal(err)
	}
	tr := newSmallTree(t)
	r := newRemoteEngine(t, filepath.Dir(tr.dir))
	r.copyImage(t, image)
	tr = tr.with(r.host())
	p := tr.start(t, slipway(t), "build", "--road=container", "--json")
	if !p.until(t, p.inBuildContainer) {
		t.Fatalf("it ended before its engine could fall silent: %v", p.wait(t))
	}
	r.machine.signalGroup(syscall.SIGSTOP)
	t.Cleanup(func() { r.machine.signalGroup(syscall.SIGCONT) })
	run(t, "/", nil, "ip", "-n", r.netns, "link", "set", "dev", fmt.Sprintf("sw%dt", os.Getpid()), "down").ok(t)
	start := time.Now()
	got := p.wait(t)
	t.Logf("reported after %v", time.Since(start))
	if got.code != 1 || !strings.Contains(got.stdout, "docker engine at tcp://"+r.address+":2375") {
		t.Errorf("want exit code 1, and the engine named: %v", got)
	}
}
