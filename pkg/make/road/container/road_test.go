package container

import (
	"slices"
	"strings"
	"testing"

	"slipway.build/pkg/make/kubecross"
	"slipway.build/pkg/make/road"
	"slipway.build/pkg/make/road/local"
	"slipway.build/pkg/make/toolchain"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/recipe/recipetest"
	"slipway.build/pkg/mechanism/transfer"
	"slipway.build/pkg/tree/catalog"
)

// silent is a Report that ignores everything.
func silent(action.Event) {}

var spec = road.Spec{Platform: catalog.Platform{OS: "windows", Arch: "amd64"}, Tags: []string{"selinux"}}

func TestRoadsShareBinaries(t *testing.T) {
	t.Parallel()
	pin, bin := toolchain.Pin{Version: "go1.26.8"}, road.Binary{Package: "./kubectl"}
	ours, theirs := (&Road{Pin: pin}).Recipe(spec, bin), (&local.Road{Pin: pin}).Recipe(spec, bin)
	if !slices.Equal(ours, theirs) {
		t.Errorf("recipes %q and %q", ours, theirs)
	}
}

func TestRecipesNameNoPathsOfThisMachine(t *testing.T) {
	t.Parallel()
	debug := spec
	debug.Options.Debug = true
	for _, part := range (&Road{Root: "/src/tree"}).Recipe(debug, road.Binary{}) {
		if strings.Contains(part, "/src/tree") {
			t.Errorf("%q", part)
		}
	}
}

func TestDebugBuildsHaveTheirOwnFolder(t *testing.T) {
	t.Parallel()
	c := spec
	if got := outFolder(c); got != "/out/windows-amd64" {
		t.Error(got)
	}
	c.Options.Debug = true
	if got := outFolder(c); got != "/out/windows-amd64-debug" {
		t.Error(got)
	}
}

func TestEnvironmentOfUserCommandsLeavesCgoToThem(t *testing.T) {
	t.Parallel()
	env := environment("-v", "/somewhere")
	for _, want := range []string{"GOPROXY=file:///modules", "GOCACHE=/somewhere", "GOENV=off", "GOFLAGS=-v", "GOAMD64=v1"} {
		if !slices.Contains(env, want) {
			t.Errorf("%s is not in %q", want, env)
		}
	}
	if slices.ContainsFunc(env, func(kv string) bool { return strings.HasPrefix(kv, "CGO_ENABLED=") }) {
		t.Error("CGO_ENABLED is set")
	}
}

func TestCryptographicModuleIsSetOnce(t *testing.T) {
	t.Parallel()
	for fips, want := range map[string]string{"": "GOFIPS140=off", "v1.0.0": "GOFIPS140=v1.0.0"} {
		s := spec
		s.Options.FIPS = fips
		var got []string
		for _, kv := range buildContainer("slipway/kube-cross:1", s, ownPlace(s)).Env {
			if strings.HasPrefix(kv, "GOFIPS140=") {
				got = append(got, kv)
			}
		}
		if !slices.Equal(got, []string{want}) {
			t.Errorf("%q, want %s", got, want)
		}
	}
}

func TestTransfersAreReported(t *testing.T) {
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

func TestRecipeHoldsEveryField(t *testing.T) {
	t.Parallel()
	type input struct {
		Spec   road.Spec
		Binary road.Binary
	}
	recipetest.EachFieldOf(t, input{}, func(in input) []string { return (&Road{}).Recipe(in.Spec, in.Binary) })
}

func TestCommandsAreThoseOfACompile(t *testing.T) {
	t.Parallel()
	got := (&Road{Root: "/src/tree", Image: kubecross.Image{Dir: t.TempDir()}}).Commands(road.Compilation{
		Spec:    road.Spec{Module: "cmd", Platform: catalog.Platform{OS: "linux", Arch: "s390x"}},
		Targets: []road.Target{{Binary: road.Binary{Package: "./kubectl"}, Output: "/src/tree/_output/dockerized/bin/linux/s390x/kubectl"}},
	})
	for i, want := range [][]string{
		{`cd "$(go env GOMODCACHE)/cache/download" && rsync `, " ./ rsync://slipway@127.0.0.1:873/modules/"},
		{"cd /src/tree && rsync ", " --checksum --delete ", " ./ rsync://slipway@127.0.0.1:873/tree/"},
		{"docker run --rm ", " --network=none ", "-tree,target=/tree,readonly ", " --env=GOARCH=s390x ", " --workdir=/tree/cmd ",
			" slipway/kube-cross build -v ", " -o /out/linux-s390x/bin/ ./kubectl"},
		{"cd /src/tree/_output/dockerized/bin/linux/s390x && rsync ", " rsync://slipway@127.0.0.1:873/out/ ./"},
	} {
		for _, part := range want {
			if len(got) != 4 || !strings.Contains(got[i], part) {
				t.Fatalf("%q is not in command %d of %q", part, i, got)
			}
		}
	}
}

func TestMissingRsyncIsReportedBeforeAnythingElse(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("DOCKER_HOST", "unix://"+t.TempDir()+"/none.sock")
	if err := (&Road{Root: t.TempDir()}).Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "rsync is not in PATH") {
		t.Errorf("error %v", err)
	}
}
