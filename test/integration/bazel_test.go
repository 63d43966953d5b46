//go:build integration && linux

package integration

import (
	"context"
	"net"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"slipway.build/pkg/mechanism/child/childtest"
	"slipway.build/test/reapi"
)

const bazelBinaries = "_output/bazel/bin"

// hello is a component that prints its version.
const hello = `// Command hello prints its version.
package main

import (
	"fmt"

	"k8s.io/component-base/version"
)

func main() { fmt.Println(version.Get()) }
`

// asReleased are the flags with which the Bazel road builds. With others, results have other names, and the cache has none.
var asReleased = []string{"--config=release", "--platforms=//build/bazel/platforms:linux_" + runtime.GOARCH}

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
		if soak {
			if server, err := remoteServer(); err == nil {
				tr.useCache(t, server.Address)
				// buildbox considers a result that is a folder with subfolders (Go's standard library) incomplete until it has made it
				// itself. Everything that depends on it would then be compiled again, so this comes first.
				executed.result = tr.bazel(t, append([]string{"build", "--remote_executor=grpc://" + server.Address, "--noremote_accept_cached",
					"--remote_download_outputs=all", smallComponent}, asReleased...)...).ok(t)
				executed.sum = tr.madeSum(t, smallComponent, asReleased...)
			}
		} else {
			tr.useCache(t, bazelsCache(t))
		}
		program := slipway(t)
		atEnd(func() {
			if pid, err := command(tr.dir, nil, program, "bazel", "--", "info", "server_pid").Output(); err == nil {
				spendServer("(Bazel)", strings.TrimSpace(string(pid)))
			}
			_ = command(tr.dir, nil, program, "clean").Run() // Bazel's folders are not in the tree
		})
	}
	return tr
}

// spendServer adds the processor time of a server, and of the processes that it has waited for.
func spendServer(name, pid string) {
	stat := readFile(filepath.Join("/proc", pid, "stat"))
	fields := strings.Fields(stat[strings.LastIndex(stat, ")")+1:]) // the third field of proc_pid_stat(5) is the first
	var ticks time.Duration
	for i := 14; i <= 17 && i-3 < len(fields); i++ { // utime, stime, cutime, cstime
		n, _ := strconv.ParseInt(fields[i-3], 10, 64)
		ticks += time.Duration(n)
	}
	const perSecond = 100 // on all that we know
	spendTime(name, ticks*time.Second/perSecond)
}

// useCache makes Bazel store its results in a remote cache, and take them from there.
func (tr tree) useCache(t *testing.T, address string) {
	t.Helper()
	tr.write(t, "user.bazelrc", "build --config=remote --remote_cache=grpc://"+address+"\n")
}

// bazelsCache starts a bazel-remote that is a cache until all tests have ended, and returns its address. What it holds is kept from run to
// run, as the Go cache is: a result is of certain inputs, and a compile of all components takes a quarter of an hour.
func bazelsCache(t *testing.T) string {
	t.Helper()
	caches, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir, address := filepath.Join(caches, "slipway", "bazels-cache"), freeAddress(t)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	lock, err := os.Create(filepath.Join(dir, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil { // another run has it
		if dir, err = os.MkdirTemp(workspace, "bazels-cache-"); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.RemoveAll(filepath.Join(dir, "http")); err != nil { // the socket of an earlier run, which was killed
		t.Fatal(err)
	}
	stop, err := runBazelRemote(dir, address)
	if err != nil {
		t.Fatal(err)
	}
	await(t, (&net.Dialer{}).DialContext, address, filepath.Join(dir, "log"))
	atEnd(func() {
		stop()
		_ = lock.Close() // and so the lock is gone
	})
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

// Both roads make the same bytes: all components for this platform, and the smallest for every other server platform and Windows. The soak
// test adds the client for all others.
func TestBazelMakesWhatTheLocalRoadMakes(t *testing.T) {
	needBazel(t)
	local, tr := baseline(t), bazelTree(t)
	host := "linux/" + runtime.GOARCH
	t.Run("all components", func(t *testing.T) {
		large(t, "all components but one by Bazel")
		tr.slipway(t, "build", "--road=bazel").ok(t)
		made, err := os.ReadDir(tr.path(bazelBinaries + "/" + host))
		if err != nil || len(made) < 12 { // as many components has Kubernetes
			t.Fatalf("Bazel made %v: %v", made, err)
		}
		if tr.exists(hostBin("kube-apiserver")) {
			t.Error("kube-apiserver was made by the local road, too")
		}
		for _, file := range made {
			sameBytes(t, local.path(hostBin(file.Name())), tr.path(bazelBinaries+"/"+host+"/"+file.Name()))
		}
		t.Run("no-op", func(t *testing.T) { tr.jsonRun(t, "build", "--road=bazel").didNothing(t) })
	})

	smallest := map[string]string{}
	for _, platform := range []string{"linux/amd64", "linux/arm64", "linux/s390x", "linux/ppc64le", "windows/amd64"} {
		smallest[platform] = "kube-log-runner"
	}
	if soak { // the client has 1,000 packages
		for _, platform := range []string{"linux/386", "linux/arm", "darwin/amd64", "darwin/arm64", "windows/386", "windows/arm64"} {
			smallest[platform] = "kubectl"
		}
	}
	for platform, name := range smallest {
		t.Run(platform, func(t *testing.T) {
			if platform != host {
				large(t, "other platforms by Bazel")
			}
			args := []string{"build", "--platform=" + platform, name}
			tr.slipway(t, append(args, "--road=bazel")...).ok(t)
			tr.slipway(t, args...).ok(t)
			file := platform + "/" + name
			if strings.HasPrefix(platform, "windows/") {
				file += ".exe"
			}
			sameBytes(t, tr.path("_output/local/bin/"+file), tr.path(bazelBinaries+"/"+file))
		})
	}
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

// Both roads make the same bytes of modules that patches change, that are overridden, and that folders replace; Bazel does so by
// MODULE.bazel, too.
func TestBazelMakesWhatPatchesChange(t *testing.T) {
	tr := bazelTree(t)
	t.Cleanup(func() {
		for _, args := range [][]string{{"checkout", "-q", "."}, {"clean", "-fdq"}} {
			_ = command(tr.dir, nil, "git", args...).Run()
		}
	})
	tr.override(t)
	const module, folder, name = "github.com/x448/float16", "forks/float16", "kube-log-runner"
	dir := strings.TrimSpace(run(t, tr.path("cmd"), nil, "go", "list", "-m", "-f", "{{.Dir}}", module).ok(t).stdout)
	if err := os.MkdirAll(tr.path(path.Dir(folder)), 0o755); err != nil {
		t.Fatal(err)
	}
	run(t, tr.dir, nil, "cp", "-r", "--no-preserve=mode", dir, folder).ok(t)
	tr.append(t, folder+"/float16.go", "\nfunc init() { println(\"a replaced module\") }\n")
	run(t, tr.path("cmd"), nil, "go", "mod", "edit", "-replace="+module+"=../"+folder).ok(t)
	tr.writePatch(t, loggerPatch, "staging/src/k8s.io/component-base/logs/kube-log-runner/kube-log-runner.go",
		"func main() {", "\tprintln(\"a patched logger\")")
	tr.make(t, "update").ok(t)

	tr.slipway(t, "build", name).ok(t)
	local := tr.path(hostBin(name))
	if got := run(t, tr.dir, nil, local, "--help").stderr; !strings.HasPrefix(got, "a replaced module\na patched module\na patched logger\n") {
		t.Errorf("it says %q", got)
	}
	tr.slipway(t, "build", "--road=bazel", name).ok(t)
	sameBytes(t, local, tr.path(bazelBinaries+"/linux/"+runtime.GOARCH+"/"+name))
	t.Run("MODULE.bazel", func(t *testing.T) {
		large(t, "a build by MODULE.bazel, which compiles the standard library once more: Bazel's cache has it in the next run")
		made := t.TempDir()
		args := append([]string{"bazel", "--deps=local-registry", "--output=" + made, "--", "build", smallComponent}, asReleased...)
		tr.slipway(t, args...).ok(t)
		sameBytes(t, local, filepath.Join(made, name))
	})
}

// A tree with nothing of Bazel's gets what it needs from slipway. Its binaries have the bytes of the local road, also of patched modules,
// and it shares a remote cache with trees that have all that is generated.
func TestBazelRoadInADistribution(t *testing.T) {
	shared := bazelTree(t)
	large(t, "a second tree that Bazel compiles in")
	shared.bazel(t, append([]string{"build", smallComponent}, asReleased...)...).ok(t)
	dist := clone(t)
	run(t, dist.dir, nil, "sh", "-c", `git ls-files -z |
		grep -zvE '^(cmd|images|release|patches|build/codegen|docs)/|^(LICENSE|README.md|.gitignore)$' | xargs -0 git rm -q -- '*BUILD.bazel'
		git -c user.name=A -c user.email=a@acme.example commit -qm "Only what a distribution has"`).ok(t)
	for _, name := range []string{"build/bazel", "MODULE.bazel", ".bazelversion", "cmd/kubectl/BUILD.bazel"} {
		if dist.exists(name) {
			t.Fatalf("it has %s", name)
		}
	}
	dist.write(t, "user.bazelrc", shared.read(t, "user.bazelrc"))
	t.Cleanup(func() { _ = command(dist.dir, nil, slipway(t), "clean").Run() })

	const name = "kube-log-runner"
	build := func() (file string) {
		t.Helper()
		dist.slipway(t, "build", name).ok(t)
		dist.slipway(t, "build", "--road=bazel", name).ok(t)
		file = dist.path(bazelBinaries + "/linux/" + runtime.GOARCH + "/" + name)
		sameBytes(t, dist.path(hostBin(name)), file)
		return file
	}
	build()
	dist.writePatch(t, loggerPatch, "staging/src/k8s.io/component-base/logs/kube-log-runner/kube-log-runner.go",
		"func main() {", "\tprintln(\"a patched logger\")")
	if got := run(t, dist.dir, nil, build(), "--help").stderr; !strings.HasPrefix(got, "a patched logger\n") {
		t.Errorf("it says %q", got)
	}
	if left := run(t, dist.dir, nil, "git", "status", "--porcelain").ok(t).stdout; left != "?? patches/\n" {
		t.Errorf("git sees\n%s", left)
	}
}

// Mistakes are reported before anything is made from them.
func TestBazelReportsMistakes(t *testing.T) {
	tr := bazelTree(t)
	tr.addHello(t)
	const main = "cmd/hello/main.go"
	build := func() result { return tr.slipway(t, "build", "hello", "--road=bazel") }
	t.Run("stale BUILD file", func(t *testing.T) {
		was := tr.read(t, main)
		defer tr.write(t, main, was)
		tr.edit(t, main, "import (", "import (\n\t_ \"k8s.io/apiserver/pkg/server\"\n")
		build().fails(t, 1, "cmd/hello/BUILD.bazel", "apiserver//pkg/server", "make update")
	})
	t.Run("file that no BUILD file has", func(t *testing.T) {
		tr.write(t, "cmd/hello/more.go", "package main\n\nfunc init() { println() }\n")
		defer tr.remove(t, "cmd/hello/more.go")
		build().fails(t, 1, "more.go", "make update")
	})
	t.Run("module that a folder replaces", func(t *testing.T) {
		const file = "cmd/go.mod"
		was := tr.read(t, file)
		defer tr.write(t, file, was)
		dir := strings.TrimSpace(run(t, tr.path("cmd"), nil, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/x448/float16").ok(t).stdout)
		tr.write(t, file, was+"\nreplace github.com/x448/float16 => "+dir+"\n")
		build().fails(t, 1, "build/bazel/generated/config.bzl", "make update")
	})
	t.Run("sum that does not match", func(t *testing.T) {
		const sums = "cmd/go.sum"
		was := tr.read(t, sums)
		defer tr.write(t, sums, was)
		line := regexp.MustCompile(`(?m)^k8s.io/component-base \S+ h1:\S+$`).FindString(was)
		tr.write(t, sums, strings.Replace(was, line, line[:strings.Index(line, "h1:")]+"h1:"+strings.Repeat("A", 43)+"=", 1))
		build().fails(t, 1, "k8s.io/component-base", "h1:AAAA")
	})
	t.Run("edited generated file", func(t *testing.T) {
		const config = "build/bazel/generated/config.bzl"
		was := tr.read(t, config)
		defer tr.write(t, config, was)
		tr.write(t, config, strings.Replace(was, "h1:", "h1:A", 1))
		build().fails(t, 1, config, "make update")
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
