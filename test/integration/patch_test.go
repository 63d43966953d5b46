//go:build integration

package integration

import (
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	schedulerPatch = "patches/0001-scheduler.patch" // of k8s.io/kubernetes
	loggerPatch    = "patches/0002-logger.patch"    // of a staging module
)

// writePatch makes a patch, as git format-patch does, that adds a line after the first one that begins with some text. Patches in folders
// are of the module that the folder is named for, others of Kubernetes.
func (tr tree) writePatch(t *testing.T, name, repositoryPath, after, line string) {
	t.Helper()
	module, file := "k8s.io/kubernetes", repositoryPath
	if dir := strings.TrimPrefix(path.Dir(name), "patches"); dir != "" {
		module = dir[1:]
	} else if rest, ok := strings.CutPrefix(repositoryPath, "staging/src/"); ok {
		parts := strings.SplitN(rest, "/", 3)
		module, file = parts[0]+"/"+parts[1], parts[2]
	}
	dir := run(t, tr.path("cmd"), nil, "go", "list", "-m", "-f", "{{.Dir}}", module).ok(t).stdout
	data, err := os.ReadFile(filepath.Join(strings.TrimSpace(dir), filepath.FromSlash(file)))
	if err != nil {
		t.Fatal(err)
	}
	upstream := tree{dir: t.TempDir()}
	put := func(text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(upstream.path(repositoryPath)), 0o755); err != nil {
			t.Fatal(err)
		}
		upstream.write(t, repositoryPath, text)
	}
	git := func(args ...string) string {
		t.Helper()
		// The patch is the same at any time.
		env := []string{"GIT_AUTHOR_DATE=2026-11-20T23:53:00Z", "GIT_COMMITTER_DATE=2026-11-20T23:53:00Z"}
		return run(t, upstream.dir, env, "git", append([]string{"-c", "user.name=A", "-c", "user.email=a@example.invalid"},
			args...)...).ok(t).stdout
	}
	lines := strings.SplitAfter(string(data), "\n")
	at := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, after) })
	if at < 0 {
		t.Fatalf("%s has no line %q", repositoryPath, after)
	}
	git("init", "-q")
	put(string(data))
	git("add", "-A")
	git("commit", "-q", "-m", "upstream")
	put(strings.Join(slices.Insert(lines, at+1, line+"\n"), ""))
	git("commit", "-q", "-a", "-m", "A patch")
	if err := os.MkdirAll(filepath.Dir(tr.path(name)), 0o755); err != nil {
		t.Fatal(err)
	}
	tr.write(t, name, git("format-patch", "--stdout", "-1"))
}

// stamped returns a clone with a version that does not change when its files do.
func stamped(t *testing.T) tree {
	t.Helper()
	tr := clone(t)
	return tr.with(tr.stampEnv(t)...)
}

// patch adds two patches to the tree.
func (tr tree) patch(t *testing.T) {
	t.Helper()
	tr.writePatch(t, schedulerPatch, "cmd/kube-scheduler/app/server.go", "func Run(ctx ", "\tprintln(\"a patched scheduler\")")
	tr.writePatch(t, loggerPatch, "staging/src/k8s.io/component-base/logs/kube-log-runner/kube-log-runner.go", "func main() {",
		"\tprintln(\"a patched logger\")")
}

// override raises a module that kube-log-runner links, and patches the new version.
func (tr tree) override(t *testing.T) {
	t.Helper()
	const module = "github.com/fxamacker/cbor/v2"
	tr.slipway(t, "override", module+"@v2.9.6", "--in", "cmd").ok(t)
	tr.writePatch(t, "patches/"+module+"/0001-linked.patch", "bytestring.go", ")", "\nfunc init() { println(\"a patched module\") }")
}

// Patches are applied, and cost no more than what depends on them.
func TestPatchesAreBuilt(t *testing.T) {
	cloneLane.join(t)
	scheduler, logger := hostBin("kube-scheduler"), hostBin("kube-log-runner")
	tr := stamped(t)
	tr.slipway(t, "build", "kube-scheduler", "kube-log-runner").ok(t)
	upstream := map[string]string{scheduler: tr.sum(t, scheduler), logger: tr.sum(t, logger)}

	tr.patch(t)
	es := tr.jsonRun(t, "build", "kube-scheduler", "kube-log-runner")
	var compiled []string // the names of packages have no spaces, unlike other messages
	for _, e := range es {
		if e.Kind == "progress" && strings.HasPrefix(e.By, "go build") && strings.Contains(e.Text, "/") && !strings.Contains(e.Text, " ") {
			compiled = append(compiled, e.Text)
		}
	}
	slices.Sort(compiled)
	compiled = slices.Compact(compiled)
	want := []string{
		"k8s.io/component-base/logs/kube-log-runner", "k8s.io/kubernetes/cmd/kube-scheduler/app", "slipway.build/cmd/kube-scheduler",
	}
	if len(compiled) > len(want) {
		t.Errorf("compiled %q, want %q at most: nothing else depends on the patches", compiled, want)
	}
	info := run(t, tr.dir, nil, "go", "version", "-m", scheduler).ok(t).stdout
	if !regexp.MustCompile(`=>\s+k8s\.io/kubernetes\s+v\S+-patched\.p` + tr.sum(t, schedulerPatch)[:12] +
		`\.c[0-9a-f]{12}\s+h1:\S+`).MatchString(info) {
		t.Errorf("go version -m does not name the patch and its sum:\n%s", info)
	}
	if got := run(t, tr.dir, nil, tr.path(logger), "--help").stderr; !strings.Contains(got, "a patched logger") {
		t.Errorf("kube-log-runner prints %q", got)
	}
	tr.jsonRun(t, "build", "kube-scheduler", "kube-log-runner").didNothing(t)
	sums := map[string]string{scheduler: tr.sum(t, scheduler), logger: tr.sum(t, logger)}

	// Another folder with the same patches.
	other := stamped(t)
	other.patch(t)
	other.slipway(t, "build", "kube-scheduler", "kube-log-runner").ok(t)
	for name, sum := range sums {
		if got := other.sum(t, name); got != sum {
			t.Errorf("%s is %s in one folder and %s in another", name, sum, got)
		}
	}

	// A patch that does not apply stops every command, and nothing changes.
	text := tr.read(t, schedulerPatch)
	tr.write(t, schedulerPatch, strings.Replace(text, "\n func Run(ctx ", "\n func Run(context ", 1))
	for _, args := range [][]string{{"build", "kubectl"}, {"release", "--quick", "--dry-run"}} {
		tr.slipway(t, args...).fails(t, 1, "patch "+schedulerPatch+" does not apply: cmd/kube-scheduler/app/server.go, hunk 1 of 1",
			"expected: func Run(context ", "there is: func Run(ctx ")
	}
	if tr.exists(hostBin("kubectl")) {
		t.Error("kubectl was compiled")
	}

	// Without patches, the bytes are those of before.
	tr.remove(t, "patches")
	tr.slipway(t, "build", "kube-scheduler", "kube-log-runner").ok(t)
	for name, sum := range sums {
		if got := tr.sum(t, name); got != upstream[name] || got == sum {
			t.Errorf("%s is %s without patches, want %s; with patches it is %s", name, got, upstream[name], sum)
		}
	}
}

// Of what a patch of one line changes in a large program, the function is named, and hardly any other.
func TestDifferenceThatAPatchMakesIsNamed(t *testing.T) {
	cloneLane.join(t)
	r, tr := baseline(t), stamped(t) // of the same version
	tr.writePatch(t, "patches/0001-kubelet.patch", "cmd/kubelet/app/server.go", "func Run(ctx ", "\tprintln(\"a patched kubelet\")")
	tr.slipway(t, "build", "kubelet").ok(t)
	out := tr.slipway(t, "diff", "--json", r.path(hostBin("kubelet")), tr.path(hostBin("kubelet"))).fails(t, 1)
	var got struct {
		Files []struct {
			Reasons []struct {
				Kind     string
				Examples []string
			}
		}
	}
	if err := json.Unmarshal([]byte(out.stdout), &got); err != nil || len(got.Files) != 1 {
		t.Fatalf("%v: %v", err, out)
	}
	var functions []string
	for _, reason := range got.Files[0].Reasons {
		if reason.Kind == "functions" {
			functions = append(functions, reason.Examples...)
		}
	}
	named := func(text string) bool { return strings.HasPrefix(text, "k8s.io/kubernetes/cmd/kubelet/app.Run: ") }
	if !slices.ContainsFunc(functions, named) || len(functions) > 10 {
		t.Errorf("it names %q", functions)
	}
}

// buildsPatchesInContainers requires that the container road, without network, makes the bytes of the local road of patched code.
func (tr tree) buildsPatchesInContainers(t *testing.T) {
	tr = tr.with(tr.stampEnv(t)...)
	tr.override(t)
	tr.patch(t)
	tr.slipway(t, "build", "kube-log-runner", "--road=local").ok(t)
	info := run(t, tr.dir, nil, "go", "version", "-m", hostBin("kube-log-runner")).ok(t).stdout
	if !regexp.MustCompile(`cbor/v2\s+v2\.9\.6\n\s+=>\s+github\.com/fxamacker/cbor/v2\s+v2\.9\.6-patched\.`).MatchString(info) {
		t.Errorf("go version -m does not name the override and its patch:\n%s", info)
	}
	byContainer := tr.with("ROAD=container")
	byContainer.slipway(t, "build", "kube-log-runner").ok(t)
	if got, want := tr.sum(t, dockerized+"/linux/"+hostArch+"/kube-log-runner"), tr.sum(t, hostBin("kube-log-runner")); got != want {
		t.Errorf("kube-log-runner is %s by the container road, %s by the local one", got, want)
	}
	byContainer.jsonRun(t, "build", "kube-log-runner").didNothing(t)
}
