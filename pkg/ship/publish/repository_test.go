package publish

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/mechanism/apt"
	"slipway.build/pkg/mechanism/archive"
	"slipway.build/pkg/mechanism/deb"
	"slipway.build/pkg/mechanism/needs"
	"slipway.build/pkg/mechanism/openpgp"
	"slipway.build/pkg/mechanism/platform"
	"slipway.build/pkg/mechanism/relation"
	"slipway.build/pkg/mechanism/rpm"
	"slipway.build/pkg/mechanism/yum"
	"slipway.build/pkg/release"
	"slipway.build/pkg/tree/stamp"
)

func newKey(t *testing.T, lifetime time.Duration) *openpgp.Key {
	t.Helper()
	return readKey(t, newPrivate(t, time.Unix(1_700_000_000, 0), lifetime))
}

func newPrivate(t *testing.T, at time.Time, lifetime time.Duration) []byte {
	t.Helper()
	private, _, err := openpgp.New("Acme <k8s@acme.example>", at, lifetime)
	if err != nil {
		t.Fatal(err)
	}
	return private
}

func readKey(t *testing.T, private []byte) *openpgp.Key {
	t.Helper()
	key, err := openpgp.ReadPrivate(private, nil)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// packaged writes a release with a deb and an rpm, which require iptables.
func (o owner) packaged(t *testing.T, version string) (dir string) {
	t.Helper()
	return o.requiring(t, version, "iptables >= 1.4", release.BasePackages{Deb: []string{"iptables"}, RPM: []string{"iptables"}})
}

// requiring writes a release with a deb and an rpm, which require another package.
func (o owner) requiring(t *testing.T, version, other string, base release.BasePackages) (dir string) {
	t.Helper()
	of := stamp.ForPackages(version)
	files := []archive.Entry{
		{Name: "usr/bin/tool", Mode: 0o755, Data: []byte("tool of " + version)}, {Name: "etc/tool", Data: []byte("a\n")},
	}
	requires := make([]relation.Relation, 1)
	if err := requires[0].UnmarshalText([]byte(other)); err != nil {
		t.Fatal(err)
	}
	d := deb.Package{Name: "tool", Version: of + "-1", Arch: "amd64", Maintainer: "Acme <k8s@acme.example>", Summary: "A tool",
		Depends: requires, Files: files, Time: time.Unix(1_700_000_000, 0)}
	r := rpm.Package{Name: "tool", Version: of, Release: "1", Arch: "x86_64", Summary: "A <tool>", License: "MIT", Requires: requires,
		Scripts: rpm.Scripts{Post: "true"}, Changes: "- Release " + version + ".", Files: files, Time: time.Unix(1_700_000_000, 0)}
	var debFile, rpmFile bytes.Buffer
	if err := errors.Join(d.Write(t.Context(), &debFile, ""), r.Write(t.Context(), &rpmFile, "")); err != nil {
		t.Fatal(err)
	}
	name := strings.ReplaceAll(of, "+", "-")
	all := map[string][]byte{
		"packages/tool_" + name + "-1_amd64.deb": debFile.Bytes(), "packages/tool-" + name + "-1.x86_64.rpm": rpmFile.Bytes(),
	}
	dir = o.release(t, version, func(described *release.Release) {
		described.Date, described.BasePackages = dateOf(version), base
		for name, data := range all {
			a := artifact(name, release.Deb, data)
			a.Path, a.Platform = name, platform.Platform{OS: "linux", Arch: "amd64"}
			a.Identity = &release.Identity{Name: "tool", Version: of + "-1", Arch: "amd64"}
			if strings.HasSuffix(name, ".rpm") {
				a.Kind, a.Identity.Arch = release.RPM, "x86_64"
			}
			described.Artifacts = append(described.Artifacts, a)
		}
	})
	for name, data := range all {
		write(t, dir, name, data)
	}
	return dir
}

// address is where users find targets.
const address = "https://dl.example.com"

// publishPackages publishes a release with its packages.
func (o owner) publishPackages(t *testing.T, dir, to string, keys ...*openpgp.Key) (*Publication, error) {
	t.Helper()
	return o.publishAs(t, dir, to, Repositories{Keys: keys, URL: address})
}

func (o owner) publishAs(t *testing.T, dir, to string, q Repositories) (*Publication, error) {
	t.Helper()
	accepted, err := Accept(t.Context(), dir, o.want(), "", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := accepted.SignPackages(q); err != nil {
		return nil, err
	}
	p, err := accepted.Plan(t.Context(), folder(to))
	if err != nil || p.Done() {
		return p, err
	}
	return p, p.Send(t.Context(), func() {})
}

// listed returns the versions of a package that both repositories of a folder list, for apt and for dnf.
func listed(t *testing.T, dir, name string) []string {
	t.Helper()
	index, err := os.ReadFile(filepath.Join(dir, "deb", "Packages"))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range apt.ReadPackages(index) {
		if e.Field("Package") == name {
			all = append(all, e.Field("Version"))
		}
	}
	repomd, err := os.ReadFile(filepath.Join(dir, "rpm", "repodata", "repomd.xml"))
	if err != nil {
		t.Fatal(err)
	}
	entries, err := yum.ReadEntries(repomd, func(name string) ([]byte, error) { return os.ReadFile(filepath.Join(dir, "rpm", name)) })
	if err != nil {
		t.Fatal(err)
	}
	var rpms []string
	for _, e := range entries {
		if strings.Contains(e.Primary, "<name>"+name+"</name>") {
			m := regexp.MustCompile(`ver="([^"]*)" rel="([^"]*)"`).FindStringSubmatch(e.Primary)
			rpms = append(rpms, m[1]+"-"+m[2])
		}
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(all)), slices.Sorted(slices.Values(rpms))); diff != "" {
		t.Errorf("debs and rpms differ:\n%s", diff)
	}
	return all
}

// dates returns the dates of the indexes of a folder for apt and for dnf, in seconds since 1970.
func dates(t *testing.T, dir string) (forApt, forDNF int64) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "deb", "Release"))
	if err != nil {
		t.Fatal(err)
	}
	at, _, err := apt.Dates(text)
	if err != nil {
		t.Fatal(err)
	}
	repomd, err := os.ReadFile(filepath.Join(dir, "rpm", "repodata", "repomd.xml"))
	if err != nil {
		t.Fatal(err)
	}
	return at.Unix(), yum.Revision(repomd)
}

func TestRepositoriesKeepAllVersions(t *testing.T) {
	t.Parallel()
	o, to, key := newOwner(t), t.TempDir(), newKey(t, 0)
	stable := filepath.Join(to, "core:", "stable:", "v1.37")
	first, second := o.packaged(t, "v1.37.0+acme.1"), o.packaged(t, "v1.37.0+acme.2")
	for _, dir := range []string{second, first, o.packaged(t, "v1.37.1-rc.0+acme.1")} {
		if _, err := o.publishPackages(t, dir, to, key); err != nil {
			t.Fatal(err)
		}
	}
	both := []string{"1.37.0+acme.1-1", "1.37.0+acme.2-1"}
	if diff := cmp.Diff(both, listed(t, stable, "tool")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := listed(t, filepath.Join(to, "core:", "prerelease:", "v1.37"), "tool"); !slices.Equal(got, []string{"1.37.1~rc.0+acme.1-1"}) {
		t.Errorf("candidates: %q", got)
	}
	before := contents(t, to)
	if p, err := o.publishPackages(t, first, to, key); err != nil || !p.Done() {
		t.Errorf("again: %v", err)
	}
	if diff := cmp.Diff(before, contents(t, to)); diff != "" {
		t.Errorf("again:\n%s", diff)
	}
	clients(t, to, both)

	// A withdrawn version is listed no more, and comes back with no other version.
	if _, err := Withdraw(t.Context(), folder(to), "v1.37.0+acme.2", "it leaks", Repositories{}); !errors.Is(err, ErrNoKey) {
		t.Errorf("withdrawn without a key: %v", err)
	}
	aptBefore, dnfBefore := dates(t, stable)
	p, err := Withdraw(t.Context(), folder(to), "v1.37.0+acme.2", "it leaks", Repositories{Keys: openpgp.Keys{key}})
	if err == nil {
		err = p.Send(t.Context(), func() {})
	}
	if err != nil {
		t.Fatal(err)
	}
	if forApt, forDNF := dates(t, stable); forApt <= aptBefore || forDNF <= dnfBefore {
		t.Error("readers keep the indexes from before the withdrawal, which are as new")
	}
	if _, err := o.publishPackages(t, o.packaged(t, "v1.37.0+acme.3"), to, key); err != nil {
		t.Fatal(err)
	}
	left := []string{"1.37.0+acme.1-1", "1.37.0+acme.3-1"}
	if diff := cmp.Diff(left, listed(t, stable, "tool")); diff != "" {
		t.Errorf("after a withdrawal (-want +got):\n%s", diff)
	}
	clients(t, to, left)

	// Two keys sign while users change from one to the other.
	next, last := newKey(t, 0), o.packaged(t, "v1.37.0+acme.4")
	if _, err := o.publishPackages(t, last, to, key); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{last, o.packaged(t, "v1.37.0+acme.5")} {
		if _, err := o.publishPackages(t, dir, to, next); err == nil ||
			!strings.Contains(err.Error(), "its signature is by none of the keys") {
			t.Errorf("a stranger's key: %v", err)
		}
	}
	rpms := contents(t, filepath.Join(stable, "rpm", "x86_64"))
	if _, err := o.publishPackages(t, last, to, key, next); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(rpms, contents(t, filepath.Join(stable, "rpm", "x86_64"))); diff != "" {
		t.Errorf("rpms have changed:\n%s", diff)
	}
	if _, err := o.publishPackages(t, o.packaged(t, "v1.37.0+acme.5"), to, next); err != nil {
		t.Errorf("the new key by itself: %v", err)
	}
}

// newApt returns a function that runs a program of apt, which knows the stable repository alone.
func newApt(t *testing.T, to string) func(args ...string) (string, error) {
	t.Helper()
	needs.Program(t, "apt-get")
	dir := t.TempDir()
	stable := filepath.Join(to, "core:/stable:/v1.37")
	sources, err1 := os.ReadFile(filepath.Join(stable, "acme.sources"))
	keys, err2 := os.ReadFile(filepath.Join(stable, "deb/Release.key"))
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	places := strings.NewReplacer(address, "file://"+to, "/usr/share/keyrings", dir)
	write(t, dir, "acme.sources", []byte(places.Replace(string(sources))))
	write(t, dir, "acme-archive-keyring.asc", keys)
	write(t, dir, "state/status", nil)
	write(t, dir, "cache/archives/partial/x", nil)
	write(t, dir, "state/lists/partial/x", nil)
	return func(args ...string) (string, error) {
		args = append(args, "-o", "Dir::Etc::sourcelist="+dir+"/acme.sources", "-o", "Dir::Etc::sourceparts=-",
			"-o", "Dir::State="+dir+"/state", "-o", "Dir::State::status="+dir+"/state/status",
			"-o", "Dir::Cache="+dir+"/cache", "-o", "APT::Architecture=amd64",
			"-o", "APT::Sandbox::User=root", "-o", "APT::Architectures=amd64",
			"-o", "Acquire::Check-Date=true", "-o", "Acquire::Check-Valid-Until=true") // which machines may have turned off
		cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
}

// clients has apt and rpm read the stable repositories: apt lists versions, and rpm checks signatures.
func clients(t *testing.T, to string, want []string) {
	t.Helper()
	stable := filepath.Join(to, "core:", "stable:", "v1.37")
	run := newApt(t, to)
	for _, args := range [][]string{{"apt-get", "update", "--error-on=any"}, {"apt-get", "download", "tool=" + want[0]}} {
		if out, err := run(args...); err != nil {
			t.Errorf("%s: %v\n%s", args, err, out)
		}
	}
	out, err := run("apt-cache", "madison", "tool")
	for _, version := range want {
		if err != nil || !strings.Contains(out, version) {
			t.Errorf("apt-cache: %v, no %s in %s", err, version, out)
		}
	}
	if keys, err := exec.LookPath("rpmkeys"); err != nil {
		needs.Missing(t, "%v", err)
	} else {
		dir := t.TempDir()
		if out, err := exec.CommandContext(t.Context(), keys, "--dbpath", dir, "--import",
			filepath.Join(stable, "rpm", "repodata", "repomd.xml.key")).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		files, err := filepath.Glob(filepath.Join(stable, "rpm", "x86_64", "*.rpm"))
		if err != nil || len(files) < len(want) {
			t.Fatalf("%q, %v", files, err)
		}
		for _, file := range files {
			out, err := exec.CommandContext(t.Context(), keys, "--dbpath", dir, "-Kv", file).CombinedOutput()
			if err != nil || !strings.Contains(string(out), "Signature, key ID") || strings.Contains(string(out), "NOKEY") {
				t.Errorf("%v: %s", err, out)
			}
		}
	}
}

func TestKeysThatMustNotSign(t *testing.T) {
	t.Parallel()
	key := newKey(t, 1000*time.Hour)
	for _, tt := range []struct {
		after    time.Duration
		bad      bool
		warnings int
	}{{-time.Hour, true, 0}, {time.Hour, false, 1}, {999 * time.Hour, false, 1}, {1000 * time.Hour, true, 0}} {
		warnings, err := CheckKeys(openpgp.Keys{key}, key.Created().Add(tt.after))
		if errors.As(err, new(*KeyError)) != tt.bad || len(warnings) != tt.warnings {
			t.Errorf("%s after it was made: %q, %v", tt.after, warnings, err)
		}
	}
	o, forever := newOwner(t), newKey(t, 0)
	if warnings, err := CheckKeys(openpgp.Keys{forever}, time.Now()); err != nil || len(warnings) > 0 {
		t.Errorf("a good key: %q, %v", warnings, err)
	}
	if _, err := o.publishPackages(t, o.release(t, "v1.37.0+acme.1", nil), t.TempDir(), forever); err == nil ||
		!strings.Contains(err.Error(), "has no packages") {
		t.Errorf("a release without packages: %v", err)
	}
}

// A brittle folder fails after some replacements.
type brittle struct {
	folder
	left *int
}

var errBroken = errors.New("broken")

func (b brittle) Replace(ctx context.Context, changes ...Change) error {
	if *b.left--; *b.left < 0 {
		return errBroken
	}
	return b.folder.Replace(ctx, changes...)
}

// Wherever a publication ends, indexes name what is there, and the same publication again goes on.
func TestInterruptedRepositories(t *testing.T) {
	t.Parallel()
	o, key := newOwner(t), newKey(t, 0)
	first, second := o.packaged(t, "v1.37.0+acme.1"), o.packaged(t, "v1.37.0+acme.2")
	whole := t.TempDir()
	for _, dir := range []string{first, second} {
		if _, err := o.publishPackages(t, dir, whole, key); err != nil {
			t.Fatal(err)
		}
	}
	want := contents(t, whole)
	before := t.TempDir()
	if _, err := o.publishPackages(t, first, before, key); err != nil {
		t.Fatal(err)
	}
	ended := false
	for after := 0; !ended; after++ {
		to := t.TempDir()
		if err := os.CopyFS(to, os.DirFS(before)); err != nil {
			t.Fatal(err)
		}
		accepted, err := Accept(t.Context(), second, o.want(), "", time.Now())
		if err == nil {
			err = accepted.SignPackages(Repositories{Keys: openpgp.Keys{key}, URL: address})
		}
		if err != nil {
			t.Fatal(err)
		}
		left := after
		p, err := accepted.Plan(t.Context(), brittle{folder(to), &left})
		if err != nil {
			t.Fatal(err)
		}
		err = p.Send(t.Context(), func() {})
		ended = err == nil
		if err != nil && !errors.Is(err, errBroken) {
			t.Fatal(err)
		}
		whatIsNamedIsThere(t, filepath.Join(to, "core:", "stable:", "v1.37"), key)
		if _, err := o.publishPackages(t, second, to, key); err != nil {
			t.Fatalf("again, after %d replacements: %v", after, err)
		}
		if diff := cmp.Diff(want, contents(t, to)); diff != "" {
			t.Errorf("again, after %d replacements (-want +got):\n%s", after, diff)
		}
	}
}

// whatIsNamedIsThere reads repositories as apt and dnf do: what is signed, then indexes by digest, then packages.
func whatIsNamedIsThere(t *testing.T, dir string, key *openpgp.Key) {
	t.Helper()
	rs := &packages{Repositories: Repositories{Keys: openpgp.Keys{key}}, channel: folder(dir)}
	signed, err := rs.read(t.Context(), "deb/InRelease")
	if err != nil {
		t.Fatal(err)
	}
	text, err := rs.Keys.Open(signed)
	if err != nil {
		t.Fatal(err)
	}
	index, err := rs.named(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, e := range apt.ReadPackages(index) {
		files = append(files, "deb/"+e.Field("Filename"))
	}
	repomd, err := rs.read(t.Context(), "rpm/repodata/repomd.xml")
	if err != nil {
		t.Fatal(err)
	}
	signature, err := rs.read(t.Context(), "rpm/repodata/repomd.xml.asc")
	if err == nil {
		err = rs.Keys.Check(repomd, signature)
	}
	if err != nil {
		t.Errorf("dnf reads a repomd.xml whose signature is another's: %v", err)
	}
	entries, err := yum.ReadEntries(repomd, func(name string) ([]byte, error) { return os.ReadFile(filepath.Join(dir, "rpm", name)) })
	if err != nil {
		t.Error(err)
	}
	for _, e := range entries {
		files = append(files, "rpm/"+e.Location)
	}
	for _, file := range files {
		if _, err := os.Stat(filepath.Join(dir, file)); err != nil {
			t.Error(err)
		}
	}
}
