package relink

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// Versions of one length, and a longer one.
const (
	one    = "v1.37.1+acme.20261126182614.0123456789ab"
	two    = "v1.37.1+acme.20261127093001.ba9876543210"
	longer = one + ".dirty"
)

// source is a program whose literal is equal to the version one, and must stay so in all of them.
const source = `package main

import "example.com/program/version"

func main() { println(version.Version, version.Date, version.Short, "is not ", "` + one + `") }
`

const versionSource = `package version

var Version, Date, Short, Unused string
`

// A tree has a module with a program, and links that are kept.
type tree struct {
	dir, folder string
	env         []string
}

func newTree(t *testing.T, goos, goarch string) *tree {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command")
	}
	if runtime.GOOS == "windows" {
		t.Skip("no POSIX shell on Windows")
	}
	tr := &tree{dir: t.TempDir(), folder: filepath.Join(t.TempDir(), "it's a folder"), env: append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch,
		"CGO_ENABLED=0", "GOFLAGS=-trimpath -buildvcs=false", "GOWORK=off")}
	for name, text := range map[string]string{
		"go.mod": "module example.com/program\n\ngo 1.24\n", "main.go": source, "version/version.go": versionSource,
	} {
		tr.write(t, name, text)
	}
	return tr
}

func (tr *tree) write(t *testing.T, name, text string) {
	t.Helper()
	name = filepath.Join(tr.dir, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func ldflags(version, date, short string) string {
	const pkg = "example.com/program/version."
	return "-ldflags=-s -w -X " + pkg + "Date=" + date + " -X " + pkg + "Short=" + short + " -X " + pkg + "Unused=" + version + " -X " + pkg + "Version=" + version +
		" -X " + pkg + "Missing=" + version
}

func stamped(version string) string {
	return ldflags(version, fmt.Sprintf("%.10sT18:26:14Z", version[13:]), "37")
}

// usual returns the program that the go command makes alone.
func (tr *tree) usual(t *testing.T, flags string) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "program")
	tr.goBuild(t, "", flags, out)
	return content(t, out)
}

func (tr *tree) goBuild(t *testing.T, toolexec, flags, out string) {
	t.Helper()
	args := []string{"build", flags, "-o", out, "."}
	if toolexec != "" {
		args = append([]string{"build", toolexec}, args[1:]...)
	}
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir, cmd.Env = tr.dir, tr.env
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go %q: %v\n%s", args, err, out)
	}
}

// linked returns the program that the go command makes with Links, and whether it was copied.
func (tr *tree) linked(t *testing.T, flags string) (data []byte, copied bool, file string) {
	t.Helper()
	l := Links{Folder: tr.folder, Scratch: t.TempDir()}
	flag, err := l.Flag()
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "program")
	tr.goBuild(t, flag, flags, out)
	n, err := l.Keep(func(importPath string) string {
		if importPath != "example.com/program" {
			t.Errorf("kept the program of %q", importPath)
		}
		return out
	})
	if err != nil {
		t.Fatal(err)
	}
	return content(t, out), n == 1, out
}

func content(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestCopiedProgramsAreThoseOfTheLinker(t *testing.T) {
	t.Parallel()
	for _, platform := range []string{"linux/amd64", "linux/arm64", "darwin/arm64", "windows/amd64"} {
		t.Run(platform, func(t *testing.T) {
			t.Parallel()
			goos, goarch, _ := strings.Cut(platform, "/")
			tr := newTree(t, goos, goarch)
			for i, step := range []struct {
				flags  string
				copied bool
			}{
				{stamped(one), false},
				{stamped(two), true},
				{stamped(longer), false},
				{stamped(one), true}, // of the program with the version two
				{stamped(longer), true},
				{ldflags(one, "2026-11-28T00:00:00Z", "38"), false}, // a short string is found in many places
			} {
				got, copied, _ := tr.linked(t, step.flags)
				if copied != step.copied {
					t.Errorf("step %d: copied %v, want %v", i, copied, step.copied)
				}
				if want := tr.usual(t, step.flags); !bytes.Equal(got, want) {
					t.Errorf("step %d: not the program that the linker makes with %s", i, step.flags)
				}
			}
		})
	}
}

func TestProgramsThatChangedAreLinked(t *testing.T) {
	t.Parallel()
	tr := newTree(t, runtime.GOOS, runtime.GOARCH)
	check := func(what, version string, want bool) (file string) {
		t.Helper()
		got, copied, file := tr.linked(t, stamped(version))
		if copied != want {
			t.Errorf("%s: copied %v, want %v", what, copied, want)
		}
		if !bytes.Equal(got, tr.usual(t, stamped(version))) {
			t.Errorf("%s: not the program that the linker makes", what)
		}
		return file
	}
	check("the first link", one, false)
	tr.write(t, "version/version.go", versionSource+"\nfunc init() { println(Unused) }\n")
	check("another source", two, false)
	tr.write(t, "version/version.go", versionSource)
	file := check("the first source", two, true)

	if err := os.Chtimes(file, time.Time{}, time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	file = check("a program that was written to", one, false)
	if err := os.Truncate(file, 100); err != nil {
		t.Fatal(err)
	}
	check("a program that was cut off", two, false)

	records, err := filepath.Glob(filepath.Join(tr.folder, "*", "*", recordFile))
	if err != nil || len(records) != 2 {
		t.Fatalf("records %q, %v", records, err)
	}
	for _, record := range records {
		if err := os.WriteFile(record, []byte("{"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	check("a record that was cut off", one, false)
	check("and mended", two, true)
}

func TestTheNewestLinksAreKept(t *testing.T) {
	t.Parallel()
	tr := newTree(t, runtime.GOOS, runtime.GOARCH)
	for i := range 4 {
		tr.write(t, "version/version.go", versionSource+strings.Repeat("\nfunc init() { println(Version) }\n", i))
		tr.linked(t, stamped(one))
	}
	folders, err := filepath.Glob(filepath.Join(tr.folder, "*", "*"))
	if err != nil || len(folders) != kept {
		t.Errorf("kept %q, %v; want %d", folders, err, kept)
	}
	if _, copied, _ := tr.linked(t, stamped(two)); !copied {
		t.Error("the newest link was not kept")
	}
}

func TestErrorsOfToolsAreShown(t *testing.T) {
	t.Parallel()
	tr := newTree(t, runtime.GOOS, runtime.GOARCH)
	tr.write(t, "version/version.go", "package version\n\nfunc missing()\n\nvar Version, Date, Short = \"\", \"\", \"\"\n\nfunc init() { missing() }\n")
	tr.write(t, "version/empty.s", "")
	messages := map[string]string{}
	for _, links := range []bool{false, true} {
		args := []string{"build", stamped(one), "-o", filepath.Join(t.TempDir(), "program"), "."}
		if links {
			flag, err := Links{Folder: tr.folder, Scratch: t.TempDir()}.Flag()
			if err != nil {
				t.Fatal(err)
			}
			args = append([]string{"build", flag}, args[1:]...)
		}
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir, cmd.Env = tr.dir, tr.env
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "relocation target example.com/program/version.missing not defined") {
			t.Errorf("links %v: %v, output %s", links, err, out)
		}
		messages[fmt.Sprint(links)] = strings.ReplaceAll(string(out), tr.dir, "")
	}
	if messages["true"] != messages["false"] {
		t.Errorf("the go command prints %q alone, and %q with links", messages["false"], messages["true"])
	}
}

func TestUnusualLinksAreLeftToTheLinker(t *testing.T) {
	t.Parallel()
	usual := []string{"-o", "out", "-importcfg", "cfg", "-buildmode=exe", "-buildid=0123456789/abcdef/x/y", "-s", "-w", "-X", "a.b=" + one, "-extld=gcc", "main.a"}
	k, err := parse("link", usual)
	if err != nil || len(k.values) != 1 || k.values[0].Name != "a.b" || k.values[0].Text != one || k.output != "out" || k.config != "cfg" {
		t.Fatalf("%+v, %v", k, err)
	}
	for _, args := range [][]string{
		{"-V=full"}, {}, {"-o"}, usual[2:], usual[:2],
		append([]string{"-linkmode=external"}, usual...),
		append([]string{"-linkmode", "external"}, usual...),
		append([]string{"-fipso", "fips.o"}, usual...),
		append([]string{"-race"}, usual...),
		append([]string{"-B", "gobuildid"}, usual...),
		append([]string{"-buildmode=c-shared"}, usual...),
		append([]string{"-buildid="}, usual...),
		{"-o", "out", "-importcfg", "cfg", "-buildid=0123456789/abcdef/x/y", "-X", "a.b=short", "-X=a.c=" + one, "main.a"},
	} {
		// The go command gives -buildid last in one of them, as a user's -ldflags would.
		if len(args) > 0 && args[0] == "-buildid=" {
			args = append(args[1:], "-buildid=")
		}
		if _, err := parse("link", args); err == nil {
			t.Errorf("%q are parsed", args)
		}
	}
}
