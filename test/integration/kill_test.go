//go:build integration

package integration

import (
	"math/rand/v2"
	"syscall"
	"testing"
	"time"
)

// One release is interrupted in each of its phases; in the soak test, by each kind of signal. In the end it is the same release.
func TestInterruptedReleaseResumes(t *testing.T) {
	r := baseline(t)
	if soak {
		r.cleanOutput(t)
	} else { // a few programs have to be linked again
		r.remove(t, hostBin("kube-apiserver"), hostBin("kubectl"), "_output/.slipway/links")
	}
	random := func(most time.Duration) time.Duration { return rand.N(most) }
	compiling := func(p *process) bool { return p.until(t, p.linking) }
	type moment struct {
		name string
		line []string
		at   func(p *process) bool
		wait time.Duration // upper limit of a random time after that
		stop func(p *process)
	}
	moments := []moment{
		{"Ctrl-C while compiling", []string{"make", quick}, compiling, 0, func(p *process) {
			p.signalGroup(syscall.SIGINT)
		}},
		{"SIGTERM to the process alone while compiling", append([]string{slipway(t)}, quickRelease...), compiling, 0, func(p *process) {
			_ = p.cmd.Process.Signal(syscall.SIGTERM)
		}},
		{"kill -9 while compiling", append([]string{slipway(t)}, quickRelease...), compiling, 4 * time.Second, nil},
		{"kill -9 while images are made", []string{"make", quick}, func(p *process) bool {
			return p.until(t, p.says("image linux/"))
		}, 500 * time.Millisecond, nil},
		{"SIGTERM to all while packing", []string{"make", quick}, func(p *process) bool {
			return p.until(t, p.says("package kubernetes-server-"))
		}, 0, func(p *process) { p.signalGroup(syscall.SIGTERM) }},
		{"kill -9 while packing", append([]string{slipway(t)}, quickRelease...), func(p *process) bool {
			return p.until(t, p.says("package kubernetes-server-"))
		}, 500 * time.Millisecond, nil},
	}
	if !soak { // one in each phase
		t.Logf("3 of %d interruptions: make soak for all", len(moments))
		moments = []moment{moments[rand.N(3)], moments[3], moments[4+rand.N(2)]}
	}
	for _, c := range moments {
		t.Run(c.name, func(t *testing.T) {
			if !soak {
				r.remove(t, images, tars)
			}
			p := r.start(t, c.line[0], c.line[1:]...)
			if !c.at(p) {
				t.Fatalf("it ended before it could be stopped: %v", p.wait(t))
			}
			if c.wait > 0 {
				p.after(random(c.wait))
			}
			if c.stop == nil {
				p.kill(t)
			} else {
				c.stop(p)
				if got := p.wait(t); got.code == 0 {
					t.Errorf("it was stopped, and reports success: %v", got)
				}
				p.gone(t)
			}
			r.nothingHalfWritten(t, r.tree)
		})
	}
	r.make(t, quick).ok(t)
	r.sameFiles(t, r.tree)
	if r.exists("_output/.slipway/tmp") {
		t.Error("temporary files stay behind")
	}
}

// nothingHalfWritten requires that every file with its final name has its final content.
func (r release) nothingHalfWritten(t *testing.T, tr tree) {
	t.Helper()
	now, err := filesOf(tr)
	if err != nil {
		t.Fatal(err)
	}
	for name, sum := range now {
		if want, ok := r.files[name]; !ok || sum != want {
			t.Errorf("%s is %s, in a finished release %q", name, sum, want)
		}
	}
}
