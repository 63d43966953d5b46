//go:build integration

package integration

import (
	"archive/tar"
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway.build/pkg/tree/catalog"
)

var (
	serverBinaries = []string{
		"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "cloud-controller-manager", "kubelet",
		"kubeadm", "kube-aggregator",
		"apiextensions-apiserver", "kube-log-runner", "kubectl", "kubectl-convert",
	}
	nodeBinaries   = []string{"kubelet", "kubeadm", "kube-proxy", "kube-log-runner", "kubectl", "kubectl-convert"}
	clientBinaries = []string{"kubectl", "kubectl-convert"}
	imageNames     = []string{"cloud-controller-manager", "kube-apiserver", "kube-controller-manager", "kube-proxy",
		"kube-scheduler", "kubectl"}

	// Other projects: programs, and images by name with their versions. Those that Kubernetes or the tree chooses are in release.yaml.
	addonBinaries = []string{"etcd", "etcdctl", "etcdutl", "containerd", "containerd-shim-runc-v2", "ctr", "crictl", "olareg"}
	cniPlugins    = []string{"bandwidth", "bridge", "dhcp", "dummy", "firewall", "host-device", "host-local", "ipvlan", "loopback",
		"macvlan", "portmap", "ptp", "sbr", "static", "tap", "tuning", "vlan", "vrf"}
	addonImages = imageVersions("pause", "probe", "node", "etcd", "coredns/coredns", "metrics-server/metrics-server", "traefik/traefik")
)

// imageVersions returns the versions that release.yaml declares for images.
func imageVersions(names ...string) map[string]string {
	c, err := catalog.Load("../..")
	if err != nil {
		panic(err)
	}
	versions := map[string]string{}
	for _, name := range names {
		i := slices.IndexFunc(c.Images, func(i catalog.Image) bool { return i.Name == name })
		if i < 0 || c.Images[i].Version == "" {
			panic("release.yaml has no version of the image " + name)
		}
		versions[name] = c.Images[i].Version
	}
	return versions
}

// programVersion returns the version of an image's program: without the v, and without the number of the image.
func programVersion(image string) string {
	version, _, _ := strings.Cut(addonImages[image], "-")
	return strings.TrimPrefix(version, "v")
}

// host names this machine's platform in the names of tarballs.
var host = "linux-" + runtime.GOARCH

func hostBin(name string) string { return binaries + "/linux/" + runtime.GOARCH + "/" + name }

func hostImage(name string) string { return images + "/" + runtime.GOARCH + "/" + name }

// below returns the paths of names in a folder.
func below(dir string, names ...string) []string {
	var all []string
	for _, name := range names {
		all = append(all, dir+"/"+name)
	}
	return all
}

// quickTarballs returns the tarballs of a quick release, each with the files that it holds. Files in a folder of licenses, addons
// or manifests are named by the folder.
func quickTarballs() map[string][]string {
	server := below("kubernetes/server/bin", serverBinaries...)
	for _, name := range imageNames {
		server = append(server, below("kubernetes/server/bin", name+".tar", name+".docker_tag")...)
	}
	server = append(server, below("kubernetes/addons/bin", addonBinaries...)...)
	server = append(server, below("kubernetes/addons/cni/bin", cniPlugins...)...)
	for name := range addonImages {
		server = append(server, below("kubernetes/addons/images", path.Base(name)+".tar", path.Base(name)+".docker_tag")...)
	}
	for _, name := range []string{"cloud-controller-manager", "containerd", "coredns", "kube-proxy", "metrics-server", "traefik"} {
		server = append(server, "kubernetes/addons/"+name+"/")
	}
	server = append(server, "kubernetes/LICENSES/", "kubernetes/version", "kubernetes/kubernetes-src.tar.gz")
	node := append(below("kubernetes/node/bin", nodeBinaries...), "kubernetes/LICENSES/", "kubernetes/version",
		"kubernetes/kubernetes-src.tar.gz")
	return map[string][]string{
		"kubernetes-server-" + host + ".tar.gz": server,
		"kubernetes-node-" + host + ".tar.gz":   node,
		"kubernetes-client-" + host + ".tar.gz": below("kubernetes/client/bin", clientBinaries...),
		"kubernetes-manifests.tar.gz":           {"kubernetes/manifests/", "kubernetes/version"},
		"kubernetes-src.tar.gz":                 nil, // see TestSourceTarballHoldsTheCommit
		"kubernetes.tar.gz":                     nil, // see TestFullTarballHasAnIntroduction
	}
}

func TestQuickReleaseHoldsEveryTarballAndItsChecksums(t *testing.T) {
	r := baseline(t)
	var got []string
	entries, err := os.ReadDir(r.path(tars))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		got = append(got, e.Name())
	}
	documents := []string{"kubernetes-release.cdx.json", "kubernetes-release.spdx.json", "kubernetes-source.cdx.json",
		"kubernetes-source.spdx.json"}
	want := append(slices.Sorted(maps.Keys(quickTarballs())), "SHA256SUMS", "SHA512SUMS", "release.json", "provenance",
		"provenance.json", "sbom")
	want = append(want, documents...)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s holds %q, want %q", tars, got, want)
	}
	for _, sums := range []string{"SHA256SUMS", "SHA512SUMS"} {
		if n := strings.Count(r.read(t, tars+"/"+sums), "\n"); n != len(quickTarballs())+len(documents)+2*(len(imageNames)+len(addonImages)) {
			t.Errorf("%s has %d lines, want one for each tarball and bill of materials", sums, n)
		}
	}
	checkSums(t, r.tree, "sha256", "sha512")
	r.slipway(t, "verify").ok(t)
}

func TestTarballsHaveKubernetesLayout(t *testing.T) {
	r := baseline(t)
	for name, want := range quickTarballs() {
		if want == nil {
			continue
		}
		t.Run(name, func(t *testing.T) {
			got := map[string]bool{}
			for _, m := range members(t, r.path(tars+"/"+name)) {
				if m.Typeflag == tar.TypeDir {
					continue
				}
				got[grouped(m.Name, want)] = true
			}
			sorted := slices.Sorted(slices.Values(want))
			if have := slices.Sorted(maps.Keys(got)); !slices.Equal(have, sorted) {
				t.Errorf("it holds\n  %s\nwant\n  %s", strings.Join(have, "\n  "), strings.Join(sorted, "\n  "))
			}
		})
	}
}

// grouped returns the folder among groups that contains a file, or the file's own name.
func grouped(name string, groups []string) string {
	for _, g := range groups {
		if strings.HasSuffix(g, "/") && strings.HasPrefix(name, g) {
			return g
		}
	}
	return name
}

// GNU tar and Go read the same names, kinds, modes, owners, sizes, and times, which are the commit's.
func TestMembersHaveFixedModesOwnersAndTimes(t *testing.T) {
	r := baseline(t)
	committed := strings.TrimSpace(run(t, r.dir, nil, "git", "log", "-1", "--format=%ct").ok(t).stdout)
	listing := run(t, r.dir, nil, "git", "ls-files", "--stage", "-z").ok(t).stdout
	executable := func(name string) bool { // a program of the release, or a file that git has as executable
		return strings.Contains(name, "/bin/") && path.Ext(name) == "" || strings.HasPrefix(modeOf(listing, name), "100755 ")
	}
	for name := range quickTarballs() {
		t.Run(name, func(t *testing.T) {
			var ours strings.Builder
			for _, m := range members(t, r.path(tars+"/"+name)) {
				if link := strings.HasPrefix(modeOf(listing, m.Name), "120000 "); link != (m.Typeflag == tar.TypeSymlink) {
					t.Errorf("%s is of kind %q, and git has it as a link: %v", m.Name, m.Typeflag, link)
				} else if err := checkMember(m, executable(m.Name)); err != nil {
					t.Errorf("%s: %v", m.Name, err)
				}
				if at := fmt.Sprint(m.ModTime.Unix()); at != committed {
					t.Errorf("%s has the time %s, the commit's is %s", m.Name, at, committed)
				}
				fmt.Fprintf(&ours, "%s %s\n", m.ModTime.UTC().Format("2006-01-02 15:04:05"), m.Name)
			}
			listed := run(t, r.path(tars), []string{"TZ=UTC", "LC_ALL=C"}, "tar", "--full-time", "--numeric-owner", "-tvzf", name).ok(t)
			var theirs strings.Builder
			for line := range strings.Lines(listed.stdout) {
				f := strings.Fields(strings.TrimSpace(line))
				if f[1] != "0/0" {
					t.Errorf("GNU tar sees another owner: %s", line)
				}
				member, _, _ := strings.Cut(strings.Join(f[5:], " "), " -> ")
				fmt.Fprintf(&theirs, "%s %s %s\n", f[3], f[4], member)
			}
			if ours.String() != theirs.String() {
				t.Errorf("archive/tar lists\n%s\nGNU tar lists\n%s", tail(ours.String()), tail(theirs.String()))
			}
		})
	}
}

// modeOf returns the line of a file in git ls-files --stage -z, which begins with the mode, or nothing.
func modeOf(listing, name string) string {
	for entry := range strings.SplitSeq(listing, "\x00") {
		if of, listed, _ := strings.Cut(entry, "\t"); listed == name {
			return of
		}
	}
	return ""
}

func checkMember(m *tar.Header, executable bool) error {
	want := int64(0o644)
	switch {
	case m.Typeflag == tar.TypeDir:
		want = 0o755
	case m.Typeflag == tar.TypeSymlink:
		want = 0o777
	case m.Typeflag != tar.TypeReg:
		return fmt.Errorf("is of kind %q", m.Typeflag)
	case executable:
		want = 0o755
	}
	if m.Mode != want {
		return fmt.Errorf("has the mode %o, want %o", m.Mode, want)
	}
	if m.Uid != 0 || m.Gid != 0 || m.Uname != "" || m.Gname != "" {
		return fmt.Errorf("belongs to %d:%d (%q, %q), want 0:0", m.Uid, m.Gid, m.Uname, m.Gname)
	}
	return nil
}

func TestVersionFileAndDockerTagsMatchTheStamp(t *testing.T) {
	r := baseline(t)
	tag := strings.ReplaceAll(r.version, "+", "_") + "\n"
	for name := range quickTarballs() {
		for member, data := range contents(t, r.path(tars+"/"+name), func(member string) bool {
			return member == "kubernetes/version" || strings.HasSuffix(member, ".docker_tag")
		}) {
			want := r.version + "\n"
			if path.Ext(member) == ".docker_tag" {
				want = tag
			}
			for image, version := range addonImages {
				if member == "kubernetes/addons/images/"+path.Base(image)+".docker_tag" {
					want = version + "\n"
				}
			}
			if data != want {
				t.Errorf("%s in %s is %q, want %q", member, name, data, want)
			}
		}
	}
}

func TestSourceTarballHoldsTheCommit(t *testing.T) {
	r := baseline(t)
	want := strings.Fields(run(t, r.dir, nil, "git", "ls-files").ok(t).stdout)
	want = append(want, "version")
	slices.Sort(want)
	var got []string
	for _, m := range members(t, r.path(tars+"/kubernetes-src.tar.gz")) {
		if m.Typeflag != tar.TypeDir {
			got = append(got, m.Name)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("it holds\n%q\nthe commit\n%q", got, want)
	}
}

func TestFullTarballHasAnIntroduction(t *testing.T) {
	r := baseline(t)
	names := map[string]bool{}
	for _, m := range members(t, r.path(tars+"/kubernetes.tar.gz")) {
		names[m.Name] = true
	}
	for _, want := range []string{"kubernetes/README.md", "kubernetes/LICENSE", "kubernetes/version"} {
		if !names[want] {
			t.Errorf("it does not hold %s", want)
		}
	}
}

func TestManifestsAreFilledIn(t *testing.T) {
	r := baseline(t)
	tag := strings.ReplaceAll(r.version, "+", "_")
	var ours, others []string
	for name, data := range contents(t, r.path(tars+"/kubernetes-manifests.tar.gz"),
		func(member string) bool { return path.Ext(member) == ".yaml" }) {
		for _, placeholder := range placeholder.FindAllString(data, -1) {
			if placeholder != "__API_SERVER__" && placeholder != "__ADDRESSES__" { // filled in when a cluster is set up
				t.Errorf("%s has the placeholder %s left", name, placeholder)
			}
		}
		for _, found := range imageLine.FindAllStringSubmatch(data, -1) {
			image, version := strings.TrimPrefix(found[1], "registry.k8s.io/"), found[2]
			switch version {
			case tag:
				ours = append(ours, image)
			case addonImages[image]:
				others = append(others, image)
			default:
				t.Errorf("%s names the image %s, which is not in the release", name, found[0])
			}
		}
	}
	slices.Sort(ours)
	if want := []string{"cloud-controller-manager", "kube-apiserver", "kube-controller-manager", "kube-proxy",
		"kube-scheduler"}; !slices.Equal(ours, want) {
		t.Errorf("manifests name the release's images of %q, want %q", ours, want)
	}
	slices.Sort(others)
	if want := []string{"coredns/coredns", "etcd", "metrics-server/metrics-server", "traefik/traefik"}; !slices.Equal(others, want) {
		t.Errorf("manifests name other projects' images of %q, want %q", others, want)
	}
}

// placeholder matches what packing replaces in a manifest.
var placeholder = regexp.MustCompile(`__[A-Z][A-Z_]*__`)

// imageLine matches a line of a manifest that names an image by repository and tag.
var imageLine = regexp.MustCompile(`(?m)^\s*(?:- )?image: (\S+):(\S+)`)

// A tarball has its headers, and the text of the files that tests read.
type tarball struct {
	headers []*tar.Header
	texts   map[string]string
}

// read has the tarballs that were read, because unpacking the server's takes a while.
var read = map[string]tarball{}

// members lists a tarball of the shared release.
func members(t *testing.T, name string) []*tar.Header {
	t.Helper()
	return open(t, name).headers
}

// contents returns the texts of some files in a tarball of the shared release.
func contents(t *testing.T, name string, wanted func(member string) bool) map[string]string {
	t.Helper()
	found := map[string]string{}
	for member, text := range open(t, name).texts {
		if wanted(member) {
			found[member] = text
		}
	}
	return found
}

func open(t *testing.T, name string) tarball {
	t.Helper()
	if ball, ok := read[name]; ok {
		return ball
	}
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	z, err := gzip.NewReader(file)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if z.Name != "" || !z.ModTime.Equal(time.Time{}) {
		t.Errorf("%s: the gzip header has the name %q and the time %v, want none", name, z.Name, z.ModTime)
	}
	ball := tarball{texts: map[string]string{}}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		ball.headers = append(ball.headers, h)
		if path.Base(h.Name) != "version" && path.Ext(h.Name) != ".docker_tag" && path.Ext(h.Name) != ".yaml" {
			continue
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatalf("%s: %s: %v", name, h.Name, err)
		}
		ball.texts[h.Name] = string(text)
	}
	if _, err := io.Copy(io.Discard, z); err != nil { // the checksum comes at the very end
		t.Fatalf("%s: %v", name, err)
	}
	read[name] = ball
	return ball
}
