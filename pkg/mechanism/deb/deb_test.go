package deb

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

// tool returns a package with a file of 100,000 bytes, which the cache keeps, and its file of a folder.
func tool(t *testing.T) *Package {
	t.Helper()
	program := filepath.Join(t.TempDir(), "tool")
	if err := os.WriteFile(program, bytes.Repeat([]byte("0123456789"), 10_000), 0o700); err != nil {
		t.Fatal(err)
	}
	return &Package{
		Name: "tool", Version: "1.2~rc.1+acme.1-1", Arch: "amd64", Maintainer: "Acme <k8s@acme.example>", Section: "admin",
		Homepage: "https://acme.example", Summary: "Does something", Description: "More of it.\n\nAnd more.",
		Depends:   []relation.Relation{{Name: "iptables", Op: ">=", Version: "1.4"}, {Name: "mount"}},
		Conflicts: []relation.Relation{{Name: "tools", Op: "<", Version: "2"}},
		Files: []archive.Entry{
			{Name: "usr/bin/tool", Mode: 0o755, Path: program}, {Name: "etc/default/tool", Data: []byte("A=\n")},
			{Name: "etc/link", Mode: fs.ModeSymlink, Link: "default"}, {Name: "var/lib/tool", Mode: fs.ModeDir},
		},
		Scripts: map[string]string{"postinst": "#!/bin/sh\n", "prerm": "#!/bin/sh\n"},
		Time:    time.Unix(1_700_000_001, 0),
	}
}

func write(t *testing.T, p *Package, cache string) (file string, data []byte) {
	t.Helper()
	var b bytes.Buffer
	if err := p.Write(t.Context(), &b, cache); err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "tool.deb")
	if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return file, b.Bytes()
}

func TestDpkgReadsWhatWasWritten(t *testing.T) {
	t.Parallel()
	needs.Program(t, "dpkg-deb")
	file, data := write(t, tool(t), t.TempDir())
	for _, tt := range []struct {
		flag string
		want string
	}{
		{"--field", `Package: tool
Version: 1.2~rc.1+acme.1-1
Architecture: amd64
Maintainer: Acme <k8s@acme.example>
Installed-Size: 101
Depends: iptables (>= 1.4), mount
Conflicts: tools (<< 2)
Section: admin
Priority: optional
Homepage: https://acme.example
Description: Does something
 More of it.
 .
 And more.
`},
		{"--contents", `drwxr-xr-x 0/0               0 2023-11-14 22:13 etc/
drwxr-xr-x 0/0               0 2023-11-14 22:13 etc/default/
-rw-r--r-- 0/0               3 2023-11-14 22:13 etc/default/tool
lrwxrwxrwx 0/0               0 2023-11-14 22:13 etc/link -> default
drwxr-xr-x 0/0               0 2023-11-14 22:13 usr/
drwxr-xr-x 0/0               0 2023-11-14 22:13 usr/bin/
-rwxr-xr-x 0/0          100000 2023-11-14 22:13 usr/bin/tool
drwxr-xr-x 0/0               0 2023-11-14 22:13 var/
drwxr-xr-x 0/0               0 2023-11-14 22:13 var/lib/
drwxr-xr-x 0/0               0 2023-11-14 22:13 var/lib/tool/
`},
	} {
		cmd := exec.CommandContext(t.Context(), "dpkg-deb", tt.flag, file)
		cmd.Env = append(os.Environ(), "TZ=UTC", "LC_ALL=C")
		out, err := cmd.CombinedOutput()
		if diff := cmp.Diff(tt.want, strings.ReplaceAll(string(out), "./", "")); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", tt.flag, err, diff)
		}
	}
	control := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "dpkg-deb", "--control", file, control).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if conffiles, err := os.ReadFile(filepath.Join(control, "conffiles")); string(conffiles) != "/etc/default/tool\n" {
		t.Errorf("conffiles %q, %v", conffiles, err)
	}
	for _, name := range []string{"postinst", "prerm"} {
		if info, err := os.Stat(filepath.Join(control, name)); err != nil || info.Mode() != 0o755 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	// Another folder, without a cache.
	if _, again := write(t, tool(t), ""); !bytes.Equal(data, again) {
		t.Error("a second run wrote other bytes")
	}
}
