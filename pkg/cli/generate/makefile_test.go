package generate

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/tree/catalog"
)

func TestEverySpellingOfAComponentHasATarget(t *testing.T) {
	t.Parallel()
	const own = "- {name: kubectl, package: ./kubectl, sets: [server, node, client]}"
	for _, spelling := range []string{
		"- {package: ./kubectl, name: kubectl, sets: [server, node, client]}",
		"- { \"name\": 'kubectl' ,\n    package: ./kubectl, sets: [server, node, client]}",
		"- name: kubectl\n  package: ./kubectl\n  sets: [server, node, client]",
		"-\n  sets:\n  - server\n  - node\n  - client\n  package: ./kubectl\n  name: \"kubectl\"",
	} {
		root := tree(t)
		want, err := makefile(root)
		if err != nil {
			t.Fatal(err)
		}
		replace(t, root, catalog.File, own, spelling)
		got, err := makefile(root)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" || !strings.Contains(string(got), " kubectl \\\n") {
			t.Errorf("%s\ngives other targets (-want +got):\n%s", spelling, diff)
		}
	}
}

func TestMakeHandsOverToMage(t *testing.T) {
	t.Parallel()
	root := frontDoor(t)
	for _, c := range []struct {
		args string
		want []string // mage's arguments
	}{
		{"", []string{"all"}},
		{"quick-release", []string{"quick-release"}},
		{"kubectl kubelet", []string{"component kubectl", "component kubelet"}},
		{"new-component", []string{"component new-component"}}, // not in COMPONENTS yet
		{"cmd", []string{"component cmd"}},                     // also the name of a folder
		{"-n bazel-release", []string{"bazel-release"}},
		{"go.mod Makefile", nil},
	} {
		out, err := runMake(root, strings.Fields(c.args)...)
		if err != nil {
			t.Errorf("make %s: %v: %s", c.args, err, out)
		}
		var got []string
		for line := range strings.Lines(out) {
			if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "mage got: "); ok {
				got = append(got, rest)
			}
		}
		if strings.Join(got, "; ") != strings.Join(c.want, "; ") {
			t.Errorf("make %s hands over %q, want %q: %s", c.args, got, c.want, out)
		}
	}
}

// Shell completion reads make's rules in this way.
func TestShellsCompleteTargets(t *testing.T) {
	t.Parallel()
	out, _ := runMake(frontDoor(t), "-npq", ".DEFAULT")
	for _, target := range []string{"kubectl", "e2e.test", "quick-release", "cluster-up"} {
		if !strings.Contains(out, "\n"+target+": ") {
			t.Errorf("make has no rule for %s", target)
		}
	}
	if strings.Contains(out, "mage got: ") {
		t.Errorf("completing runs mage: %s", out)
	}
}

// frontDoor returns a tree with this Makefile and a mage that prints its arguments.
func frontDoor(t *testing.T) (root string) {
	t.Helper()
	if _, err := exec.LookPath("make"); err != nil {
		if os.Getenv("SLIPWAY_CI") == "1" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	root = filepath.Join(t.TempDir(), "with spaces")
	for _, name := range []string{"Makefile", targetsFile, "go.mod", "go.sum"} {
		data, err := os.ReadFile(filepath.Join("..", "..", "..", filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		write(t, root, name, string(data))
	}
	write(t, root, "cmd/kubectl/main.go", "package main\n")
	mage := filepath.Join(root, "_output", ".slipway", "mage")
	write(t, root, "_output/.slipway/mage", "#!/bin/sh\necho \"mage got: $*\"\n")
	if err := os.Chmod(mage, 0o755); err != nil {
		t.Fatal(err)
	}
	return root
}

func runMake(root string, args ...string) (string, error) {
	cmd := exec.Command("make", args...)
	cmd.Dir = root
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "MAKE") && !strings.HasPrefix(kv, "MFLAGS") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestUnknownGoalIsExplained(t *testing.T) {
	t.Parallel()
	root := tree(t)
	write(t, root, "magefiles/more.go", "//go:build mage\n\npackage main\n\nfunc More() {}\n")
	c, err := catalog.Load(root)
	if err != nil {
		t.Fatal(err)
	}
	for goal, want := range map[string]string{
		"qick-release": "quick-release", "kubeclt": "kubectl", "more": "target more is not in build/targets.mk: run make update",
	} {
		_, err := c.Match(goal)
		if err = Goal(root, goal, err); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v for the goal %s, want one with %q", err, goal, want)
		}
	}
}
