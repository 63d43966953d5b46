//go:build integration && soak

package integration

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// phases are those of a release. A run can be in several of them at a time.
var phases = []string{"compile", "link", "image", "compress", "rename", "record"}

func TestKilledReleaseIsTheSameAfterTheSameCommand(t *testing.T) {
	r := baseline(t)
	outputs := r.outputs(t)
	kills := 20
	if n, err := strconv.Atoi(os.Getenv("SLIPWAY_SOAK_KILLS")); err == nil {
		kills = n
	}
	hits := max(1, kills/10) // minimum of kills in each phase
	r.cleanOutput(t)
	length := r.slipway(t, quickRelease...).ok(t).took
	t.Logf("a release takes %v; %d kills are drawn from that time", length.Round(time.Millisecond), kills)

	count := map[string]int{}
	trial := func(name string, when func(p *process)) {
		t.Run(name, func(t *testing.T) {
			r.cleanOutput(t)
			p := r.start(t, slipway(t), append(slices.Clone(quickRelease), "--json")...)
			start := time.Now()
			when(p)
			at, linking := time.Since(start), p.linking()
			p.kill(t)
			in := r.phasesOf(t, parseEvents(t, p.stdout()), outputs, linking)
			for _, phase := range in {
				count[phase]++
			}
			t.Logf("killed after %v, in %q", at.Round(time.Millisecond), in)
			r.nothingHalfWritten(t, r.tree)
			r.make(t, quick).ok(t)
			r.sameFiles(t, r.tree)
		})
	}
	for range kills {
		trial("drawn", func(p *process) { p.after(rand.N(length)) })
	}
	// Short phases are rarely hit at random, so these are waited for.
	for _, phase := range phases {
		for attempt := 0; count[phase] < hits && attempt < 5*hits; attempt++ {
			trial("aimed at "+phase, func(p *process) { p.until(t, r.reached(p, phase)) })
		}
	}
	for _, phase := range phases {
		t.Logf("%s: %d kills", phase, count[phase])
		if count[phase] < hits {
			t.Errorf("only %d kills hit the phase %q", count[phase], phase)
		}
	}
}

// outputs returns the outputs of each action.
func (r release) outputs(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, e := range r.jsonRun(t, quickRelease...) {
		for _, f := range e.Files {
			all[e.Action] = append(all[e.Action], f.Path)
		}
	}
	return all
}

// phasesOf finds out in which phases a run was killed, by its events and the files it left.
func (r release) phasesOf(t *testing.T, es events, outputs map[string][]string, linking bool) []string {
	t.Helper()
	var in []string
	add := func(phase string) {
		if !slices.Contains(in, phase) {
			in = append(in, phase)
		}
	}
	done := es.of("done")
	if linking {
		add("link")
	}
	if begun, finished := r.ledger(".from"), r.ledger(".json"); begun > finished || finished > len(done) {
		add("record")
	}
	for _, e := range es {
		if e.Kind != "started" {
			continue
		}
		var placed, open, ended int
		for action, files := range outputs {
			switch {
			case action != e.Action && !strings.HasPrefix(action, e.Action+" "):
			case slices.Contains(done, action):
				ended++
			default:
				open++
				if slices.ContainsFunc(files, r.exists) {
					placed++
				}
			}
		}
		switch {
		case open == 0:
		case ended > 0:
			add("record")
		case placed > 0:
			add("rename")
		case e.Phase == "image":
			add("image")
		case e.Phase == "package":
			add("compress")
		case e.Phase == "compile" && !linking:
			add("compile")
		}
	}
	return in
}

// ledger counts the records of a kind.
func (r release) ledger(suffix string) int {
	names, _ := filepath.Glob(r.path("_output/.slipway/actions") + "/*" + suffix)
	return len(names)
}

// reached returns a condition: the run is in a phase.
func (r release) reached(p *process, phase string) func() bool {
	switch phase {
	case "compile":
		return p.says(`"kind":"started","action":"compile`)
	case "link":
		return p.linking
	case "image":
		return p.says(`"kind":"started","action":"image`)
	case "compress":
		return p.says(`"kind":"started","action":"package kubernetes-server`)
	case "rename":
		return func() bool { return r.exists(hostBin(serverBinaries[rand.IntN(len(serverBinaries))])) }
	default: // record
		before := -1
		return func() bool {
			if !r.exists(hostBin("kubectl")) {
				return false
			}
			if before < 0 {
				before = r.ledger(".from")
			}
			return r.ledger(".from") > before
		}
	}
}
