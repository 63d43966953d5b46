//go:build integration

package integration

import (
	"encoding/json"
	goversion "go/version"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// addonArchive returns the path of another project's image by its name in the catalog.
func addonArchive(name string) string { return hostImage(path.Base(name)) + ".tar" }

func TestKubeadmsImagesAreInTheRelease(t *testing.T) {
	r := baseline(t)
	have := map[string]bool{}
	for _, name := range imageNames {
		for _, tag := range repoTags(t, r.path(hostImage(name)+".tar")) {
			have[tag] = true
		}
	}
	for name := range addonImages {
		for _, tag := range repoTags(t, r.path(addonArchive(name))) {
			have[tag] = true
		}
	}
	wanted := strings.Fields(run(t, r.dir, nil, r.path(hostBin("kubeadm")), "config", "images", "list", "--kubernetes-version",
		r.version).ok(t).stdout)
	if len(wanted) < 7 {
		t.Errorf("kubeadm asks for %q only", wanted)
	}
	for _, image := range wanted {
		if !have[image] {
			t.Errorf("kubeadm asks for %s; the release has %q", image, slices.Sorted(maps.Keys(have)))
		}
	}
}

func TestOtherProjectsImagesHaveTheirVersion(t *testing.T) {
	r := baseline(t)
	for name, version := range addonImages {
		if got := strings.TrimSpace(r.read(t, hostImage(path.Base(name))+".docker_tag")); got != version {
			t.Errorf("%s.docker_tag is %q, want %q", name, got, version)
		}
		tags := imageTags("registry.k8s.io", name, version)
		slices.Sort(tags)
		if got := repoTags(t, r.path(addonArchive(name))); !slices.Equal(got, tags) {
			t.Errorf("%s has the tags %q, want %q", name, got, tags)
		}
	}
}

// Programs print the version that they are packed under.
func TestOtherProjectsProgramsPrintTheirVersion(t *testing.T) {
	r := baseline(t)
	of := func(folder, module string) string {
		return requirements(parseMod(t, r.path("images/"+folder+"/go.mod")))[module]
	}
	cni := of("cni-plugins", "github.com/containernetworking/plugins")
	containerd, crictl := of("containerd", "github.com/containerd/containerd/v2"), of("crictl", "sigs.k8s.io/cri-tools")
	for _, tt := range []struct {
		line []string
		env  string
		want string
	}{
		{[]string{"pause", "-v"}, "", "pause " + addonImages["pause"] + "\n"},
		{[]string{"etcd", "--version"}, "", "etcd Version: " + programVersion("etcd") + "\n"},
		{[]string{"etcdctl", "version"}, "", "etcdctl version: " + programVersion("etcd") + "\n"},
		{[]string{"etcdutl", "version"}, "", "etcdutl version: " + programVersion("etcd") + "\n"},
		{[]string{"coredns", "-version"}, "", "CoreDNS-" + programVersion("coredns/coredns") + "\n"},
		{[]string{"metrics-server", "--version"}, "", addonImages["metrics-server/metrics-server"]},
		{[]string{"traefik", "version"}, "", addonImages["traefik/traefik"]},
		{[]string{"containerd", "--version"}, "", " " + containerd + " "},
		{[]string{"containerd-shim-runc-v2", "-v"}, "", "  Version:  " + containerd + "\n"},
		{[]string{"ctr", "--version"}, "", " " + containerd + "\n"},
		{[]string{"crictl", "--version"}, "", " " + crictl + "\n"},
		{[]string{"bridge"}, "CNI_COMMAND=", "CNI bridge plugin " + cni + "\n"},
		{[]string{"portmap"}, "CNI_COMMAND=", "CNI portmap plugin " + cni + "\n"},
	} {
		got := run(t, r.dir, []string{tt.env}, r.path(hostBin(tt.line[0])), tt.line[1:]...).ok(t)
		if !strings.Contains(got.stdout+got.stderr, tt.want) {
			t.Errorf("%q prints %v, want %q", tt.line, got, tt.want)
		}
	}
}

// Another project's program is built from the module versions that the project itself selected, or from newer ones that Kubernetes selects,
// which are compiled anyway. It behaves as with its own version of Go.
func TestOtherProjectsAreBuiltFromWhatTheySelected(t *testing.T) {
	r := baseline(t)
	components := parseMod(t, r.path("cmd/go.mod"))
	shared := requirements(components)
	for _, replaced := range components.Replace {
		if replaced.New.Path == replaced.Old.Path {
			shared[replaced.Old.Path] = replaced.New.Version
		}
	}
	for module, project := range map[string]string{
		"coredns": "github.com/coredns/coredns", "metrics-server": "sigs.k8s.io/metrics-server",
		"cni-plugins": "github.com/containernetworking/plugins",
		"etcd":        "go.etcd.io/etcd/server/v3", "containerd": "github.com/containerd/containerd/v2", "crictl": "sigs.k8s.io/cri-tools",
		"traefik": "github.com/traefik/traefik/v3",
	} {
		dir := r.path("images/" + module)
		ours := parseMod(t, filepath.Join(dir, "go.mod"))
		var info struct{ GoMod string }
		if err := json.Unmarshal([]byte(run(t, dir, nil, "go", "list", "-m", "-json", project).ok(t).stdout), &info); err != nil {
			t.Fatal(err)
		}
		theirs := parseMod(t, info.GoMod)
		behavior := goversion.Lang("go" + ours.Go.Version)
		for _, g := range ours.Godebug {
			if g.Key == "default" {
				behavior = g.Value
			}
		}
		if behavior != goversion.Lang("go"+theirs.Go.Version) {
			t.Errorf("images/%s/go.mod is for the behavior of %q, that of %s for Go %s", module, behavior, project, theirs.Go.Version)
		}
		want := requirements(theirs)
		override(t, r, "images/"+module, want)
		for path, version := range requirements(ours) {
			if w := want[path]; w != "" && w != version && (version != shared[path] || semver.Compare(version, w) < 0) {
				t.Errorf("images/%s has %s@%s, %s, with overrides, selected %s", module, path, version, project, w)
			}
		}
	}
}

func requirements(mod *modfile.File) map[string]string {
	versions := map[string]string{}
	for _, r := range mod.Require {
		versions[r.Mod.Path] = r.Mod.Version
	}
	return versions
}

// ownCache returns an environment with an empty cache folder, except for Go's, and a mirror that does not answer.
func ownCache(t *testing.T, tr tree) (env []string) {
	t.Helper()
	env = []string{"XDG_CACHE_HOME=" + t.TempDir(), "SLIPWAY_DEBIAN_MIRROR=http://127.0.0.1:9/debian", "SLIPWAY_DEBIAN_SNAPSHOT=off"}
	for _, name := range []string{"GOCACHE", "GOMODCACHE"} {
		env = append(env, name+"="+strings.TrimSpace(run(t, tr.dir, nil, "go", "env", name).ok(t).stdout))
	}
	return env
}

func TestReleaseNeedsNoMirrorOnceItHasThePackages(t *testing.T) {
	r := baseline(t)
	r.remove(t, "_output/release-stage/debian", hostImage("kube-proxy")+".tar")
	got := r.tree.with(ownCache(t, r.tree)...).slipway(t, quickRelease...)
	got.fails(t, 1, "the Debian package ", "127.0.0.1:9")
	if r.exists(hostImage("kube-proxy") + ".tar") {
		t.Error("there is an image of kube-proxy without packages")
	}
	with := r.tree.with("SLIPWAY_DEBIAN_MIRROR=http://127.0.0.1:9/debian", "SLIPWAY_DEBIAN_SNAPSHOT=off")
	with.jsonRun(t, quickRelease...)
	r.sameRelease(t, r.tree)
}

func TestOtherProjectsImagesRun(t *testing.T) {
	need(t, "docker", "docker.io")
	r := baseline(t)
	load := func(archive string) (tag string) {
		tags := repoTags(t, r.path(archive))
		for _, tag := range tags {
			if run(t, r.dir, nil, "docker", "image", "inspect", tag).code == 0 {
				t.Fatalf("docker has an image %s already, which this test would remove", tag)
			}
		}
		t.Cleanup(func() { run(t, r.dir, nil, "docker", append([]string{"image", "rm"}, tags...)...) })
		run(t, r.dir, nil, "docker", "load", "--quiet", "--input", r.path(archive)).ok(t)
		return tags[0]
	}
	pause, etcd, proxy := load(addonArchive("pause")), load(addonArchive("etcd")), load(hostImage("kube-proxy")+".tar")
	for _, tt := range []struct {
		image string
		line  []string // an entry point, or empty, and arguments
		want  string
	}{
		{pause, []string{"", "-v"}, "pause " + addonImages["pause"]},
		{etcd, []string{"", "--version"}, "etcd Version: " + programVersion("etcd")},
		{etcd, []string{"etcdctl", "version"}, "etcdctl version: " + programVersion("etcd")},
		{load(addonArchive("coredns/coredns")), []string{"", "-version"}, "CoreDNS-" + programVersion("coredns/coredns")},
		{load(addonArchive("metrics-server/metrics-server")), []string{"", "--version"}, addonImages["metrics-server/metrics-server"]},
		{load(addonArchive("traefik/traefik")), []string{"", "version"}, addonImages["traefik/traefik"]},
		{proxy, []string{"iptables", "--version"}, "(nf_tables)"},
		{proxy, []string{"ip6tables-restore", "--version"}, "(nf_tables)"},
		{proxy, []string{"iptables-legacy", "--version"}, "(legacy)"},
		{proxy, []string{"nft", "--version"}, "nftables v"},
		{proxy, []string{"conntrack", "--version"}, "conntrack v"},
		{proxy, []string{"ipset", "--version"}, "ipset v"},
		{proxy, []string{"/go-runner", "--help"}, "log-file"},
	} {
		args := []string{"run", "--rm", "--network=none", "--read-only"}
		if tt.line[0] != "" {
			args = append(args, "--entrypoint="+tt.line[0])
		}
		args = append(append(args, tt.image), tt.line[1:]...)
		got := run(t, r.dir, nil, "docker", args...)
		if !strings.Contains(got.stdout+got.stderr, tt.want) {
			t.Errorf("docker %q: %v, want %q", args, got, tt.want)
		}
	}
}

// containerd holds Pods with the release's pause if it has the release's configuration, whatever its own default is.
func TestContainerdTakesTheReleasesPause(t *testing.T) {
	r := baseline(t)
	dir := t.TempDir()
	run(t, dir, nil, "tar", "-xzf", r.path(tars+"/kubernetes-server-linux-"+hostArch+".tar.gz"), "kubernetes/addons/containerd").ok(t)
	config := filepath.Join(dir, "kubernetes/addons/containerd/config.toml")
	dump := run(t, dir, nil, r.path(hostBin("containerd")), "--config", config, "config", "dump").ok(t).stdout
	if want := "/pause:" + addonImages["pause"] + "'\n"; !strings.Contains(dump, want) {
		t.Errorf("there is no %q in\n%s", want, dump)
	}
}

// pause ends on SIGTERM, and reaps orphans.
func TestPauseReapsAndEnds(t *testing.T) {
	need(t, "unshare", "util-linux")
	need(t, "pgrep", "procps")
	needRoot(t)
	r := baseline(t)
	// pause is the first process of its namespace. A shell beside it starts a child and ends, so pause becomes the child's parent.
	script := `set -e
unshare --pid --fork --mount-proc "$1" 2>err & u=$!
for i in $(seq 100); do p=$(pgrep -P $u) && break; sleep 0.05; done
nsenter --target $p --pid --mount sh -c '(exit 3) & exit 0'
for i in $(seq 100); do # pause gets the time to reap
	nsenter --target $p --pid --mount ps -eo stat=,comm= >ps
	grep -qv -e ' pause$' -e ' ps$' ps || break
	sleep 0.05
done
kill -TERM $p
wait $u || true
cat ps err`
	dir := t.TempDir()
	got := run(t, dir, nil, "bash", "-c", script, "bash", r.path(hostBin("pause"))).ok(t)
	if strings.Contains(got.stdout, "Z") || strings.Contains(got.stdout, "defunct") || !strings.Contains(got.stdout, " pause\n") {
		t.Errorf("processes beside pause:\n%s", got.stdout)
	}
	if !strings.Contains(got.stdout, "Shutting down, got signal: terminated") {
		t.Errorf("pause did not end by the signal:\n%s", got.stdout)
	}
}
