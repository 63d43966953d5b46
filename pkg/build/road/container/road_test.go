package container

import (
	"slices"
	"strings"
	"testing"
	"time"

	"slipway.build/pkg/build/road"
	"slipway.build/pkg/build/road/local"
	"slipway.build/pkg/build/toolchain"
	"slipway.build/pkg/mechanism/transfer"
	"slipway.build/pkg/tree/catalog"
)

// silent is a report to nobody.
type silent struct{}

func (silent) By(string)                     {}
func (silent) Progress(int64, int64, string) {}
func (silent) Output(string)                 {}
func (silent) Step(string, time.Duration)    {}
func (silent) Memory(int64)                  {}

var compilation = road.Compilation{Root: "/src/tree", Platform: catalog.Platform{OS: "windows", Arch: "amd64"}, Tags: []string{"selinux"}}

func TestRoadsNeverTakeEachOthersBinaries(t *testing.T) {
	t.Parallel()
	pin := toolchain.Pin{Version: "go1.26.8"}
	ours, theirs := (&Road{Pin: pin}).Recipe(compilation), (&local.Road{Pin: pin}).Recipe(compilation)
	if slices.Equal(ours, theirs) {
		t.Errorf("both have the recipe %q", ours)
	}
	// But for its name, what decides the bytes is the same.
	if !slices.Equal(ours[1:], theirs[1:]) {
		t.Errorf("recipes %q and %q", ours, theirs)
	}
}

func TestRecipesNameNoPathsOfThisMachine(t *testing.T) {
	t.Parallel()
	c := compilation
	c.Options.Debug = true
	for _, part := range (&Road{Root: "/src/tree"}).Recipe(c) {
		if strings.Contains(part, "/src/tree") {
			t.Errorf("%q", part)
		}
	}
}

func TestDebugBuildsStandApart(t *testing.T) {
	t.Parallel()
	c := compilation
	if got := outFolder(c); got != "/out/windows-amd64" {
		t.Error(got)
	}
	c.Options.Debug = true
	if got := outFolder(c); got != "/out/windows-amd64-debug" {
		t.Error(got)
	}
}

func TestEnvironmentLeavesTheUserHisChoiceOfCgo(t *testing.T) {
	t.Parallel()
	env := environment("-v")
	for _, want := range []string{"GOPROXY=file:///modules", "GOENV=off", "GOFLAGS=-v", "GOAMD64=v1"} {
		if !slices.Contains(env, want) {
			t.Errorf("%s is not in %q", want, env)
		}
	}
	if slices.ContainsFunc(env, func(kv string) bool { return strings.HasPrefix(kv, "CGO_ENABLED=") }) {
		t.Error("CGO_ENABLED is set")
	}
}

func TestWhatWasSentIsSaid(t *testing.T) {
	t.Parallel()
	for want, stats := range map[string]transfer.Stats{
		"sources are up to date":                 {Sent: 1000},
		"sent sources: 2 files, 1.5kB":           {Files: 2, Sent: 1500},
		"sent sources: 0 files, 120B, 3 deleted": {Deleted: 3, Sent: 120},
	} {
		if got := sent("sources", stats); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
