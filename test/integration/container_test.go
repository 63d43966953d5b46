//go:build integration

package integration

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
)

// needEngine is called by tests of the container road. They need a container engine that answers and has the
// build image. needEngine joins their lane.
func needEngine(t *testing.T) {
	t.Helper()
	need(t, "docker", "docker.io")
	need(t, "rsync", "rsync")
	containerLane.join(t)
	if got := run(t, workspace, nil, "docker", "version", "--format", "{{.Server.Version}}"); got.code != 0 {
		missing(t, "no container engine answers: start one: "+got.stderr)
	}
	if err := engineLog(); err != nil {
		t.Fatal(err)
	}
	switch _, err := buildImage(); {
	case err != nil && strings.Contains(err.Error(), "mmdebstrap is not"):
		missing(t, err.Error())
	case err != nil:
		t.Fatal(err)
	}
}

// buildImage returns the name of the build image. Making it takes minutes, and it is removed with the last tree that uses it, so the
// tree that tests share uses it until all tests are over. It is made with secrets in the environment, which a test looks for in it.
var buildImage = sync.OnceValues(func() (name string, err error) {
	tr := sharedTree()
	if err := writeSmallTree(tr.dir); err != nil {
		return "", err
	}
	bin, err := slipwayBinary()
	if err != nil {
		return "", err
	}
	atEnd(func() {
		if out, err := command(tr.dir, nil, bin, "clean", "--engine").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "slipway clean --engine: %v\n%s", err, out)
		}
	})
	if out, err := command(tr.dir, secretEnv(), bin, "run", "--", "true").CombinedOutput(); err != nil {
		return "", fmt.Errorf("make the build image: %w\n%s", err, out)
	}
	out, err := command(tr.dir, nil, "docker", "ps", "--all", "--filter", tr.owned(), "--format", "{{.Image}}").Output()
	if name = strings.TrimSpace(string(out)); err == nil && name == "" {
		err = errors.New("the data container of " + tr.dir + " is not there")
	}
	return name, err
})

func sharedTree() tree { return tree{dir: filepath.Join(workspace, "small")} }

// smallTree returns the tree that tests of the container road share, clean and without any _output. It has a bit of everything, and
// its programs link nothing but Go's runtime, which is compiled in its containers once.
func smallTree(t *testing.T) tree {
	t.Helper()
	tr := sharedTree()
	run(t, tr.dir, nil, "git", "reset", "--quiet", "--hard").ok(t)
	run(t, tr.dir, nil, "git", "clean", "--quiet", "-ffdx").ok(t)
	t.Cleanup(func() { tr.settled(t) })
	return tr
}

// newSmallTree returns a tree like smallTree, which is new to the engine. What it has there is removed after the test.
func newSmallTree(t *testing.T) tree {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	tr := tree{dir: filepath.Join(dir, "tree")}
	if err := writeSmallTree(tr.dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.cleanEngine(t) })
	return tr
}

// cleanEngine removes _output and what the tree has in the engine, and checks that. The tree's _output, which records that an engine
// was used, may have been removed before.
func (tr tree) cleanEngine(t *testing.T) {
	t.Helper()
	tr.id(t) // remembered for the time when nothing in the engine has it
	tr.slipway(t, "clean", "--engine").ok(t)
	if left := tr.belongings(t); len(left) > 0 {
		t.Errorf("after slipway clean --engine the engine still has %q", left)
	}
}

// goLines matches what release.yaml says of the Go that compiles.
var goLines = regexp.MustCompile(`(?m)^go:\n(?: .*\n)+`)

func writeSmallTree(dir string) error {
	src, err := sources()
	if err != nil {
		return err
	}
	ar, err := txtar.ParseFile(src.path("pkg/make/plan/testdata/tree.txtar"))
	if err != nil {
		return err
	}
	pinned := goLines.FindString(readFile(src.path("release/release.yaml")))
	if pinned == "" {
		return errors.New("release.yaml does not pin Go")
	}
	for _, f := range ar.Files {
		if f.Name == "version" { // git has the version
			continue
		}
		if f.Name == "release/release.yaml" { // with the real Go, which is there
			f.Data = goLines.ReplaceAllLiteral(f.Data, []byte(pinned))
		}
		name := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, f.Data, 0o644); err != nil {
			return err
		}
	}
	// The definition of the image is the real one, so that all trees share one image.
	script := `set -e
		cp -R "$0/images/kube-cross" images/
		git init -q
		git add -A
		git -c user.name=slipway -c user.email=slipway@example.invalid -c commit.gpgsign=false commit -q -m "A small tree"`
	if out, err := command(dir, nil, "sh", "-c", script, src.dir).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", dir, err, out)
	}
	return nil
}

// quickRelease makes a quick release by a road, after everything that was made is removed, and returns its identity.
func (tr tree) quickRelease(t *testing.T, road string) string {
	t.Helper()
	tr.remove(t, "_output")
	tr.slipway(t, "release", "--quick", "--road="+road).ok(t)
	checkSums(t, tr, "sha256")
	return tr.identity(t)
}

// identity returns the texts that are equal if and only if two releases are: the tarballs' checksums, release.json, and the index of
// the images.
func (tr tree) identity(t *testing.T) string {
	t.Helper()
	return tr.read(t, tars+"/SHA256SUMS") + tr.read(t, tars+"/release.json") + tr.read(t, layoutDir+"/index.json") + "\n"
}

// docker runs the docker command against the engine that the tree's commands use.
func (tr tree) docker(t *testing.T, args ...string) result {
	t.Helper()
	return run(t, workspace, tr.env, "docker", args...)
}

// owned returns docker's filter for what the tree has in the engine.
func (tr tree) owned() string { return "label=build.slipway.folder=" + tr.dir }

// A container is a container of the tree in the engine.
type container struct {
	Names, Role, State string
}

// containers lists them, running or not.
func (tr tree) containers(t *testing.T) []container {
	t.Helper()
	var all []container
	const format = `{{.Names}} {{.Label "build.slipway.role"}} {{.State}}`
	for line := range strings.Lines(tr.docker(t, "ps", "--all", "--filter", tr.owned(), "--format", format).ok(t).stdout) {
		var c container
		if n, _ := fmt.Sscan(line, &c.Names, &c.Role, &c.State); n != 3 {
			t.Fatalf("docker ps prints %q", line)
		}
		all = append(all, c)
	}
	return all
}

// onlyData requires that the tree's only container in the engine is its data container, which never ran.
func (tr tree) onlyData(t *testing.T) {
	t.Helper()
	if all := tr.containers(t); len(all) != 1 || all[0].Role != "data" || all[0].State != "created" {
		t.Errorf("the engine has the containers %v, want the data container only, created and not started", all)
	}
}

// settled waits until the engine has removed containers that ended, and requires that the data container remains.
func (tr tree) settled(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(15 * time.Second); len(tr.containers(t)) > 1 && time.Now().Before(deadline); {
		time.Sleep(50 * time.Millisecond)
	}
	tr.onlyData(t)
}

// belongings names everything that the tree has in the engine.
func (tr tree) belongings(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, c := range tr.containers(t) {
		all = append(all, c.Names)
	}
	all = append(all, strings.Fields(tr.docker(t, "volume", "ls", "--quiet", "--filter", tr.owned()).ok(t).stdout)...)
	if id := tr.id(t); id != "" {
		images := tr.docker(t, "image", "ls", "--filter", "reference=slipway/*:"+id+"-*", "--format", "{{.Repository}}:{{.Tag}}").ok(t)
		all = append(all, strings.Fields(images.stdout)...)
	}
	return all
}

// ids has the last known names of trees in an engine, by folder. Everything that a tree has there carries its name.
var (
	ids   = map[string]string{}
	idsMu sync.Mutex
)

func (tr tree) id(t *testing.T) string {
	t.Helper()
	idsMu.Lock()
	defer idsMu.Unlock()
	for _, of := range []string{"ps --all", "volume ls"} {
		args := append(strings.Fields(of), "--filter", tr.owned(), "--format", `{{.Label "build.slipway.tree"}}`)
		if found := strings.Fields(tr.docker(t, args...).ok(t).stdout); len(found) > 0 {
			ids[tr.dir] = found[0]
		}
	}
	return ids[tr.dir]
}

// A happening is an event of the engine.
type happening struct {
	Type, Action string
	TimeNano     int64
	Actor        struct {
		ID         string
		Attributes map[string]string
	}
}

type happenings []happening

// engineLogName returns the file with the engine's events about trees, written while the tests run. Afterwards the engine remembers
// only the last few hundred events, of all users.
func engineLogName() string { return filepath.Join(workspace, "engine.log") }

var engineLog = sync.OnceValue(func() error {
	f, err := os.Create(engineLogName())
	if err != nil {
		return err
	}
	since := strconv.FormatInt(time.Now().Unix(), 10) // also what happens before it listens
	c := command(workspace, nil, "docker", "events", "--since", since, "--filter", "label=build.slipway.folder", "--format", "{{json .}}")
	c.Stdout, c.Stderr = f, f
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return c.Start()
})

// caughtUp waits until the log has what happened so far: it makes something happen, and waits for that.
func caughtUp(t *testing.T) {
	t.Helper()
	image, err := buildImage()
	if err != nil {
		t.Fatal(err)
	}
	mark := fmt.Sprintf("mark-%d", time.Now().UnixNano())
	run(t, workspace, nil, "docker", "create", "--name", mark, "--label", "build.slipway.folder="+mark, image, "true").ok(t)
	run(t, workspace, nil, "docker", "rm", mark).ok(t)
	for deadline := time.Now().Add(time.Minute); !strings.Contains(readFile(engineLogName()), mark); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the engine does not report its events")
		}
	}
}

// happened returns what happened in the engine to the tree's things since a time.
func (tr tree) happened(t *testing.T, since time.Time) happenings {
	t.Helper()
	var text string
	if slices.ContainsFunc(tr.env, func(kv string) bool { return strings.HasPrefix(kv, "DOCKER_HOST=") }) {
		stamp := func(at time.Time) string { return fmt.Sprintf("%d.%09d", at.Unix(), at.Nanosecond()) }
		text = tr.docker(t, "events", "--since", stamp(since), "--until", stamp(time.Now()), "--filter", tr.owned(), "--format",
			"{{json .}}").ok(t).stdout
	} else {
		caughtUp(t)
		text = readFile(engineLogName())
	}
	var all happenings
	for lines := json.NewDecoder(strings.NewReader(text)); lines.More(); {
		var h happening
		if err := lines.Decode(&h); err != nil {
			t.Fatalf("docker events: %v in %q", err, text)
		}
		if h.TimeNano >= since.UnixNano() && h.Actor.Attributes["build.slipway.folder"] == tr.dir {
			all = append(all, h)
		}
	}
	return all
}

// started names the containers of a role that were started.
func (all happenings) started(role string) []string {
	var names []string
	for _, h := range all {
		if h.Type == "container" && h.Action == "start" && h.Actor.Attributes["build.slipway.role"] == role {
			names = append(names, h.Actor.Attributes["name"])
		}
	}
	return names
}

// none requires that nothing happened in the engine.
func (all happenings) none(t *testing.T) {
	t.Helper()
	for _, h := range all {
		t.Errorf("in the engine: %s %s %s", h.Type, h.Action, h.Actor.Attributes["name"])
	}
}

// ended waits until no container of the tree runs. Containers end by themselves when the process that started them is gone.
func (tr tree) ended(t *testing.T, within time.Duration) {
	t.Helper()
	running := func() []string {
		return strings.Fields(tr.docker(t, "ps", "--filter", tr.owned(), "--format", "{{.Names}}").ok(t).stdout)
	}
	for deadline := time.Now().Add(within); ; time.Sleep(50 * time.Millisecond) {
		left := running()
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %v the containers %q still run", within, left)
		}
	}
}

// steps returns the texts of a run's steps.
func (es events) steps() []string {
	var texts []string
	for _, e := range es {
		if e.Kind == "step" {
			texts = append(texts, e.Text)
		}
	}
	return texts
}

// hasSteps requires steps, by the beginnings of their texts and in this order.
func (es events) hasSteps(t *testing.T, beginnings ...string) {
	t.Helper()
	rest := es.steps()
	for _, b := range beginnings {
		i := slices.IndexFunc(rest, func(s string) bool { return strings.HasPrefix(s, b) })
		if i < 0 {
			t.Errorf("no step %q in its place in\n  %s", b, strings.Join(es.steps(), "\n  "))
			return
		}
		rest = rest[i+1:]
	}
}

// compiledBy requires that each compile of a component names one of the containers, and each compile of another project the local road.
func (es events) compiledBy(t *testing.T, containers []string) {
	t.Helper()
	compiles := 0
	for _, e := range es {
		if e.Kind != "done" || e.Phase != "compile" {
			continue
		}
		if !strings.Contains(e.Action, " by container ") {
			if !strings.HasPrefix(e.By, "the local road: ") {
				t.Errorf("%s was made by %q, want the local road", e.Action, e.By)
			}
			continue
		}
		compiles++
		if !slices.ContainsFunc(containers, func(name string) bool { return strings.Contains(e.By, "container "+name+" ") }) {
			t.Errorf("%s was made by %q, want one of the containers %q", e.Action, e.By, containers)
		}
	}
	if compiles == 0 {
		t.Error("nothing was compiled")
	}
}

// runWith runs a command with input.
func (tr tree) runWith(t *testing.T, input []byte, args ...string) result {
	t.Helper()
	c := command(tr.dir, tr.env, slipway(t), args...)
	var stdout, stderr bytes.Buffer
	c.Stdin, c.Stdout, c.Stderr = bytes.NewReader(input), &stdout, &stderr
	var exit *exec.ExitError
	if err := c.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s: %v", c, err)
	}
	return result{line: strings.Join(c.Args, " "), stdout: stdout.String(), stderr: stderr.String(), code: c.ProcessState.ExitCode()}
}
