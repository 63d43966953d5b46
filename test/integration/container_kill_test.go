//go:build integration

package integration

import (
	crand "crypto/rand"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// bulky embeds a file of that many bytes in kubectl, which takes a while to send, to link and to fetch.
func (tr tree) bulky(t *testing.T, size int) {
	t.Helper()
	bulk := make([]byte, size) // random, so that rsync cannot compress it
	_, _ = crand.Read(bulk)
	if err := os.WriteFile(tr.path("cmd/kubectl/bulk"), bulk, 0o644); err != nil {
		t.Fatal(err)
	}
	tr.write(t, "cmd/kubectl/bulk.go", "package main\n\nimport _ \"embed\"\n\n//go:embed bulk\nvar bulk string\n\nfunc init() {\n"+
		"\tif len(bulk) == 0 {\n\t\tpanic(bulk)\n\t}\n}\n")
}

// Texts in the output of a run with --json that has reached a step.
const (
	syncing              = `"text":"sending sources"`
	compilingByContainer = `"kind":"progress","action":"compile linux/`
	fetching             = `"text":"fetching results"`
)

// inBuildContainer reports whether the Go command runs in a build container, which the progress of the run then names.
func (p *process) inBuildContainer() bool {
	for line := range strings.Lines(p.stdout()) {
		if strings.Contains(line, compilingByContainer) && strings.Contains(line, "-build-") && !strings.Contains(line, fetching) {
			return true
		}
	}
	return false
}

// One build is interrupted at each of its steps, by Ctrl-C or by kill -9; in the soak test, by both. No container keeps running, and the
// final result is the same.
func TestInterruptedContainerBuildResumes(t *testing.T) {
	needEngine(t)
	tr := smallTree(t)
	tr.bulky(t, 200<<20)
	tr.slipway(t, "build").ok(t)
	want := tr.sum(t, hostBin("kubectl"))
	build := []string{"build", "--road=container", "--json"}

	ctrlC := func(t *testing.T, p *process) {
		p.signalGroup(syscall.SIGINT)
		if got := p.wait(t); got.code == 0 {
			t.Errorf("it was stopped, and reports success: %v", got)
		}
		p.gone(t)
		for _, c := range tr.containers(t) {
			if c.Role != "data" {
				t.Errorf("Ctrl-C left %v", c)
			}
		}
	}
	kill := func(t *testing.T, p *process) {
		p.kill(t)
		tr.ended(t, 15*time.Second)
	}
	type moment struct {
		name string
		at   func(p *process) func() bool
		stop func(t *testing.T, p *process)
	}
	moments := []moment{
		{"Ctrl-C while sources are sent", func(p *process) func() bool { return p.says(syncing) }, ctrlC},
		{"kill -9 while sources are sent", func(p *process) func() bool { return p.says(syncing) }, kill},
		{"Ctrl-C while compiling", func(p *process) func() bool { return p.inBuildContainer }, ctrlC},
		{"kill -9 while compiling", func(p *process) func() bool { return p.inBuildContainer }, kill},
		{"Ctrl-C while binaries are fetched", func(p *process) func() bool { return p.says(fetching) }, ctrlC},
		{"kill -9 while binaries are fetched", func(p *process) func() bool { return p.says(fetching) }, kill},
	}
	if !soak { // the last is a kill: what it leaves is looked for below
		t.Logf("3 of %d interruptions: make soak for all", len(moments))
		moments = []moment{moments[rand.N(2)], moments[2+rand.N(2)], moments[5]}
	}
	killed := false // the previous run was killed and left containers
	for _, c := range moments {
		t.Run(c.name, func(t *testing.T) {
			p := tr.start(t, slipway(t), build...)
			if !p.until(t, c.at(p)) {
				t.Fatalf("it ended before it could be stopped: %v", p.wait(t))
			}
			left := tr.leftovers(t)
			c.stop(t, p)
			if killed {
				parseEvents(t, p.stdout()).hasSteps(t, "removed what a killed run left: ")
			}
			killed = c.name[0] == 'k' && left
			if name := dockerized + "/linux/" + hostArch + "/kubectl"; tr.exists(name) && tr.sum(t, name) != want {
				t.Errorf("%s is half written", name)
			}
		})
	}
	es := tr.jsonRun(t, build[:len(build)-1]...)
	es.hasSteps(t, "removed what a killed run left: slipway-")
	if got := tr.sum(t, dockerized+"/linux/"+hostArch+"/kubectl"); got != want {
		t.Errorf("kubectl is %s, by the local road %s", got, want)
	}
	tr.onlyData(t)
}

// leftovers reports whether there are containers that a kill would leave behind, even after they ended.
func (tr tree) leftovers(t *testing.T) bool {
	t.Helper()
	for _, c := range tr.containers(t) {
		if c.Role == "rsync" || c.Role == "build" {
			return true
		}
	}
	return false
}

// A user's own command in a container ends with the process that started it, whatever signals it ignores.
func TestKilledContainerCommandLeavesNothing(t *testing.T) {
	needEngine(t)
	tr := smallTree(t)
	for _, c := range []struct {
		name string
		sig  syscall.Signal
	}{{"Ctrl-C", syscall.SIGINT}, {"SIGTERM", syscall.SIGTERM}, {"kill -9", syscall.SIGKILL}} {
		t.Run(c.name, func(t *testing.T) {
			p := tr.start(t, slipway(t), "run", "--", "sh", "-c", "trap '' INT TERM HUP; echo here; sleep 1000; sleep 1000")
			if !p.until(t, p.says("here\n")) {
				t.Fatalf("it ended before it could be stopped: %v", p.wait(t))
			}
			p.signalGroup(c.sig)
			if got := p.wait(t); got.code == 0 {
				t.Errorf("it was stopped, and reports success: %v", got)
			}
			p.gone(t)
			if c.sig == syscall.SIGKILL {
				tr.ended(t, 15*time.Second)
			}
			tr.settled(t)
		})
	}
}
