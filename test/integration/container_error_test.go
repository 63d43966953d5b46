//go:build integration

package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// soon is the time within which a run must report that something cannot work.
const soon = 30 * time.Second

func TestMissingContainerEngineIsReported(t *testing.T) {
	needEngine(t)
	tr := smallTree(t)
	for _, host := range []string{"unix:///nowhere/docker.sock", "tcp://127.0.0.1:1", "tcp://no-such-host.invalid:2375"} {
		t.Run(host, func(t *testing.T) {
			tr := tr.with("DOCKER_HOST=" + host)
			for _, args := range [][]string{{"build", "kubectl", "--road=container"}, {"run", "--", "true"}} {
				if got := tr.slipway(t, args...).fails(t, 1, host, "systemctl start docker", "ROAD=local"); got.took > soon {
					t.Errorf("it took %v", got.took)
				}
			}
			// clean needs no engine in a tree that never used one.
			tr.slipway(t, "clean").ok(t)
		})
	}
	tr.with("DOCKER_HOST=nonsense").slipway(t, "build", "kubectl", "--road=container").fails(t, 1, "nonsense", "DOCKER_HOST")
	tr.with("DOCKER_HOST=ssh://somewhere").slipway(t, "build", "kubectl", "--road=container").fails(t, 1, "ssh", "DOCKER_HOST=unix://")
}

func TestContainerRoadReportsMissingRsync(t *testing.T) {
	needEngine(t)
	tr := smallTree(t)
	bin := t.TempDir()
	for _, tool := range []string{"go", "git", "sh"} {
		path, err := exec.LookPath(tool)
		if err == nil {
			err = os.Symlink(path, filepath.Join(bin, tool))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	tr.with("PATH="+bin).slipway(t, "build", "kubectl", "--road=container").fails(t, 1, "rsync", "PATH", "install the package rsync")
}

func TestCompileErrorInAContainerIsPrintedOnceAsGoPrintsIt(t *testing.T) {
	needEngine(t)
	tr := smallTree(t)
	tr.edit(t, "cmd/kubectl/main.go", "\nfunc main() {", "\nvar wrong int = \"a string\"\n\nfunc main() {\n\tundeclared()\n")
	plain := run(t, tr.path("cmd"), nil, "go", "build", "-o", os.DevNull, "./kubectl")
	if plain.code == 0 {
		t.Fatal("the source is not broken")
	}
	got := tr.slipway(t, "build", "kubectl", "--road=container").fails(t, 1)
	for line := range strings.Lines(plain.stderr) {
		if n := strings.Count(got.stderr+got.stdout, line); n != 1 {
			t.Errorf("go build prints %q, the user sees it %d times: %v", line, n, got)
		}
	}
	tr.onlyData(t)
}

// An rsync container that dies is an error, not a hang.
func TestRsyncContainerThatDiesIsReported(t *testing.T) {
	needEngine(t)
	tr := smallTree(t)
	tr.bulky(t, 200<<20)
	p := tr.start(t, slipway(t), "build", "kubectl", "--road=container", "--json")
	if !p.until(t, p.says(syncing)) {
		t.Fatalf("it ended before its container could be killed: %v", p.wait(t))
	}
	start := time.Now()
	for _, c := range tr.containers(t) {
		if c.Role == "rsync" {
			tr.docker(t, "kill", c.Names).ok(t)
		}
	}
	got := p.wait(t)
	if took := time.Since(start); got.code != 1 || took > soon {
		t.Errorf("want exit code 1 soon, came after %v: %v", took, got)
	}
	if !strings.Contains(got.stdout, `"kind":"failed"`) || !strings.Contains(got.stdout, "rsync to tree: ") {
		t.Errorf("the error is not clear: %v", got)
	}
	tr.onlyData(t)
	tr.slipway(t, "build", "kubectl", "--road=container").ok(t)
}

// A build container that is killed is reported as killed, and the next run succeeds.
func TestBuildContainerThatIsKilledIsReported(t *testing.T) {
	needEngine(t)
	tr := smallTree(t)
	tr.bulky(t, 100<<20)
	p := tr.start(t, slipway(t), "build", "kubectl", "--road=container", "--json")
	if !p.until(t, p.inBuildContainer) {
		t.Fatalf("it ended before its container could be killed: %v", p.wait(t))
	}
	for _, c := range tr.containers(t) {
		if c.Role == "build" {
			tr.docker(t, "kill", c.Names).ok(t)
		}
	}
	if got := p.wait(t); got.code != 1 || !strings.Contains(got.stdout, "killed by signal 9") {
		t.Errorf("want exit code 1, and the signal: %v", got)
	}
	tr.onlyData(t)
	tr.slipway(t, "build", "kubectl", "--road=container").ok(t)
}
