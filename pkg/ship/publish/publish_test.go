package publish

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/mechanism/checksum"
	"slipway.build/pkg/mechanism/platform"
	"slipway.build/pkg/mechanism/signature"
	"slipway.build/pkg/release"
	"slipway.build/pkg/release/provenance"
	"slipway.build/pkg/ship/sign"
	"slipway.build/pkg/ship/trust"
	"slipway.build/pkg/ship/verify"
)

// An owner makes small releases and signs them.
type owner struct{ key signature.PrivateKey }

func newOwner(t *testing.T) owner {
	t.Helper()
	key, err := signature.New()
	if err != nil {
		t.Fatal(err)
	}
	return owner{key}
}

func (o owner) want() verify.Want { return verify.Want{Trust: trust.Of(o.key.Public())} }

func artifact(name string, kind release.Kind, data []byte) release.Artifact {
	sum, size, _ := checksum.Of(bytes.NewReader(data))
	return release.Artifact{Name: name, Kind: kind, Size: size, SHA256: sum.SHA256, SHA512: sum.SHA512}
}

// release writes a release of two programs in two tarballs, and an image. Change changes its description.
func (o owner) release(t *testing.T, version string, change func(*release.Release)) string {
	t.Helper()
	dir := t.TempDir()
	r := &release.Release{Format: release.Format, Version: version, Compiler: "go", Go: "go1.26.8", Kubernetes: "v1.37.0",
		Platforms: []platform.Platform{{OS: "linux", Arch: "amd64"}}}
	a, b := strings.Repeat("a", 64), strings.Repeat("b", 128)
	for _, name := range []string{"registry.k8s.io/etcd:3.7.0-0", "registry.k8s.io/coredns/coredns:v1.14.6", "registry.k8s.io/pause:3.10.2"} {
		r.Artifacts = append(r.Artifacts, release.Artifact{Name: name, Kind: release.Index, Size: 1, SHA256: a, SHA512: b})
	}
	programs := map[string][]byte{}
	for _, name := range []string{"kubectl", "kubelet"} {
		programs[name] = []byte(strings.Repeat("program "+name+" of "+version+"\n", 5_000))
		r.Artifacts = append(r.Artifacts, artifact("linux/amd64/"+name, release.Binary, programs[name]))
	}
	for set, names := range map[string][]string{"client": {"kubectl"}, "server": {"kubectl", "kubelet"}} {
		var members []release.Member
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		w := tar.NewWriter(z)
		for _, name := range names {
			member := "kubernetes/" + set + "/bin/" + name
			members = append(members, release.Member{Path: member, Artifact: "linux/amd64/" + name})
			if err := w.WriteHeader(&tar.Header{Name: member, Mode: 0o755, Size: int64(len(programs[name]))}); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write(programs[name]); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(w.Close(), z.Close()); err != nil {
			t.Fatal(err)
		}
		a := artifact("kubernetes-"+set+"-linux-amd64.tar.gz", release.Tarball, packed.Bytes())
		a.Path, a.Members = a.Name, members
		r.Artifacts = append(r.Artifacts, a)
		write(t, dir, a.Path, packed.Bytes())
	}
	sums := artifact("SHA256SUMS", release.Sums, []byte("sums of "+version))
	sums.Path = sums.Name
	write(t, dir, sums.Path, []byte("sums of "+version))
	r.Artifacts = append(r.Artifacts, sums)
	slices.SortFunc(r.Artifacts, func(a, b release.Artifact) int { return strings.Compare(a.Name, b.Name) })
	if change != nil {
		change(r)
	}
	data, err := r.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, release.File, data)
	made, err := provenance.Of(r, data)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range made {
		write(t, dir, m.File, m.Content)
	}
	if _, err := sign.Folder(t.Context(), dir, o.key, sign.Options{}); err != nil {
		t.Fatal(err)
	}
	return dir
}

func write(t *testing.T, dir, name string, data []byte) {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// plan returns the publication of a release.
func (o owner) plan(t *testing.T, dir, to string) (*Publication, error) {
	t.Helper()
	accepted, err := Accept(t.Context(), dir, o.want(), "", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return accepted.Plan(t.Context(), folder(to))
}

// publish publishes a release.
func (o owner) publish(t *testing.T, dir, to string) *Publication {
	t.Helper()
	p, err := o.plan(t, dir, to)
	if err == nil {
		err = p.Send(t.Context(), func() {})
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// contents returns the contents of all files, or their digests if they are long, with their modes.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil || name == dir {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil || d.IsDir() {
			all[rel] = info.Mode().String()
			return err
		}
		data, err := os.ReadFile(name)
		text := string(data)
		if len(data) > 100 {
			sum := sha256.Sum256(data)
			text = hex.EncodeToString(sum[:])
		}
		all[rel] = info.Mode().String() + " " + text
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// marked returns what the markers of a target name.
func marked(t *testing.T, to string) map[string]string {
	t.Helper()
	all := map[string]string{}
	files, err := filepath.Glob(filepath.Join(to, "release", "*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(file)] = string(data)
	}
	return all
}

// all returns the markers that name a version if the stable ones name another.
func all(stable, latest string) map[string]string {
	return map[string]string{"stable.txt": stable, "stable-1.txt": stable, "stable-1.37.txt": stable,
		"latest.txt": latest, "latest-1.txt": latest, "latest-1.37.txt": latest}
}

func TestPublishedReleaseIsTheFolderAndWhatFollowsFromIt(t *testing.T) {
	t.Parallel()
	o, to := newOwner(t), t.TempDir()
	const version = "v1.37.0+acme.1"
	from := o.release(t, version, nil)
	planned, err := o.plan(t, from, to)
	if err != nil {
		t.Fatal(err)
	}
	if got := contents(t, to); planned.Done() || len(got) != 0 {
		t.Errorf("a plan wrote %v, or has nothing to do", got)
	}
	p := o.publish(t, from, to)
	if p.URLPath != "release/v1.37.0%2Bacme.1/" {
		t.Errorf("its path is %s", p.URLPath)
	}
	at := filepath.Join(to, "release", version)
	for name, text := range contents(t, from) {
		if got := contents(t, at)[name]; got != text {
			t.Errorf("%s: %s, want %s", name, got, text)
		}
	}
	kubectl, err := os.ReadFile(filepath.Join(at, "bin", "linux", "amd64", "kubectl"))
	if err != nil || !strings.HasPrefix(string(kubectl), "program kubectl of v1.37.0+acme.1\n") {
		t.Errorf("kubectl: %.100q, %v", kubectl, err)
	}
	for name, want := range map[string]string{
		"bin/linux/amd64/kubectl.sha256": fmt.Sprintf("%x", sha256.Sum256(kubectl)),
		"images.txt": fmt.Sprintf("registry.k8s.io/coredns/coredns:v1.14.6@sha256:%[1]s\nregistry.k8s.io/etcd:3.7.0-0@sha256:%[1]s\n"+
			"registry.k8s.io/pause:3.10.2@sha256:%[1]s\n", strings.Repeat("a", 64)),
		"kubeadm.yaml": "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: v1.37.0+acme.1\n" +
			"imageRepository: registry.k8s.io\ndns:\n  imageRepository: registry.k8s.io/coredns\n  imageTag: v1.14.6\n" +
			"etcd:\n  local:\n    imageRepository: registry.k8s.io\n    imageTag: 3.7.0-0\n",
	} {
		got, err := os.ReadFile(filepath.Join(at, name))
		if diff := cmp.Diff(want, string(got)); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	if diff := cmp.Diff(all(version, version), marked(t, to)); diff != "" {
		t.Errorf("markers (-want +got):\n%s", diff)
	}
	report, err := verify.Folder(t.Context(), at, o.want())
	if err != nil || !report.OK() || report.Signature != verify.Good {
		t.Errorf("verify: %+v, %v", report, err)
	}
	entries, err := os.ReadDir(to)
	if err != nil || len(entries) != 1 {
		t.Errorf("the target has %v, %v", entries, err)
	}
	// Again, there is nothing to do.
	if again, err := o.plan(t, from, to); err != nil || !again.Done() {
		t.Errorf("again: %+v, %v", again, err)
	}
	// What is published can be published elsewhere, with the same bytes.
	other := t.TempDir()
	o.publish(t, at, other)
	if diff := cmp.Diff(contents(t, to), contents(t, other)); diff != "" {
		t.Errorf("the copy differs:\n%s", diff)
	}
}

func TestMarkersGoForwardOnly(t *testing.T) {
	t.Parallel()
	o, to := newOwner(t), t.TempDir()
	for _, step := range []struct{ version, stable, latest string }{
		{"v1.37.0+acme.9", "v1.37.0+acme.9", "v1.37.0+acme.9"},
		{"v1.37.0+acme.10-rc.1", "v1.37.0+acme.9", "v1.37.0+acme.10-rc.1"},
		{"v1.37.0+acme.10", "v1.37.0+acme.10", "v1.37.0+acme.10"},
		{"v1.37.0+acme.8", "v1.37.0+acme.10", "v1.37.0+acme.10"},
		{"v1.37.1-rc.0+acme.1", "v1.37.0+acme.10", "v1.37.1-rc.0+acme.1"},
	} {
		o.publish(t, o.release(t, step.version, nil), to)
		if diff := cmp.Diff(all(step.stable, step.latest), marked(t, to)); diff != "" {
			t.Errorf("after %s (-want +got):\n%s", step.version, diff)
		}
	}
	// No marker names a version without a tag, wherever it is among the others.
	const untagged = "v1.37.1-rc.0+slipway.20261120235300.0123456789ab"
	if p := o.publish(t, o.release(t, untagged, nil), to); len(p.Markers) > 0 {
		t.Errorf("of a version without a tag, these are markers: %+v", p.Markers)
	}
	p := o.publish(t, o.release(t, "v1.36.9", nil), to)
	o.publish(t, o.release(t, "v1.37.0+acme.11", nil), to) // looks at all versions again
	if got := marked(t, to)["latest.txt"]; got != "v1.37.1-rc.0+acme.1" {
		t.Errorf("latest is %s", got)
	}
	got := marked(t, to)
	if got["stable.txt"] != "v1.37.0+acme.11" || got["stable-1.36.txt"] != "v1.36.9" || got["latest-1.36.txt"] != "v1.36.9" {
		t.Errorf("after an older minor version: %v", got)
	}
	if m := p.Markers[0]; m.State != There || m.Note != "v1.37.0+acme.10 is newer" {
		t.Errorf("its marker is %+v", m)
	}
}

func TestMarkersOfOthersAreKept(t *testing.T) {
	t.Parallel()
	o, to := newOwner(t), t.TempDir()
	write(t, to, "release/stable.txt", []byte("v1.99.0")) // by a mirror of upstream
	from := o.release(t, "v1.37.0+acme.1", nil)
	o.publish(t, from, to)
	if got := marked(t, to); got["stable.txt"] != "v1.99.0" || got["stable-1.37.txt"] != "v1.37.0+acme.1" {
		t.Errorf("the markers are %v", got)
	}
	write(t, to, "release/stable.txt", []byte("<html>"))
	if _, err := o.plan(t, from, to); err == nil || !strings.Contains(err.Error(), `release/stable.txt has "<html>", which is no version`) {
		t.Errorf("with a marker that is none: %v", err)
	}
}

func TestWithdrawnVersionStaysAndIsNotMarked(t *testing.T) {
	t.Parallel()
	o, to := newOwner(t), t.TempDir()
	first, second := o.release(t, "v1.37.0+acme.1", nil), o.release(t, "v1.37.0+acme.2", nil)
	o.publish(t, first, to)
	o.publish(t, second, to)
	before := contents(t, to)
	withdraw := func(version, why string) error {
		p, err := Withdraw(t.Context(), folder(to), version, why, Repositories{})
		if err != nil {
			return err
		}
		return p.Send(t.Context(), func() {})
	}
	planned, err := Withdraw(t.Context(), folder(to), "v1.37.0+acme.2", "it <leaks>", Repositories{})
	if err != nil {
		t.Fatal(err)
	}
	if first := planned.Pages[0].Path; filepath.Base(first) != "withdrawn.txt" { // readers read the page before it
		t.Errorf("%s is sent first", first)
	}
	if diff := cmp.Diff(before, contents(t, to)); diff != "" {
		t.Errorf("a plan wrote:\n%s", diff)
	}
	for range 2 { // the second time, nothing is left to do
		if err := withdraw("v1.37.0+acme.2", "it <leaks>"); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(all("v1.37.0+acme.1", "v1.37.0+acme.1"), marked(t, to)); diff != "" {
		t.Errorf("markers (-want +got):\n%s", diff)
	}
	at := filepath.Join(to, "release", "v1.37.0+acme.2")
	report, err := verify.Folder(t.Context(), at, o.want())
	if err != nil || !report.OK() || report.Withdrawn != "it <leaks>" {
		t.Errorf("verify: %+v, %v", report, err)
	}
	page, err := os.ReadFile(filepath.Join(at, "index.html"))
	if err != nil || !strings.Contains(string(page), "Withdrawn: it &lt;leaks&gt;") {
		t.Errorf("its page is %s, %v", page, err)
	}
	after := contents(t, to)
	for name, text := range before {
		if after[name] != text && filepath.Ext(name) != ".txt" && filepath.Base(name) != "index.html" {
			t.Errorf("%s was changed", name)
		}
	}
	// It does not come back.
	if p, err := o.plan(t, second, to); err != nil || !p.Done() || p.Withdrawn != "it <leaks>" {
		t.Errorf("published again: %+v, %v", p, err)
	}
	// Nor is it published elsewhere from there.
	_, err = Accept(t.Context(), at, o.want(), "", time.Now())
	if err == nil || !strings.Contains(err.Error(), "was withdrawn: it <leaks>") {
		t.Errorf("published from there: %v", err)
	}
	if err := withdraw("v1.37.0+acme.3", "no"); err == nil || !strings.Contains(err.Error(), `unknown version "v1.37.0+acme.3"`) {
		t.Errorf("a version that is not there: %v", err)
	}
	if err := withdraw("v1.37.0+acme.1", "a\nb"); err == nil || !strings.Contains(err.Error(), "in one line") {
		t.Errorf("a reason of two lines: %v", err)
	}
	if err := withdraw("v1.37.0+acme.1", "that, too"); err != nil || len(marked(t, to)) != 0 {
		t.Errorf("without any version, there are the markers %v; %v", marked(t, to), err)
	}
}

func TestReleaseThatMustNotBePublished(t *testing.T) {
	t.Parallel()
	o := newOwner(t)
	noon := time.Date(2026, 12, 10, 12, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		version string
		change  func(*release.Release)
		harm    string // a file that is changed
		by      owner
		want    string
	}{
		"altered": {version: "v1.37.0", harm: "kubernetes-client-linux-amd64.tar.gz", by: o,
			want: "it differs from its release.json"},
		"of other sums":    {version: "v1.37.0", harm: "SHA256SUMS.sigstore.json", by: o, want: "a signature is missing or wrong"},
		"of another owner": {version: "v1.37.0", by: newOwner(t), want: "a signature is missing or wrong"},
		"dirty":            {version: "v1.37.0+acme.1.dirty", by: o, want: "changes that are in no commit"},
		"dirty tree": {version: "v1.37.0", by: o, change: func(r *release.Release) { r.TreeState = "dirty" },
			want: "changes that are in no commit"},
		"no version":    {version: "1.37", by: o, want: `its version is "1.37", and not one like`},
		"way up":        {version: "v1.37.0+../../x", by: o, want: "and not one like"},
		"under embargo": {version: "v1.37.0", by: o, change: func(r *release.Release) { r.Embargo = noon.Add(1) }, want: "under embargo until"},
		"bad candidate": {version: "v1.37.0+rc.1", by: o, want: "a candidate must come before its release"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := o.release(t, tt.version, tt.change)
			if tt.harm != "" {
				write(t, dir, tt.harm, []byte("harm"))
			}
			if _, err := Accept(t.Context(), dir, tt.by.want(), "", noon); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
	if _, err := Accept(t.Context(), o.release(t, "v1.37.0", nil), verify.Want{}, "", noon); err == nil {
		t.Error("nobody must have signed it")
	}
	open := o.release(t, "v1.37.0", func(r *release.Release) { r.Embargo = noon })
	if _, err := Accept(t.Context(), open, o.want(), "", noon); err != nil {
		t.Errorf("when the embargo ends: %v", err)
	}
}

func TestOtherContentStopsEverything(t *testing.T) {
	t.Parallel()
	o, to := newOwner(t), t.TempDir()
	from := o.release(t, "v1.37.0", nil)
	write(t, to, "release/v1.37.0/bin/linux/amd64/kubectl", []byte("another"))
	before := contents(t, to)
	_, err := o.plan(t, from, to)
	want := "another content in release/v1.37.0/bin/linux/amd64/kubectl:"
	if _, ok := errors.AsType[*ConflictError](err); !ok || !strings.Contains(err.Error(), want) {
		t.Errorf("the error is %v", err)
	}
	if diff := cmp.Diff(before, contents(t, to)); diff != "" {
		t.Errorf("it wrote:\n%s", diff)
	}
}

func TestImageRepositoryOfASite(t *testing.T) {
	t.Parallel()
	o, to := newOwner(t), t.TempDir()
	from := o.release(t, "v1.37.0", nil)
	accepted, err := Accept(t.Context(), from, o.want(), "registry.example.com:5000/k8s", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	p, err := accepted.Plan(t.Context(), folder(to))
	if err == nil {
		err = p.Send(t.Context(), func() {})
	}
	if err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(to, "release", "v1.37.0")
	images, err := os.ReadFile(filepath.Join(at, "images.txt"))
	if err != nil || !strings.HasPrefix(string(images), "registry.example.com:5000/k8s/coredns/coredns:v1.14.6@sha256:aaaa") {
		t.Errorf("images.txt: %s, %v", images, err)
	}
	// It verifies, but says that nobody has signed that.
	report, err := verify.Folder(t.Context(), at, o.want())
	if err != nil || !report.OK() {
		t.Fatalf("verify: %+v, %v", report, err)
	}
	unchecked := 0
	for _, f := range report.Files {
		if f.Status == verify.Unchecked && strings.Contains(f.Detail, "registry.example.com:5000/k8s") {
			unchecked++
		}
	}
	if unchecked != 2 {
		t.Errorf("%d files are not checked, want 2", unchecked)
	}
	want := "another content in release/v1.37.0/images.txt and 1 more"
	if _, err := o.plan(t, from, to); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("with another repository: %v", err)
	}
	if _, err := Accept(t.Context(), from, o.want(), "k8s", time.Now()); err == nil {
		t.Error("a repository without a host is accepted")
	}
}
