//go:build integration

package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"slipway.build/test/proxy"
)

// The commands of docs/distribution.md before "One month" make a distribution with a target and a check of its own, in a folder with a
// space. Its slipway is the one of a checkout, and then, by a bump, a version of a module proxy.
func TestDistributionIsATreeOfItsOwn(t *testing.T) {
	lateLane.join(t)
	large(t, "a distribution's programs, which are linked once more")
	tr := cloneTo(t, filepath.Join(t.TempDir(), "with space", "slipway"))
	acme := tree{dir: filepath.Join(filepath.Dir(tr.dir), "acme"), env: []string{
		"GOFLAGS=-mod=mod", // which people may have set
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@acme.example", "GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@acme.example",
	}}
	put(t, []byte("go 1.26.0\n"), filepath.Join(filepath.Dir(tr.dir), "go.work")) // of the folder above
	text := tr.read(t, "docs/distribution.md")
	text, _, _ = strings.Cut(text, "\n## One month\n")
	script := "set -euo pipefail\n"
	for _, m := range regexp.MustCompile("(?s)```sh\n(.*?)```\n").FindAllStringSubmatch(text, -1) {
		script += m[1]
	}
	got := run(t, tr.dir, acme.env, "bash", "-c", script).ok(t)
	said := strings.Join(strings.Fields(got.stdout+got.stderr), " ")
	for _, want := range []string{
		"Acme is a distribution of Kubernetes", "kubernetes-server-linux-", "the tree has no LICENSE, docs/, so the release has none",
		"2 packages, ", ", 0 failed", "announce tells the world about a release.",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("no %q in\n%v", want, got)
		}
	}
	if got := acme.make(t, "announce").ok(t); got.stdout != "It is there.\n" {
		t.Errorf("make announce says %v", got)
	}
	acme.slipway(t, "verify").ok(t)
	acme.make(t, "verify").ok(t)
	acme.pipelineBoots(t, tr.path("_output/bin/slipway"))
	run(t, acme.dir, acme.env, "git", "add", "--all").ok(t)
	run(t, acme.dir, acme.env, "git", "commit", "-qm", "A target and a check").ok(t)

	// A version, from a proxy.
	folder := t.TempDir()
	src, err := sources()
	if err != nil {
		t.Fatal(err)
	}
	version := fmt.Sprintf("v0.9.0-%d", time.Now().Unix()) // the user's module cache keeps it
	if err := proxy.Write(folder, src.dir, version); err != nil {
		t.Fatal(err)
	}
	known := strings.TrimSpace(run(t, acme.dir, nil, "go", "env", "GOPROXY").ok(t).stdout)
	of := acme.with("GOPROXY=file://"+folder+","+known, "GONOSUMDB=slipway.build")
	of.slipway(t, "bump", "slipway", version).ok(t)
	if mod := acme.read(t, "go.mod"); strings.Contains(mod, "replace ") || !strings.Contains(mod, "\nrequire slipway.build "+version+"\n") {
		t.Errorf("after the bump, go.mod is\n%s", mod)
	}
	run(t, acme.dir, acme.env, "git", "commit", "-qam", "slipway "+version).ok(t)
	of.make(t, "quick-release").ok(t)
	made := acme.read(t, "_output/release-tars/release.json")
	if !strings.Contains(made, `"slipway.build"`) || !strings.Contains(made, `"`+version+`"`) {
		t.Errorf("release.json does not name slipway %s", version)
	}
	offline := acme.with("GOPROXY=off")
	if got := offline.make(t, "quick-release").ok(t); !strings.Contains(got.stdout+got.stderr, " unchanged in ") {
		t.Errorf("without a network, the same again: %v", got)
	}

	// A Go on PATH that is too old fetches the right one.
	old := acme.with("GOTOOLCHAIN=go1.21.13")
	root := strings.TrimSpace(run(t, acme.dir, old.env, "go", "env", "GOROOT").ok(t).stdout)
	old = acme.with("GOTOOLCHAIN=auto", "PATH="+filepath.Join(root, "bin")+string(filepath.ListSeparator)+os.Getenv("PATH"))
	put(t, []byte("//go:build mage\n\npackage main\n\n// Hi greets.\nfunc Hi() { println(1) }\n"), acme.path("magefiles/hi.go"))
	old.make(t, "update").ok(t)
	if got := old.make(t, "hi").ok(t); got.stderr != "1\n" {
		t.Errorf("with %s, make hi says %v", root, got)
	}
}

// pipelineBoots runs the steps of a pipeline that boot a control plane. The tree's own check needs nodes, so it is skipped.
func (tr tree) pipelineBoots(t *testing.T, slipway string) {
	t.Helper()
	with := tr.dir + "-with-pipelines"
	run(t, tr.dir, tr.env, slipway, "init", with, "--module", "acme.example/kubernetes", "--ci", "github").ok(t)
	workflow := readFile(filepath.Join(with, ".github/workflows/pull-request.yml"))
	for _, step := range []string{"compile slipway", "boot its control plane", "check it", "remove it"} {
		_, after, _ := strings.Cut(workflow, "name: "+step+"\n")
		_, line, _ := strings.Cut(after, "run: ")
		line, _, ok := strings.Cut(line, "\n")
		if !ok {
			t.Fatalf("the pipeline has no step to %s", step)
		}
		got := run(t, tr.dir, tr.env, "bash", "-e", "-c", line).ok(t)
		if step == "check it" && !regexp.MustCompile(`checks in .*: \d\d passed, 0 failed, `).MatchString(got.stdout) {
			t.Errorf("the control plane is not checked: %v", got)
		}
	}
}

// A fork of slipway has another module path, in all its files, and its distributions name it.
func TestForkHasAPathOfItsOwn(t *testing.T) {
	rare(t, "the toolchain is compiled under another name")
	tr := clone(t)
	run(t, tr.dir, nil, "bash", "-c", `git grep -lIF slipway.build | xargs sed -i 's,slipway\.build,git.fork.example/kit,g'`).ok(t)
	tr.make(t, "update").ok(t)
	run(t, tr.dir, nil, "git", "-c", "user.name=a", "-c", "user.email=a@b.example", "commit", "-qam", "Another path").ok(t)
	tr.make(t, "slipway").ok(t)
	acme := tree{dir: filepath.Join(t.TempDir(), "acme")}
	run(t, tr.dir, nil, tr.path("_output/bin/slipway"), "init", acme.dir, "--module", "acme.example/kubernetes").ok(t)
	mod := acme.read(t, "go.mod")
	if !strings.Contains(mod, "\nrequire git.fork.example/kit v0.0.0\n") || strings.Contains(mod, "slipway.build") {
		t.Errorf("a distribution's go.mod is\n%s", mod)
	}
	acme.make(t, "kube-log-runner").ok(t)
	acme.make(t, "verify", "WHAT=generated-files locks").ok(t)
}
