package rpm

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/mechanism/archive"
	"slipway.build/pkg/mechanism/needs"
	"slipway.build/pkg/mechanism/relation"
)

// tool returns a package with a file of 100,000 bytes, which the cache keeps, configuration, and a folder.
func tool(t *testing.T) *Package {
	t.Helper()
	program := filepath.Join(t.TempDir(), "tool")
	if err := os.WriteFile(program, bytes.Repeat([]byte("0123456789"), 10_000), 0o700); err != nil {
		t.Fatal(err)
	}
	return &Package{
		Name: "tool", Version: "1.2~rc.1+acme.1", Release: "1", Arch: "x86_64", Packager: "Acme <k8s@acme.example>", License: "MIT",
		URL: "https://acme.example", Summary: "Does something", Description: "More of it.",
		Requires:   []relation.Relation{{Name: "iptables", Op: ">=", Version: "1.4"}},
		Recommends: []relation.Relation{{Name: "more"}},
		Conflicts:  []relation.Relation{{Name: "tools", Op: "<", Version: "2"}},
		Files: []archive.Entry{
			{Name: "usr/bin/tool", Mode: 0o755, Path: program}, {Name: "etc/sysconfig/tool", Data: []byte("A=\n")},
			{Name: "usr/share/doc/tool/copyright", Data: []byte("yours")},
			{Name: "usr/bin/link", Mode: fs.ModeSymlink, Link: "tool"}, {Name: "var/lib/tool", Mode: fs.ModeDir},
		},
		Changes: "- Something.",
		Scripts: Scripts{Post: "true\n", Preun: "false\n"},
		Time:    time.Unix(1_700_000_001, 0),
	}
}

func TestRPMReadsWhatWasWritten(t *testing.T) {
	t.Parallel()
	rpm, keys := needs.Program(t, "rpm"), needs.Program(t, "rpmkeys")
	dir := t.TempDir()
	file := filepath.Join(dir, "tool.rpm")
	var first, again bytes.Buffer
	if err := tool(t).Write(t.Context(), &first, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	if err := tool(t).Write(t.Context(), &again, ""); err != nil || !bytes.Equal(first.Bytes(), again.Bytes()) {
		t.Errorf("in another folder, without a cache: other bytes, error %v", err)
	}
	if err := os.WriteFile(file, first.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	run := func(program string, args ...string) string {
		cmd := exec.CommandContext(t.Context(), program, append([]string{"--dbpath", filepath.Join(dir, "db")}, args...)...)
		cmd.Env = append(os.Environ(), "LC_ALL=C", "TZ=UTC")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s %q: %v", program, args, err)
		}
		return string(out)
	}
	const format = `%{nevra} %{license} %{url} %{packager} %{buildhost} %{buildtime} %{size}
[%{filemodes:perms} %{filesizes} %{filenames} %{fileflags:fflags} %{filelinktos} %{fileusername}
][%{requirename} %{requireflags:depflags} %{requireversion} %{requireflags:deptype}
][%{conflictnevrs} %{recommendnevrs} %{providenevrs}
]%{postin} %{preun} %{description} %{group} %{changelogname} %{changelogtext}
`
	want := `tool-1.2~rc.1+acme.1-1.x86_64 MIT https://acme.example Acme <k8s@acme.example> localhost 1700000001 100012
-rw-r--r-- 3 /etc/sysconfig/tool cn  root
lrwxrwxrwx 4 /usr/bin/link  tool root
-rwxr-xr-x 100000 /usr/bin/tool   root
-rw-r--r-- 5 /usr/share/doc/tool/copyright d  root
drwxr-xr-x 0 /var/lib/tool   root
iptables >= 1.4 manual
/bin/sh   post,interp
/bin/sh   preun,interp
rpmlib(CompressedFileNames) <= 3.0.4-1 rpmlib
rpmlib(FileDigests) <= 4.6.0-1 rpmlib
rpmlib(PayloadFilesHavePrefix) <= 4.0-1 rpmlib
rpmlib(TildeInVersions) <= 4.10.0-1 rpmlib
tools < 2 more tool = 1.2~rc.1+acme.1-1
true
 false
 More of it. Applications/System Acme <k8s@acme.example> - 1.2~rc.1+acme.1-1 - Something.
`
	if diff := cmp.Diff(want, run(rpm, "-qp", "--qf", format, file)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if out := run(keys, "-K", file); out != file+": digests OK\n" {
		t.Errorf("rpmkeys -K: %s", out)
	}
	if out, err := exec.CommandContext(t.Context(), needs.Program(t, "rpm2archive"), file).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	unpacked := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "tar", "-xzf", file+".tgz", "-C", unpacked).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for name, want := range map[string]string{"etc/sysconfig/tool": "A=\n", "usr/share/doc/tool/copyright": "yours",
		"usr/bin/link": strings.Repeat("0123456789", 10_000)} {
		if got, err := os.ReadFile(filepath.Join(unpacked, name)); string(got) != want {
			t.Errorf("%s has %.20q, %v", name, got, err)
		}
	}
	for at := range 4 { // of the header of digests, the main one, and the archive
		damaged := bytes.Clone(first.Bytes())
		damaged[150+at*(len(damaged)-200)/3] ^= 1
		name := filepath.Join(dir, "damaged.rpm")
		if err := os.WriteFile(name, damaged, 0o644); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.CommandContext(t.Context(), keys, "-K", name).CombinedOutput(); err == nil {
			t.Errorf("a damaged file: %s", out)
		}
	}
}
