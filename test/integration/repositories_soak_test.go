//go:build integration && soak && linux

package integration

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/mechanism/apt"
	"slipway.build/pkg/mechanism/openpgp"
	"slipway.build/pkg/mechanism/yum"
)

// repositories is the folder, at a target, of those that the tests below publish.
const repositories = "core:/stable:/v1.36"

// Publications follow each other, while apt, dnf and a client of HTTP read. None of them ever takes a list of packages that nobody has
// published, and only dnf has to ask again: for repomd.xml and its signature, it makes two requests.
func TestRepositoriesAreReadWhilePublished(t *testing.T) {
	need(t, "nginx", "nginx-light")
	need(t, "mmdebstrap", "mmdebstrap")
	needRoot(t)
	treeLane.join(t)
	const publications = 200
	p := newPublisher(t, publications)
	root := filepath.Join(workspace, "readers")
	makeRoot(t, root)
	s := serveSite(t)
	p.publish(t, 0, s.dir, "--url", s.address).ok(t)
	for name, to := range map[string]string{
		"acme.sources": "srv/acme.sources", "acme.repo": "srv/readers/acme.repo",
		"deb/Release.key": "usr/share/keyrings/acme-archive-keyring.asc",
	} {
		run(t, s.dir, nil, "install", "-D", "-m", "644", repositories+"/"+name, filepath.Join(root, to)).ok(t)
	}
	run(t, s.dir, nil, "cp", repositories+"/rpm/repodata/repomd.xml.asc", "before").ok(t)
	var begun, ended atomic.Int64 // publications
	ended.Store(1)
	begun.Store(1)
	var stop atomic.Bool
	var readers sync.WaitGroup
	t.Cleanup(func() { stop.Store(true); readers.Wait() })
	inRoot := func(script string) result {
		return run(t, root, []string{"LC_ALL=C", "HOME=/root"}, "chroot", root, "/bin/sh", "-c", script)
	}
	// Most is how often in a row a read may have to be repeated.
	reader := func(name string, most int, read func() (versions []string, again bool, err error)) {
		readers.Go(func() {
			reads, repeated, longest := 0, 0, 0
			for again := 0; !stop.Load(); reads++ {
				least := ended.Load()
				versions, refused, err := read()
				if refused {
					repeated++
					again++
					longest = max(longest, again)
					continue
				}
				again = 0
				if n := int64(len(versions)); err == nil && (n < least || n > begun.Load()) {
					err = fmt.Errorf("it has %d versions, after %d and before %d publications", n, least, begun.Load())
				}
				for i, v := range versions {
					if err == nil && v != fmt.Sprintf("1.36.3+acme.%d", i+1) {
						err = fmt.Errorf("version %d is %s", i+1, v)
					}
				}
				if err != nil {
					t.Errorf("%s: %v", name, err)
					return
				}
			}
			t.Logf("%s: %d reads, of which %d had to be repeated, at most %d times in a row", name, reads, repeated, longest)
			if reads < publications/20 || repeated*10 > reads || longest > most {
				t.Errorf("%s has read too little, or has repeated too much", name)
			}
		})
	}
	reader("apt", 0, func() ([]string, bool, error) {
		got := inRoot(`set -- -o Dir::Etc::sourcelist=/srv/acme.sources -o Dir::Etc::sourceparts=- -o APT::Sandbox::User=root
			set -- "$@" -o Acquire::Retries=0
			apt-get update --error-on=any "$@" && apt-cache madison kubelet "$@"`)
		if got.code != 0 {
			return nil, false, errors.New(got.String())
		}
		return versionsIn(got.stdout, regexp.MustCompile(`kubelet \| (\S+)-1 \|`)), false, nil
	})
	byDNF := func() ([]string, bool, error) {
		const dnf = "dnf --releasever=1 --setopt=reposdir=/srv/readers --setopt=cachedir=/srv/cache --setopt=retries=1 "
		got := inRoot(dnf + "-y --refresh makecache && " + dnf + `-q -C repoquery --available --qf '%{version}-%{release}' kubelet`)
		// It may go on with the list that it has.
		if refused := strings.Contains(got.stdout+got.stderr, "Bad GPG signature"); refused || got.code != 0 {
			return nil, refused, errors.New(got.String())
		}
		return versionsIn(got.stdout, regexp.MustCompile(`(?m)^(\S+)-1$`)), false, nil
	}
	reader("dnf", 3, byDNF)
	reader("HTTP", publications, func() ([]string, bool, error) {
		versions, same, err := readRepositories(s.overHTTP, p.keys)
		return versions, err == nil && !same, err
	})
	start := time.Now()
	for i := 1; i < publications; i++ {
		begun.Add(1)
		time.Sleep(time.Second) // apt asks whether InRelease is newer, in whole seconds
		p.publish(t, i, s.dir, "--url", s.address).ok(t)
		ended.Add(1)
	}
	t.Logf("%d publications took %v", publications, time.Since(start).Round(time.Second))
	stop.Store(true)
	readers.Wait()

	// What dnf does with the signature of before, should it ever meet it.
	now := s.dir + "/" + repositories + "/rpm/repodata/repomd.xml.asc"
	run(t, s.dir, nil, "cp", now, "kept").ok(t)
	run(t, s.dir, nil, "cp", "before", now).ok(t)
	versions, refused, err := byDNF()
	if !refused {
		t.Errorf("dnf takes another signature: %q, %v", versions, err)
	}
	run(t, s.dir, nil, "cp", "kept", now).ok(t)
	if versions, _, err := byDNF(); err != nil || len(versions) != publications {
		t.Errorf("dnf has %q when it asks again: %v", versions, err)
	}
}

// A publisher is killed, its disk is full, and there are two of them: indexes name what is there, whole, and the same command goes on.
func TestPublisherOfPackagesFails(t *testing.T) {
	needRoot(t)
	treeLane.join(t)
	p, before, reference := newPublisher(t, 3), t.TempDir(), t.TempDir()
	p.publish(t, 0, before).ok(t)
	var took time.Duration
	for i := range 2 {
		took = p.publish(t, i, reference).ok(t).took
	}
	want := contentsOf(t, reference)
	again := func(t *testing.T, to string) {
		t.Helper()
		isWhole(t, to, p.keys)
		p.publish(t, 1, to).ok(t)
		if _, same, err := readRepositories(inFolder(to), p.keys); err != nil || !same {
			t.Errorf("after the same again, the signature is that of the index: %v; %v", same, err)
		}
		if diff := cmp.Diff(want, contentsOf(t, to)); diff != "" {
			t.Errorf("the same again ends in another way (-want +got):\n%s", diff)
		}
	}
	copied := func(t *testing.T, to string) {
		t.Helper()
		run(t, before, nil, "cp", "-a", ".", to).ok(t)
	}
	t.Run("killed", func(t *testing.T) {
		partial := 0
		for kills := 0; kills < 20 || partial < 10 && kills < 100; kills++ {
			to := t.TempDir()
			copied(t, to)
			running := tree{dir: to}.start(t, slipway(t), p.args(1, to)...)
			running.after(time.Duration(rand.Int64N(int64(took))))
			running.kill(t)
			if n := len(contentsOf(t, to)); n > len(contentsOf(t, before)) && n < len(want) {
				partial++
			}
			again(t, to)
		}
		t.Logf("%d kills left a part", partial)
		if partial < 10 {
			t.Error("too few")
		}
	})
	t.Run("full disk", func(t *testing.T) {
		to := t.TempDir()
		if got := run(t, to, nil, "mount", "-t", "tmpfs", "-o", "size=1g", "slipway-test", to); got.code != 0 {
			missing(t, "file systems cannot be mounted here: "+got.stderr)
		}
		t.Cleanup(func() { run(t, "/", nil, "umount", to).ok(t) })
		empty := used(t, to)
		copied(t, to)
		part := used(t, to)
		p.publish(t, 1, to).ok(t)
		whole := used(t, to)
		const steps = 12
		for i := range steps {
			run(t, "/", nil, "mount", "-o", "remount,size=1g", to).ok(t)
			run(t, to, nil, "find", to, "-mindepth", "1", "-delete").ok(t)
			copied(t, to)
			size := part + (whole-part)*int64(i)/steps
			run(t, "/", nil, "mount", "-o", fmt.Sprint("remount,size=", max(size, empty+1)), to).ok(t)
			p.publish(t, 1, to).fails(t, 1, "no space left on device", "run the same command again")
			isWhole(t, to, p.keys)
			run(t, "/", nil, "mount", "-o", "remount,size=1g", to).ok(t)
			again(t, to)
		}
	})
	t.Run("two publishers", func(t *testing.T) {
		reference := t.TempDir()
		for i := range 3 {
			p.publish(t, i, reference).ok(t)
		}
		versions, _, err := readRepositories(inFolder(reference), p.keys)
		if err != nil || len(versions) != 3 {
			t.Fatalf("%q, %v", versions, err)
		}
		waited := 0
		for range 10 {
			to := t.TempDir()
			copied(t, to)
			var both []*process
			for _, i := range []int{1, 2, 1} {
				both = append(both, tree{dir: to}.start(t, slipway(t), p.args(i, to)...))
			}
			for _, one := range both {
				if got := one.wait(t).ok(t); strings.Contains(got.stderr, "waiting for somebody else who writes to ") {
					waited++
				}
			}
			got, same, err := readRepositories(inFolder(to), p.keys)
			if diff := cmp.Diff(versions, got); err != nil || !same || diff != "" {
				t.Errorf("versions are lost: %v\n%s", err, diff)
			}
		}
		if t.Logf("%d waited", waited); waited == 0 {
			t.Error("nobody waited: none wrote while another one did")
		}
	})
}

// A packagesPublisher has signed releases of a small tree with packages, v1.36.3+acme.1 and so on.
type packagesPublisher struct {
	dirs   []string
	key    string
	keys   openpgp.Keys // in their public form
	secret string
}

func newPublisher(t *testing.T, n int) packagesPublisher {
	t.Helper()
	small, dir := tree{dir: filepath.Join(t.TempDir(), "small"), env: []string{"COSIGN_PASSWORD=secret"}}, t.TempDir()
	if err := writeSmallTree(small.dir); err != nil {
		t.Fatal(err)
	}
	p := packagesPublisher{key: dir + "/release.pub", secret: dir + "/packages.key"}
	small.slipway(t, "keys", "new", dir+"/release").ok(t)
	small.slipway(t, "keys", "new", "--openpgp", "Acme <k8s@acme.example>", dir+"/packages").ok(t)
	public, err := openpgp.Elsewhere([]byte(readFile(dir+"/packages.asc")), nil)
	if err != nil {
		t.Fatal(err)
	}
	p.keys = openpgp.Keys{public}
	for i := range n {
		tr := small.with(stampAs(fmt.Sprintf("v1.36.3+acme.%d", i+1), strings.Repeat("0123456789", 4))...)
		tr.slipway(t, append(quickRelease, "--packages")...).ok(t)
		tr.slipway(t, "sign", "--key", dir+"/release.key").ok(t)
		p.dirs = append(p.dirs, fmt.Sprint(dir, "/", i+1))
		run(t, "/", nil, "cp", "-a", small.path(tars), p.dirs[i]).ok(t)
	}
	return p
}

func (p packagesPublisher) args(i int, to string) []string {
	return []string{"publish", p.dirs[i], "--key", p.key, "--to", "file://" + to, "--packages-key", p.secret}
}

func (p packagesPublisher) publish(t *testing.T, i int, to string, more ...string) result {
	t.Helper()
	return tree{dir: to}.slipway(t, append(p.args(i, to), more...)...)
}

// versionsIn returns versions, in order, of what a client lists.
func versionsIn(text string, form *regexp.Regexp) (versions []string) {
	byNumber := map[int]string{}
	for _, m := range form.FindAllStringSubmatch(text, -1) {
		var n int
		if _, err := fmt.Sscanf(m[1][strings.LastIndex(m[1], ".")+1:], "%d", &n); err == nil {
			byNumber[n] = m[1]
		}
	}
	for n := 1; len(versions) < len(byNumber); n++ {
		versions = append(versions, byNumber[n]) // "" is one that is missing
	}
	return versions
}

// contentsOf returns the SHA-256 of all files in a folder, without those that a killed publisher leaves and nobody serves.
func contentsOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(name, ".slipway/") {
			return err
		}
		all[name] = fmt.Sprintf("%x", sha256.Sum256([]byte(readFile(filepath.Join(dir, name)))))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// used returns how many bytes of a file system are in use.
func used(t *testing.T, dir string) int64 {
	t.Helper()
	var bytes int64
	got := run(t, "/", nil, "sh", "-c", "df --output=used --block-size=1 "+dir+" | tail -1").ok(t)
	if _, err := fmt.Sscan(got.stdout, &bytes); err != nil {
		t.Fatal(err)
	}
	return bytes
}

// A fetch returns a file of the repositories. With head, it only looks whether it is there.
type fetch func(name string, head bool) ([]byte, error)

func inFolder(dir string) fetch {
	return func(name string, _ bool) ([]byte, error) { return os.ReadFile(filepath.Join(dir, repositories, name)) }
}

func (s servedSite) overHTTP(name string, head bool) ([]byte, error) {
	method := http.Get
	if head {
		method = http.Head
	}
	resp, err := method(s.address + "/" + repositories + "/" + name)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", name, resp.Status)
	}
	return data, err
}

// isWhole compares all packages that the indexes of a folder name with their digests, and requires that markers name what is there.
func isWhole(t *testing.T, dir string, keys openpgp.Keys) {
	t.Helper()
	if _, _, err := readRepositories(inFolder(dir), keys); err != nil {
		t.Error(err)
	}
	markers, err := filepath.Glob(filepath.Join(dir, "release", "*.txt"))
	if err != nil || len(markers) == 0 {
		t.Errorf("%q, %v", markers, err)
	}
	for _, marker := range markers {
		tree{dir: dir}.slipway(t, "verify", path.Join(dir, "release", readFile(marker))).ok(t)
	}
}

// readRepositories follows what is signed to indexes, and these to packages, as apt and dnf do, and returns the versions of kubelet.
// Same says that repomd.xml.asc is the signature of repomd.xml, which are two requests.
func readRepositories(get fetch, keys openpgp.Keys) (versions []string, same bool, err error) {
	isThere := func(name, sum string) error {
		data, err := get(name, true)
		if err == nil && len(data) > 0 && fmt.Sprintf("%x", sha256.Sum256(data)) != sum {
			err = fmt.Errorf("%s is not what an index names", name)
		}
		return err
	}
	signed, err := get("deb/InRelease", false)
	if err != nil {
		return nil, false, err
	}
	text, err := keys.Open(signed)
	if err != nil {
		return nil, false, fmt.Errorf("InRelease: %w", err)
	}
	m := regexp.MustCompile(`(?m)^ ([0-9a-f]{64}) +\d+ Packages$`).FindSubmatch(text)
	if m == nil {
		return nil, false, fmt.Errorf("InRelease names no index: %s", text)
	}
	index, err := get("deb/by-hash/SHA256/"+string(m[1]), false)
	if err != nil {
		return nil, false, err
	}
	if !apt.Names(text, "Packages", index) {
		return nil, false, errors.New("the index is another than InRelease names")
	}
	var debs string
	for _, e := range apt.ReadPackages(index) {
		if err := isThere("deb/"+e.Field("Filename"), e.Field("SHA256")); err != nil {
			return nil, false, err
		}
		debs += e.Field("Package") + " " + e.Field("Version") + "\n"
	}
	repomd, err := get("rpm/repodata/repomd.xml", false)
	if err != nil {
		return nil, false, err
	}
	asc, err := get("rpm/repodata/repomd.xml.asc", false)
	if err != nil {
		return nil, false, err
	}
	same = keys.Check(repomd, asc) == nil
	own, err := get("rpm/repodata/"+apt.SHA256(repomd)+"-repomd.xml.asc", false)
	if err == nil {
		err = keys.Check(repomd, own)
	}
	if err != nil {
		return nil, false, fmt.Errorf("repomd.xml: %w", err)
	}
	entries, err := yum.ReadEntries(repomd, func(name string) ([]byte, error) { return get("rpm/"+name, false) })
	if err != nil {
		return nil, false, err
	}
	for _, e := range entries {
		if err := isThere("rpm/"+e.Location, e.SHA256); err != nil {
			return nil, false, err
		}
	}
	return versionsIn(debs, regexp.MustCompile(`(?m)^kubelet (\S+)-1$`)), same, nil
}
