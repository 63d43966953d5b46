//go:build integration

package integration

import (
	"debug/buildinfo"
	"debug/elf"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

func TestMakeTestRunsThePackagesOfWhat(t *testing.T) {
	tr := clone(t)
	got := tr.with("WHAT=./pkg/mechanism/checksum").with(likeRelease...).make(t, "test").ok(t)
	if !strings.Contains(got.stdout, "slipway.build/pkg/mechanism/checksum") ||
		strings.Contains(got.stdout, "slipway.build/pkg/mechanism/archive") {
		t.Errorf("it did not test pkg/mechanism/checksum alone: %v", got)
	}
}

func TestVariablesOfACompileAreHonored(t *testing.T) {
	cloneLane.join(t)
	tr := clone(t)
	const name = "kube-log-runner"
	for _, c := range []struct {
		env     []string
		symbols bool
		dwarf   bool
		tags    string
	}{
		{nil, false, false, "selinux,notest,grpcnotrace"},
		{[]string{"GOLDFLAGS=-w"}, true, false, "selinux,notest,grpcnotrace"},
		{[]string{"GOFLAGS=-tags=acme"}, false, false, "selinux,notest,grpcnotrace,acme"},
		{[]string{"DBG=1"}, true, true, "selinux,notest"},
	} {
		t.Run(strings.Join(c.env, " "), func(t *testing.T) {
			tr := tr.with(c.env...)
			tr.make(t, "WHAT="+name).ok(t)
			f, err := elf.Open(tr.path(hostBin(name)))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			_, dwarf := f.DWARF()
			if symbols := f.Section(".symtab") != nil; symbols != c.symbols || (dwarf == nil && f.Section(".debug_info") != nil) != c.dwarf {
				t.Errorf("symbols: %v, want %v; DWARF: %v, want %v", symbols, c.symbols, dwarf, c.dwarf)
			}
			info, err := buildinfo.ReadFile(tr.path(hostBin(name)))
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range info.Settings {
				if s.Key == "-tags" && s.Value != c.tags {
					t.Errorf("tags are %s, want %s", s.Value, c.tags)
				}
				if s.Key == "-gcflags" && (len(c.env) == 0 || c.env[0] != "DBG=1") {
					t.Errorf("compiled with %s=%s", s.Key, s.Value)
				}
			}
			tr.jsonRun(t, "build", name).didNothing(t)
		})
	}
}

// The second version is as long as the first one. Its binary is that of the command line which a dry run prints, and that links.
func TestProgramsOfTwoFoldersHaveTheSameCryptographicModule(t *testing.T) {
	cloneLane.join(t)
	const name = "kube-log-runner"
	var programs []string
	for range 2 {
		tr := clone(t)
		tr.edit(t, "release/release.yaml", "\n  sums:\n", "\n  fips: v1.0.0\n  sums:\n")
		tr.make(t, "WHAT="+name).ok(t)
		info, err := buildinfo.ReadFile(tr.path(hostBin(name)))
		if err != nil {
			t.Fatal(err)
		}
		for key, want := range map[string]string{"GOFIPS140": "v1.0.0-c2097c7c", "DefaultGODEBUG": "fips140=on"} {
			if !slices.ContainsFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key == key && s.Value == want }) {
				t.Errorf("%s is not %s in %v", key, want, info.Settings)
			}
		}
		programs = append(programs, tr.read(t, hostBin(name)))
		tr.edit(t, "release/release.yaml", "fips: v1.0.0", "fips: v1.0.1")
		got := tr.make(t, "WHAT="+name)
		if got.code == 0 || !strings.Contains(got.stderr, " has no version v1.0.1 of Go's cryptographic module; it has v1.0.0") {
			t.Errorf("%v", got)
		}
	}
	if programs[0] != programs[1] {
		t.Error("the programs differ")
	}
}

func TestVersionOfTheEnvironmentIsHonored(t *testing.T) {
	tr := clone(t)
	base := strings.SplitN(tr.stamp(t).GitVersion, "+", 2)[0]
	for i, v := range []struct{ suffix, commit, epoch, date string }{
		{"+acme.1", "00112233445566778899aabbccddeeff00112233", "1700000000", "2023-11-14T22:13:20Z"},
		{"+acme.2", "33221100ffeeddccbbaa99887766554433221100", "1800000000", "2027-01-15T08:00:00Z"},
	} {
		tr := tr.with("KUBE_GIT_VERSION="+base+v.suffix, "KUBE_GIT_COMMIT="+v.commit, "SOURCE_DATE_EPOCH="+v.epoch)
		line := ""
		for l := range strings.Lines(tr.slipway(t, "build", "kubectl", "--dry-run", "--verbose=1").ok(t).stdout) {
			if command, ok := strings.CutPrefix(strings.TrimSpace(l), "$ "); ok {
				line = command
			}
		}
		out := t.TempDir()
		es := tr.jsonRun(t, "build", "kubectl", "--output", out)
		const copied = "1 of 1 binaries differ only in the version from what was linked before"
		if got := slices.Contains(es.steps(), copied); got != (i == 1) {
			t.Errorf("%s: steps %q", v.suffix, es.steps())
		}
		kubectl := filepath.Join(out, "kubectl")
		got := run(t, tr.dir, nil, kubectl, "version", "--client", "-o", "yaml").ok(t).stdout
		for _, want := range []string{base + v.suffix + "\n", v.commit + "\n", `"` + v.date + `"`} {
			if !strings.Contains(got, want) {
				t.Errorf("kubectl version does not print %q:\n%s", want, got)
			}
		}
		if info, err := os.Stat(kubectl); err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("--output made %v (%v), want mode 755", info, err)
		}
		linked := t.TempDir()
		folder := tr.path(filepath.Dir(hostBin("kubectl"))) + "/"
		if !strings.Contains(line, " -o "+folder+" ") {
			t.Fatalf("the dry run prints no go build that writes into %s: %q", folder, line)
		}
		run(t, tr.dir, nil, "sh", "-c", strings.Replace(line, " -o "+folder+" ", " -o "+linked+"/ ", 1)).ok(t)
		if (tree{dir: linked}).sum(t, "kubectl") != (tree{dir: out}).sum(t, "kubectl") {
			t.Errorf("%s: not the binary of %s", v.suffix, line)
		}
	}
	tr.with("KUBE_GIT_VERSION=1.2").slipway(t, "version").fails(t, 2, "KUBE_GIT_VERSION")
}

func TestImagesGetTheEnvironmentsTagsToo(t *testing.T) {
	r := baseline(t)
	tag := strings.ReplaceAll(r.version, "+", "_")
	tr := r.tree.with("KUBE_DOCKER_REGISTRY=registry.example/acme", "KUBE_DOCKER_IMAGE_TAG=v9")
	tr.make(t, "quick-release-images").ok(t)
	for _, name := range imageNames {
		want := append(imageTags("registry.k8s.io", name, tag), imageTags("registry.example/acme", name, "v9")...)
		slices.Sort(want)
		if got := repoTags(t, r.path(hostImage(name)+".tar")); !slices.Equal(got, want) {
			t.Errorf("%s.tar has the tags %q, want %q", name, got, want)
		}
	}
	r.make(t, quick).ok(t)
	r.sameFiles(t, r.tree)
}
