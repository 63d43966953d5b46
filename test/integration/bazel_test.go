//go:build integration && linux

package integration

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"

	"slipway.build/pkg/mechanism/child/childtest"
	"slipway.build/test/reapi"
)

const bazelBinaries = "_output/bazel/bin"

// bazelComponents are built by Bazel here: in CI one that the test adds to the tree, since the rules are the same for each, and the
// smallest of Kubernetes' components in cmd/ has 900 packages.
var bazelComponents = []string{"hello"}

func init() {
	if soak {
		bazelComponents = append(bazelComponents, "kubectl", "kube-scheduler")
	}
}

// hello is a component that prints its version.
const hello = `// Command hello prints its version.
package main

import (
	"fmt"

	"k8s.io/component-base/version"
)

func main() { fmt.Println(version.Get()) }
`

const smallComponent = "//cmd:kube-log-runner"

// executed is the remote execution that made the smallest component, and its SHA-256. Only the soak test has it: the file system in
// which buildbox lets an action run is slow.
var executed struct {
	result
	sum string
}

// bazelTree returns the clone in which Bazel compiles. All tests share it, because the first compile takes minutes. Its results go into
// a remote cache: bazel-remote; in the soak test buildbox-casd, which also executes actions.
func bazelTree(t *testing.T) tree {
	t.Helper()
	needBazel(t)
	tr := tree{dir: filepath.Join(workspace, "bazel")}
	if !tr.exists(".bazelrc") {
		tr = cloneTo(t, tr.dir)
		tr.addHello(t)
		if soak {
			if server, err := remoteServer(); err == nil {
				tr.useCache(t, server.Address)
				// buildbox considers a result that is a folder with subfolders (Go's standard library) incomplete until it has made it
				// itself. Everything that depends on it would then be compiled again, so this comes first.
				executed.result = tr.bazel(t, "build", "--remote_executor=grpc://"+server.Address, "--noremote_accept_cached",
					"--remote_download_outputs=all", smallComponent).ok(t)
				executed.sum = tr.madeSum(t, smallComponent)
			}
		} else {
			tr.useCache(t, bazelsCache(t))
		}
		program := slipway(t)
		atEnd(func() { _ = command(tr.dir, nil, program, "clean").Run() }) // Bazel's folders are not in the tree
	}
	return tr
}

// useCache makes Bazel store its results in a remote cache, and take them from there.
func (tr tree) useCache(t *testing.T, address string) {
	t.Helper()
	tr.write(t, "user.bazelrc", "build --config=remote --remote_cache=grpc://"+address+"\n")
}

// bazelsCache starts a bazel-remote that is a cache until all tests have ended, and returns its address.
func bazelsCache(t *testing.T) string {
	t.Helper()
	dir, address := filepath.Join(workspace, "bazels-cache"), freeAddress(t)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	stop, err := runBazelRemote(dir, address)
	if err != nil {
		t.Fatal(err)
	}
	atEnd(stop)
	return address
}

// addHello adds a component as docs/distribution.md says.
func (tr tree) addHello(t *testing.T) {
	t.Helper()
	if err := os.Mkdir(tr.path("cmd/hello"), 0o755); err != nil {
		t.Fatal(err)
	}
	tr.write(t, "cmd/hello/main.go", hello)
	tr.edit(t, "release/release.yaml", "\nbinaries:\n", "\nbinaries:\n- {name: hello, package: ./hello, sets: [server, client]}\n")
	tr.make(t, "update").ok(t)
	for _, args := range [][]string{{"add", "-A"}, {"-c", "user.name=A", "-c", "user.email=a@acme.example", "commit", "-qm", "Add hello"}} {
		run(t, tr.dir, nil, "git", args...).ok(t)
	}
}

// remoteServer starts a server that is a cache and executes actions.
var remoteServer = sync.OnceValues(func() (*reapi.Server, error) {
	server, err := reapi.Start(context.Background(), filepath.Join(workspace, "reapi"))
	if err == nil {
		atEnd(server.Stop)
	}
	return server, err
})

// bazel runs Bazel in the tree.
func (tr tree) bazel(t *testing.T, args ...string) result {
	t.Helper()
	return tr.slipway(t, append([]string{"bazel", "--"}, args...)...)
}

// Both roads make the same bytes.
func TestBazelMakesWhatTheLocalRoadMakes(t *testing.T) {
	tr := bazelTree(t)
	tr.slipway(t, append([]string{"build", "--road=bazel"}, bazelComponents...)...).ok(t)
	for _, name := range bazelComponents {
		if tr.exists(hostBin(name)) {
			t.Errorf("%s was made by the local road, too", name)
		}
	}
	tr.slipway(t, append([]string{"build"}, bazelComponents...)...).ok(t)
	for _, name := range bazelComponents {
		ours, theirs := tr.path(hostBin(name)), tr.path(bazelBinaries+"/linux/"+runtime.GOARCH+"/"+name)
		args := []string{"--version"}
		if name == "kubectl" {
			args = []string{"version", "--client"}
		}
		want, got := run(t, tr.dir, nil, ours, args...).ok(t).stdout, run(t, tr.dir, nil, theirs, args...).ok(t).stdout
		if got != want || got == "" {
			t.Errorf("%s prints %q by Bazel and %q by the local road", name, got, want)
		}
		sameBytes(t, ours, theirs)
	}

	t.Run("every component has what it imports", func(t *testing.T) {
		if !soak {
			t.Skip("the repositories of 300 modules take minutes: make soak")
		}
		tr.bazel(t, "build", "--nobuild", "//cmd/...").ok(t)
	})
	t.Run("no-op", func(t *testing.T) {
		tr.jsonRun(t, append([]string{"build", "--road=bazel"}, bazelComponents...)...).didNothing(t)
	})
	t.Run("every component, and other platforms", func(t *testing.T) {
		if !soak {
			t.Skip("other standard libraries, and 3,000 packages, take minutes: make soak")
		}
		for _, platform := range []string{"linux/amd64", "linux/arm64", "linux/s390x", "linux/ppc64le", "windows/amd64"} {
			args := []string{"build", "--platform=" + platform, "kube-log-runner"}
			if platform == "linux/"+runtime.GOARCH {
				args = args[:2] // all
			}
			tr.slipway(t, append(args, "--road=bazel")...).ok(t)
			tr.slipway(t, args...).ok(t)
			made, err := os.ReadDir(tr.path(bazelBinaries + "/" + platform))
			if err != nil || len(made) == 0 {
				t.Fatalf("nothing for %s: %v", platform, err)
			}
			for _, file := range made {
				sameBytes(t, tr.path("_output/local/bin/"+platform+"/"+file.Name()), tr.path(bazelBinaries+"/"+platform+"/"+file.Name()))
			}
		}
	})
}

// sameBytes compares two files.
func sameBytes(t *testing.T, ours, theirs string) {
	t.Helper()
	want, err := sha256File(ours)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := sha256File(theirs); err != nil || got != want {
		diff := run(t, ".", nil, slipway(t), "diff", ours, theirs)
		t.Errorf("%s is not %s: %v\n%s", theirs, ours, err, diff.stdout)
	}
}

// Mistakes are reported before anything is made from them.
func TestBazelReportsMistakes(t *testing.T) {
	tr := bazelTree(t)
	const main = "cmd/hello/main.go"
	build := func() result { return tr.slipway(t, "build", "hello", "--road=bazel") }
	t.Run("stale BUILD file", func(t *testing.T) {
		was := tr.read(t, main)
		defer tr.write(t, main, was)
		tr.edit(t, main, "import (", "import (\n\t_ \"k8s.io/apiserver/pkg/server\"\n")
		build().fails(t, 1, "k8s.io/apiserver/pkg/server")
	})
	t.Run("sum that does not match", func(t *testing.T) {
		const sums = "cmd/go.sum"
		was := tr.read(t, sums)
		defer tr.write(t, sums, was)
		line := regexp.MustCompile(`(?m)^k8s.io/component-base \S+ h1:\S+$`).FindString(was)
		tr.write(t, sums, strings.Replace(was, line, line[:strings.Index(line, "h1:")]+"h1:"+strings.Repeat("A", 43)+"=", 1))
		build().fails(t, 1, "k8s.io/component-base", "cmd/go.sum has h1:AAAA")
	})
	t.Run("module of another version", func(t *testing.T) {
		const config, module, other = "build/bazel/generated/config.bzl", "github.com/fxamacker/cbor/v2", "v2.9.2"
		was := tr.read(t, config)
		defer tr.write(t, config, was)
		var found struct{ Sum string }
		out := run(t, t.TempDir(), []string{"GOFLAGS=-mod=mod"}, "go", "mod", "download", "-json", module+"@"+other).ok(t).stdout
		if err := json.Unmarshal([]byte(out), &found); err != nil {
			t.Fatal(err)
		}
		line := regexp.MustCompile(`(?m)^ *"` + module + `": struct\(.*$`).FindString(was)
		changed := regexp.MustCompile(`v2\.\d+\.\d+`).ReplaceAllString(line, other)
		changed = regexp.MustCompile(`h1:[^"]+`).ReplaceAllLiteralString(changed, found.Sum)
		tr.write(t, config, strings.Replace(was, line, changed, 1))
		tr.slipway(t, "build", "kube-log-runner", "--road=bazel").fails(t, 1, module+" "+other, "make update")
	})
	t.Run("test set", func(t *testing.T) {
		tr.slipway(t, "build", "e2e.test", "--road=bazel").fails(t, 2, "e2e.test", "another road")
	})
	t.Run("options of other roads", func(t *testing.T) {
		tr.with("DBG=1").slipway(t, "build", "kubectl", "--road=bazel").fails(t, 2, "DBG=1")
	})
	t.Run("Bazel of another version", func(t *testing.T) {
		bin := t.TempDir()
		childtest.Script(t, filepath.Join(bin, "bazel"), "#!/bin/sh\necho bazel 6.0.0\n")
		got := tr.with("PATH="+bin+":"+os.Getenv("PATH"), "KUBE_VERBOSE=1").slipway(t, "bazel", "--", "info", "release").ok(t)
		if !strings.Contains(got.stderr, "6.0.0, and .bazelversion pins") {
			t.Errorf("it does not say why that Bazel was not taken: %v", got)
		}
	})
	build().ok(t)
}
