//go:build integration

package integration

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// workspace is the folder of everything that tests make. It is below /tmp or $TMPDIR, outside of any git work tree.
var workspace string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "slipway-integration-")
	if err == nil {
		workspace, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	flag.Parse()
	if err := flag.Set("test.parallel", "1000"); err != nil { // lanes decide how many run at a time
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	for _, do := range endings.functions {
		do()
	}
	printSpent()
	_ = os.RemoveAll(workspace)
	os.Exit(code)
}

// endings has the functions of atEnd.
var endings struct {
	mu        sync.Mutex
	functions []func()
}

// atEnd makes a function run after all tests.
func atEnd(do func()) {
	endings.mu.Lock()
	defer endings.mu.Unlock()
	endings.functions = append(endings.functions, do)
}

// A tree is a folder with sources, in which commands run.
type tree struct {
	dir string
	env []string // added to the process's own
}

// with returns the tree with more environment for the commands that run in it.
func (tr tree) with(env ...string) tree {
	tr.env = append(tr.env[:len(tr.env):len(tr.env)], env...)
	return tr
}

func (tr tree) path(name string) string { return filepath.Join(tr.dir, filepath.FromSlash(name)) }

// make runs make in the tree.
func (tr tree) make(t *testing.T, args ...string) result {
	t.Helper()
	return run(t, tr.dir, tr.env, "make", args...)
}

// slipway runs the slipway command in the tree.
func (tr tree) slipway(t *testing.T, args ...string) result {
	t.Helper()
	return run(t, tr.dir, tr.env, slipway(t), args...)
}

// edit replaces a text in a file.
func (tr tree) edit(t *testing.T, name, from, to string) {
	t.Helper()
	text := tr.read(t, name)
	if !strings.Contains(text, from) {
		t.Fatalf("%s does not contain %q", name, from)
	}
	tr.write(t, name, strings.Replace(text, from, to, 1))
}

// append adds text to a file for the rest of the test.
func (tr tree) append(t *testing.T, name, text string) {
	t.Helper()
	before := tr.read(t, name)
	t.Cleanup(func() { tr.write(t, name, before) })
	tr.write(t, name, before+text)
}

func (tr tree) read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(tr.path(name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func (tr tree) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(tr.path(name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (tr tree) remove(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := os.RemoveAll(tr.path(name)); err != nil {
			t.Fatal(err)
		}
	}
}

func (tr tree) exists(name string) bool {
	_, err := os.Lstat(tr.path(name))
	return err == nil
}

// cleanOutput removes everything that was made, except the compiled mage targets.
func (tr tree) cleanOutput(t *testing.T) {
	t.Helper()
	for _, dir := range []string{"_output", "_output/.slipway"} {
		entries, err := os.ReadDir(tr.path(dir))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.Name() != ".slipway" && e.Name() != "mage" {
				tr.remove(t, dir+"/"+e.Name())
			}
		}
	}
}

// identity is the author of commits.
const identity = "slipway <slipway@example.invalid>"

// sources returns a clean clone of the repository as it is in the work tree: changes that are not committed there are committed here,
// at the time of the last commit, so that every run over the same sources has the same commit. Like the other shared values, it is
// made at first use.
var sources = sync.OnceValues(func() (tree, error) {
	top, err := command("", nil, "git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		return tree{}, fmt.Errorf("the integration tests need the git repository: %w", err)
	}
	from, to := strings.TrimSpace(string(top)), filepath.Join(workspace, "sources")
	script := `set -e
		git clone -q "$from" "$to"
		cd "$to"
		git ls-files -z | xargs -0 rm -f
		(cd "$from" && git ls-files -z --cached --others --exclude-standard |
			while IFS= read -r -d '' name; do [ ! -L "$name" ] && [ ! -e "$name" ] || printf '%s\0' "$name"; done |
			tar -c --null --no-recursion -T -) | tar -x
		git add -A
		git diff --quiet --cached || git commit -q -m "What is not committed"`
	date, err := command(from, nil, "git", "log", "-1", "--format=%cI").Output()
	if err != nil {
		return tree{}, err
	}
	name, mail, _ := strings.Cut(strings.TrimSuffix(identity, ">"), " <")
	when := strings.TrimSpace(string(date))
	c := command("", []string{
		"from=" + from, "to=" + to,
		"GIT_AUTHOR_NAME=" + name, "GIT_AUTHOR_EMAIL=" + mail, "GIT_AUTHOR_DATE=" + when,
		"GIT_COMMITTER_NAME=" + name, "GIT_COMMITTER_EMAIL=" + mail, "GIT_COMMITTER_DATE=" + when,
	}, "bash", "-c", script)
	if out, err := c.CombinedOutput(); err != nil {
		return tree{}, fmt.Errorf("clone %s: %w\n%s", from, err, out)
	}
	return tree{dir: to}, nil
})

// slipway returns the path of the slipway command, compiled from the shared sources.
func slipway(t *testing.T) string {
	t.Helper()
	name, err := slipwayBinary()
	if err != nil {
		t.Fatal(err)
	}
	return name
}

var slipwayBinary = sync.OnceValues(func() (string, error) {
	src, err := sources()
	if err != nil {
		return "", err
	}
	name := filepath.Join(workspace, "slipway")
	return name, made("slipway", command(src.dir, likeRelease, "go", "build", "-o", name, "."))
})

// clone makes a new clone of the shared sources, without any _output.
func clone(t *testing.T, flags ...string) tree {
	t.Helper()
	treeLane.join(t)
	return cloneTo(t, filepath.Join(t.TempDir(), "clone"), flags...)
}

func cloneTo(t *testing.T, dir string, flags ...string) tree {
	t.Helper()
	src, err := sources()
	if err != nil {
		t.Fatal(err)
	}
	args := append([]string{"clone", "-q"}, flags...)
	run(t, workspace, nil, "git", append(args, "file://"+src.dir, dir)...).ok(t)
	return tree{dir: dir}
}

// A release is the result of make quick-release in a tree.
type release struct {
	tree
	sums    string            // SHA256SUMS
	files   map[string]string // SHA-256 of every file in _output except state, by path
	version string            // printed by slipway version
}

const quick = "quick-release"

// baseline returns the release that all tests compare with. Tests of treeLane, which a test joins by this call unless it has joined
// another, get a copy that they may change, if they make the same release again in the end; all others must not change it.
func baseline(t *testing.T) release {
	t.Helper()
	treeLane.join(t)
	get := sharedRelease
	if joined(t) == &treeLane {
		get = ownRelease
	}
	r, err := get()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// ownRelease returns treeLane's copy of the shared release.
var ownRelease = sync.OnceValues(func() (release, error) {
	r, err := sharedRelease()
	if err != nil {
		return release{}, err
	}
	from := r.dir
	r.dir = filepath.Join(workspace, "own-release")
	return r, made("a copy of the release", command("", nil, "cp", "-a", "--reflink=auto", from, r.dir))
})

var sharedRelease = sync.OnceValues(func() (release, error) {
	src, err := sources()
	if err != nil {
		return release{}, err
	}
	if err := made("the release", command(src.dir, nil, "make", quick)); err != nil {
		return release{}, err
	}
	r := release{tree: src}
	if r.files, err = filesOf(src); err != nil {
		return release{}, err
	}
	sums, err := os.ReadFile(src.path(tars + "/SHA256SUMS"))
	if err != nil {
		return release{}, err
	}
	r.sums = string(sums)
	bin, err := slipwayBinary()
	if err != nil {
		return release{}, err
	}
	version, err := command(src.dir, nil, bin, "version").Output()
	r.version = strings.TrimSpace(string(version))
	return r, err
})

const (
	tars      = "_output/release-tars"
	images    = "_output/release-images"
	layoutDir = images + "/oci"
	binaries  = "_output/local/bin"
)

// filesOf returns the SHA-256 of every file that was made, by path, except the toolchain's own state, and lists of packages: these name
// folders of their tree, and nothing in a release depends on that.
func filesOf(tr tree) (map[string]string, error) {
	sums := map[string]string{}
	err := filepath.WalkDir(tr.path("_output"), func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(tr.dir, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		switch {
		case rel == "_output/.slipway" || rel == "_output/release-stage/packages":
			return fs.SkipDir
		case d.IsDir() || rel == "_output/timeline.svg":
			return nil
		case d.Type() == fs.ModeSymlink:
			sums[rel], err = os.Readlink(name)
			return err
		}
		sums[rel], err = sha256File(name)
		return err
	})
	return sums, err
}

// sameRelease requires that the release in a tree is the shared one: the same checksums of tarballs, the same release.json with
// everything that it consists of and was made from, and the same index of the images' layout.
func (r release) sameRelease(t *testing.T, other tree) {
	t.Helper()
	if got := other.read(t, tars+"/SHA256SUMS"); got != r.sums {
		t.Errorf("SHA256SUMS differ\n--- first\n%s--- this one\n%s", r.sums, got)
	}
	r.sameText(t, other, tars+"/release.json")
	r.sameText(t, other, layoutDir+"/index.json")
	checkSums(t, other, "sha256") // both are checked in the shared release
}

// sameText requires that a file of the release in a tree is the one of the shared release.
func (r release) sameText(t *testing.T, other tree, name string) {
	t.Helper()
	if sum := other.sum(t, name); sum != r.files[name] {
		t.Errorf("%s differs: its SHA-256 is %s, want %s\n%s", name, sum, r.files[name], tail(other.read(t, name)))
	}
}

// checkSums checks the tarballs with coreutils.
func checkSums(t *testing.T, tr tree, kinds ...string) {
	t.Helper()
	for _, sum := range kinds {
		run(t, tr.path(tars), nil, sum+"sum", "--check", "--strict", "--quiet", strings.ToUpper(sum)+"SUMS").ok(t)
	}
}

// need skips or fails the test if a program is not installed, and names the Debian package that has it.
func need(t *testing.T, program, pkg string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		missing(t, fmt.Sprintf("%s is not installed: apt install %s", program, pkg))
	}
}

// needRoot is called by tests that mount file systems or change kernel settings.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		missing(t, "this test mounts file systems or changes kernel settings: run it as root")
	}
}

// rare skips a test, or a part of one, outside of make soak.
func rare(t *testing.T, why string) {
	t.Helper()
	if !soak {
		t.Skip(why + ": make soak")
	}
}

// fromCold reports whether the release of this run had to compile everything, since the Go cache was cold.
func fromCold() bool {
	_, _ = sharedRelease() // who needs it returns the error
	return spentBy("(the release)") > 15*time.Minute
}

// large skips a test, or a part of one, that compiles much that a release does not have, in a run that had to compile a release. Both would
// take longer than a run of CI may. The next run on the same machine has the time.
func large(t *testing.T, what string) {
	t.Helper()
	if !soak && fromCold() {
		t.Skip("the Go cache was cold, so this run leaves out " + what + ": run the tests once more, or make soak")
	}
}

// missing skips the test, or fails it in CI, because the machine lacks something.
func missing(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("SLIPWAY_CI") == "1" {
		t.Fatal(what)
	}
	t.Skip(what)
}
