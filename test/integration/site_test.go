//go:build integration && linux

package integration

import (
	"crypto/sha256"
	"fmt"
	"html"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	releasejson "slipway.build/pkg/release"
	"slipway.build/pkg/release/provenance"
)

// Releases are published for nginx, and used as docs/install.md says: by its own commands, kubeadm, and kind. A publisher is killed, and
// who follows a marker meanwhile finds all that it names.
func TestSiteOfPublishedReleases(t *testing.T) {
	need(t, "nginx", "nginx-light")
	need(t, "curl", "curl")
	containerLane.join(t)
	dir, key := signedCopy(t)
	s := serveSite(t)
	publish := func(folder string) []string {
		return []string{"publish", folder, "--key=" + key, "--to=file://" + s.dir}
	}

	// The shared release. Its version is that of a commit without a tag, which no marker names.
	shared := describedIn(t, filepath.Join(dir, "release-tars"))
	said := s.slipway(t, publish(filepath.Join(dir, "release-tars"))...).ok(t).stdout
	if want := "markers stay: " + shared.Version + " has no tag\n"; !strings.Contains(said, want) {
		t.Errorf("no %q in\n%s", want, said)
	}
	s.slipway(t, "verify", s.url(shared.Version), "--key="+key).ok(t)
	kills := 3
	if soak {
		kills = 20
		s.readByKind(t, shared.Version)
	}

	first, second := shared.Kubernetes+"+acme.9", shared.Kubernetes+"+acme.10"
	tagged := publish(taggedCopy(t, dir, first))
	took := s.slipway(t, tagged...).ok(t).took
	s.followsDocument(t, first, key)
	s.readByKubeadm(t, first)
	before := s.files(t)
	if again := s.slipway(t, tagged...).ok(t).stdout; !strings.Contains(again, "\n0 files, 0 B sent; ") {
		t.Errorf("again:\n%s", again)
	}
	if diff := cmp.Diff(before, s.files(t)); diff != "" {
		t.Errorf("what was published is written again:\n%s", diff)
	}

	reader := s.startReader(t)
	tagged = publish(taggedCopy(t, dir, second))
	for range kills {
		if s.read(t, "stable.txt") == first {
			tree{dir: s.dir}.remove(t, "release/"+second) // so that each has as much to do
		}
		p := tree{dir: s.dir}.start(t, slipway(t), tagged...)
		p.after(time.Duration(rand.Int64N(int64(took))))
		p.kill(t)
		t.Logf("a kill has left %d files", len(s.files(t))-len(before))
	}
	s.slipway(t, tagged...).ok(t)
	s.slipway(t, "verify", s.url(second), "--key="+key).ok(t)
	s.hasBoth(t, first, second, before)
	if got := s.read(t, "stable.txt"); got != second {
		t.Errorf("stable is %s, want %s", got, second)
	}
	const reason = "kubelets leak memory"
	s.slipway(t, "withdraw", second, "--to=file://"+s.dir, "--reason="+reason).ok(t)
	if got := s.read(t, "stable.txt"); got != first {
		t.Errorf("stable is %s, want %s", got, first)
	}
	if page := s.read(t, second+"/"); !strings.Contains(page, reason) { // nginx has index.html there
		t.Errorf("the page has no reason: %s", page)
	}
	if got := s.slipway(t, "verify", s.url(second), "--key="+key).ok(t); !strings.Contains(got.stdout, `withdrawn: "`+reason+`"`) {
		t.Errorf("verify gives no reason: %v", got)
	}
	reader()
}

// A servedSite is a folder for published releases that nginx serves.
type servedSite struct {
	dir     string
	address string // http://HOST:PORT
}

func serveSite(t *testing.T) servedSite {
	t.Helper()
	dir, at := t.TempDir(), freeAddress(t)
	log := runNginx(t, fmt.Sprintf("server { listen %s; root %s; }\n", at, dir))
	await(t, (&net.Dialer{}).DialContext, at, log)
	return servedSite{dir, "http://" + at}
}

// url returns the address of a version, as slipway publish prints it.
func (s servedSite) url(version string) string {
	return s.address + "/release/" + strings.ReplaceAll(version, "+", "%2B") + "/"
}

func (s servedSite) slipway(t *testing.T, args ...string) result {
	t.Helper()
	return tree{dir: s.dir}.slipway(t, args...)
}

// get returns what is at a path below release/.
func (s servedSite) get(name string) (string, error) {
	resp, err := http.Get(s.address + "/release/" + strings.ReplaceAll(name, "+", "%2B"))
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", name, resp.Status)
	}
	return string(data), err
}

func (s servedSite) read(t *testing.T, name string) string {
	t.Helper()
	text, err := s.get(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// files returns all files, each with its inode and the time of its last change.
func (s servedSite) files(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := fs.WalkDir(os.DirFS(s.dir+"/release"), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			all[name] = fmt.Sprint(info.Sys().(*syscall.Stat_t).Ino, info.ModTime())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// hasBoth requires that two versions have files of the same names, those of the first as they were before, and that nothing else is there.
func (s servedSite) hasBoth(t *testing.T, first, second string, before map[string]string) {
	t.Helper()
	after := s.files(t)
	for name, file := range before {
		if strings.Contains(name, "/") && after[name] != file { // it is no marker
			t.Errorf("%s is written again", name)
		}
		other := strings.Replace(name, first, second, 1)
		if after[other] == "" {
			t.Errorf("there is no %s", other)
		}
		delete(after, name)
		delete(after, other)
	}
	if len(after) > 0 {
		t.Errorf("there are, too: %v", after)
	}
	if top, err := os.ReadDir(s.dir); err != nil || len(top) != 1 {
		t.Errorf("beside release is %v, %v", top, err)
	}
}

// followsDocument runs the commands of docs/install.md for kubectl alone.
func (s servedSite) followsDocument(t *testing.T, version, key string) {
	t.Helper()
	script := "set -eu\n" + documentCommands(t, "docs/install.md")["kubectl alone"]
	ofDocument := regexp.MustCompile(`v[0-9.]+%2B[a-z]+\.[0-9]+`)
	script = ofDocument.ReplaceAllLiteralString(script, strings.ReplaceAll(version, "+", "%2B"))
	script = strings.NewReplacer(addressInDocument, s.address, "linux/amd64", "linux/"+hostArch).Replace(script)
	dir := t.TempDir()
	run(t, dir, nil, "cp", key, "release.pub").ok(t)
	got := run(t, dir, []string{"PATH=" + filepath.Dir(slipway(t)) + ":" + os.Getenv("PATH")}, "sh", "-c", script).ok(t)
	if n := strings.Count(got.stdout, "signed by the key "); n != 2 || !strings.Contains(got.stdout, "kubectl: OK\n") {
		t.Errorf("%s\nsays, with %d signatures:\n%s", script, n, got.stdout)
	}
}

// readByKubeadm has the site's own kubeadm read the site's configuration for it.
func (s servedSite) readByKubeadm(t *testing.T, version string) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"kubeadm.yaml", "bin/linux/" + hostArch + "/kubeadm"} {
		run(t, dir, nil, "curl", "-fsSO", s.url(version)+name).ok(t)
	}
	kubeadm := filepath.Join(dir, "kubeadm")
	if err := os.Chmod(kubeadm, 0o755); err != nil {
		t.Fatal(err)
	}
	run(t, dir, nil, kubeadm, "config", "validate", "--config=kubeadm.yaml").ok(t)
	wanted := strings.Fields(run(t, dir, nil, kubeadm, "config", "images", "list", "--config=kubeadm.yaml").ok(t).stdout)
	var has []string
	for line := range strings.Lines(s.read(t, version+"/images.txt")) {
		name, _, _ := strings.Cut(line, "@")
		has = append(has, name)
	}
	for _, name := range wanted {
		if !slices.Contains(has, name) {
			t.Errorf("kubeadm wants %s, and images.txt has %q", name, has)
		}
	}
	if len(wanted) != 7 {
		t.Errorf("kubeadm wants %q", wanted)
	}
}

// readByKind has kind make an image for nodes of the server tarball, as far as its first pull: nobody answers there. kind takes a quarter
// of a minute to unpack that.
func (s servedSite) readByKind(t *testing.T, version string) {
	t.Helper()
	const nobody = "127.0.0.1:1/base"
	got := run(t, s.dir, []string{"TMPDIR=" + t.TempDir()}, client(t, "kind"), "build", "node-image", "--base-image="+nobody,
		s.url(version)+"kubernetes-server-"+host+".tar.gz")
	got.fails(t, 1, "Finished building Kubernetes", "Unable to find image '"+nobody)
	t.Log("kind has the server tarball; what it does with its own base image, which it pulls, was not seen")
}

// startReader follows stable.txt until the function that it returns is called.
func (s servedSite) startReader(t *testing.T) (end func()) {
	t.Helper()
	var stop atomic.Bool
	var reader sync.WaitGroup
	end = sync.OnceFunc(func() { stop.Store(true); reader.Wait() })
	t.Cleanup(end)
	seen := map[string]int{}
	reader.Go(func() {
		for ; !stop.Load(); time.Sleep(5 * time.Millisecond) {
			version, err := s.get("stable.txt")
			if err == nil {
				err = s.isWhole(version)
			}
			if err != nil {
				t.Errorf("stable.txt names %s: %v", version, err)
				return
			}
			seen[version]++
		}
		t.Logf("who follows stable.txt has seen %v", seen)
	})
	return end
}

// isWhole looks at what is put first and last, and compares a tarball with its digest.
func (s servedSite) isWhole(version string) error {
	const tarball = "kubernetes-manifests.tar.gz"
	got := map[string]string{}
	for _, name := range []string{tarball, tarball + ".sha256", "kubeadm.yaml", releasejson.File, ""} {
		var err error
		if got[name], err = s.get(version + "/" + name); err != nil {
			return err
		}
	}
	if sum := fmt.Sprintf("%x", sha256.Sum256([]byte(got[tarball]))); sum != got[tarball+".sha256"] {
		return fmt.Errorf("%s has the SHA-256 %s, and not %s", tarball, sum, got[tarball+".sha256"])
	}
	for _, name := range []string{"kubeadm.yaml", releasejson.File, ""} {
		if !strings.Contains(html.UnescapeString(got[name]), version) {
			return fmt.Errorf("%q does not have the version: %s", name, tail(got[name]))
		}
	}
	return nil
}

// taggedCopy returns a folder with a copy of the shared release, signed, whose version is that of a tag. It lacks the server tarball, which
// takes most of the time that a publication takes. The programs say what they were made with.
func taggedCopy(t *testing.T, signed, version string) string {
	t.Helper()
	from, dir := filepath.Join(signed, "release-tars"), filepath.Join(t.TempDir(), version)
	run(t, "/", nil, "cp", "-al", from, dir).ok(t) // by links: nobody writes into a file of a release
	was := describedIn(t, from).Version
	asTag := func(v string) string { return strings.ReplaceAll(v, "+", "_") }
	text := strings.NewReplacer(was, version, asTag(was), asTag(version)).Replace(readFile(filepath.Join(from, releasejson.File)))
	r, err := releasejson.Unmarshal([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	server := "kubernetes-server-" + host + ".tar.gz"
	r.Artifacts = slices.DeleteFunc(r.Artifacts, func(a releasejson.Artifact) bool { return a.Name == server })
	for i := range r.Artifacts {
		r.Artifacts[i].Of = slices.DeleteFunc(r.Artifacts[i].Of, func(name string) bool { return name == server })
	}
	data, err := r.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	statements, err := provenance.Of(r, data)
	if err != nil {
		t.Fatal(err)
	}
	copied := tree{dir: dir}
	copied.remove(t, server, releasejson.File, provenance.File, provenance.Folder, "attestations")
	if err := os.Mkdir(copied.path(provenance.Folder), 0o755); err != nil {
		t.Fatal(err)
	}
	copied.write(t, releasejson.File, string(data))
	for _, s := range statements {
		copied.write(t, s.File, string(s.Content))
	}
	run(t, dir, []string{"COSIGN_PASSWORD=secret"}, slipway(t), "sign", dir, "--key="+filepath.Join(signed, "release.key")).ok(t)
	return dir
}
