package relink

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/action/cachetest"
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

// A tree has a module with a program, and links.
type tree struct {
	dir   string
	links Links
	env   []string
}

func newTree(t *testing.T, goos, goarch string) *tree {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command")
	}
	if runtime.GOOS == "windows" {
		t.Skip("no POSIX shell on Windows")
	}
	tr := &tree{dir: t.TempDir(), links: Links{filepath.Join(t.TempDir(), "it's a folder")}, env: append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch,
		"GOAMD64=v1", "GOARM64=v8.0", "CGO_ENABLED=0", "GOFLAGS=-trimpath -buildvcs=false", "GOWORK=off")}
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

const pkg = "example.com/program/version."

func ldflags(version, date, short string) string {
	return "-s -w -X " + pkg + "Date=" + date + " -X " + pkg + "Short=" + short + " -X " + pkg + "Unused=" + version + " -X " + pkg + "Version=" + version +
		" -X " + pkg + "Missing=" + version
}

func stamped(version string) string {
	return ldflags(version, fmt.Sprintf("%.8sT18:26:14Zabcdef", version[13:]), "37")
}

// build runs the go command, with more flags.
func (tr *tree) build(t *testing.T, flags string, more ...string) (program string, output []byte, err error) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "program")
	cmd := exec.CommandContext(t.Context(), "go", append(append([]string{"build"}, more...), "-ldflags="+flags, "-o", out, ".")...)
	cmd.Dir, cmd.Env = tr.dir, tr.env
	output, err = cmd.CombinedOutput()
	return out, output, err
}

// usual returns the program that the go command makes alone.
func (tr *tree) usual(t *testing.T, flags string) []byte {
	t.Helper()
	out, output, err := tr.build(t, flags)
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return content(t, out)
}

// program returns what is to be made with flags. The key has the sources, too.
func (tr *tree) program(t *testing.T, flags string) Program {
	t.Helper()
	masked, values := Mask(flags)
	sum := sha256.Sum256([]byte(masked + string(content(t, filepath.Join(tr.dir, "version", "version.go")))))
	return Program{Name: "linux/amd64/program", Key: hex.EncodeToString(sum[:]), Values: values, File: filepath.Join(t.TempDir(), "program")}
}

// link links a program, and keeps it.
func (tr *tree) link(t *testing.T, flags string) Program {
	t.Helper()
	records := t.TempDir()
	flag, err := Flag(records)
	if err != nil {
		t.Fatal(err)
	}
	out, output, err := tr.build(t, flags, flag)
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	record := Records(records)["example.com/program"]
	if record == "" {
		t.Fatal("the link was not recorded")
	}
	p := tr.program(t, flags)
	p.File = out
	if err := tr.links.Keep(p, record, false); err != nil {
		t.Fatal(err)
	}
	return p
}

// get copies a program, or else links it.
func (tr *tree) get(t *testing.T, flags string) (p Program, copied bool) {
	t.Helper()
	p = tr.program(t, flags)
	if copied, _ := tr.links.Copy(p, true); copied {
		return p, true
	}
	return tr.link(t, flags), false
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
	for _, platform := range []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64"} {
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
				p, copied := tr.get(t, step.flags)
				if copied != step.copied {
					t.Errorf("step %d: copied %v, want %v", i, copied, step.copied)
				}
				if !bytes.Equal(content(t, p.File), tr.usual(t, step.flags)) {
					t.Errorf("step %d: not the program that the linker makes with %s", i, step.flags)
				}
			}
		})
	}
}

func TestChangedProgramsAreNotCopied(t *testing.T) {
	t.Parallel()
	tr := newTree(t, runtime.GOOS, runtime.GOARCH)
	get := func(what, version string, want bool) Program {
		t.Helper()
		p, copied := tr.get(t, stamped(version))
		if copied != want {
			t.Errorf("%s: copied %v, want %v", what, copied, want)
		}
		if !bytes.Equal(content(t, p.File), tr.usual(t, stamped(version))) {
			t.Errorf("%s: not the program that the linker makes", what)
		}
		return p
	}
	p := get("the first link", one, false)
	if err := os.Chtimes(p.File, time.Time{}, time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	p = get("a program that was written to", two, false)
	if err := os.Truncate(p.File, 100); err != nil {
		t.Fatal(err)
	}
	p = get("a program that was cut off", one, false)
	dir := tr.links.dir(p)
	if err := os.WriteFile(filepath.Join(dir, stateFile), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	get("a state that was cut off", two, false)

	// What a program is a copy of was checked when it was first copied, with its own values.
	s, err := readState(dir)
	if err != nil || s.Checked {
		t.Fatalf("checked: %v, %v", s.Checked, err)
	}
	s.Record.Action.After += "something else"
	data, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, stateFile), data, 0o644); err != nil {
		t.Fatal(err)
	}
	get("a record that does not give the program", one, false)
	get("and mended", two, true)
	if s, err := readState(dir); err != nil || !s.Checked {
		t.Errorf("checked: %v, %v", s.Checked, err)
	}
}

func TestForeignProgramsAreNotCopiedForOwnOnes(t *testing.T) {
	t.Parallel()
	tr := newTree(t, runtime.GOOS, runtime.GOARCH)
	tr.link(t, stamped(one))
	m := cachetest.New()
	if err := (Share{m, t.TempDir()}).Store(t.Context(), tr.links, tr.program(t, stamped(one))); err != nil {
		t.Fatal(err)
	}

	other := Links{filepath.Join(t.TempDir(), "links")}
	p := tr.program(t, stamped(two))
	if copied, _ := other.Copy(p, false); copied {
		t.Error("copied from nothing")
	}
	if made, err := (Share{m, t.TempDir()}).Copy(t.Context(), other, p); !made || err != nil || !bytes.Equal(content(t, p.File), tr.usual(t, stamped(two))) {
		t.Errorf("made %v, %v; or not the program that the linker makes", made, err)
	}
	p = tr.program(t, stamped(one))
	if copied, _ := other.Copy(p, true); copied {
		t.Error("what a cache had a part in is copied for what must be made here")
	}
	for range 2 {
		if copied, foreign := other.Copy(p, false); !copied || !foreign {
			t.Errorf("copied %v, foreign %v", copied, foreign)
		}
	}

	// Nothing that is wrong in a cache ends up in a program.
	for digest, data := range m.Contents {
		for name, change := range map[string]func([]byte) []byte{
			"cut off": func(b []byte) []byte { return b[:len(b)/2] },
			"empty":   func(b []byte) []byte { return nil },
			"text":    func(b []byte) []byte { return []byte("not a program") },
			"offsets": func(b []byte) []byte {
				return bytes.ReplaceAll(b, []byte(`"Offsets":[`), []byte(`"Offsets":[-1,99999999999,`))
			},
		} {
			changed := change(bytes.Clone(data))
			if bytes.Equal(changed, data) {
				continue
			}
			// The cache compares contents with their digests, so this is one that its signer has got wrong.
			wrong := cachetest.New()
			wrong.Contents = maps.Clone(m.Contents)
			wrong.Contents[digest] = changed
			for key, r := range m.Results {
				r := &action.Result{Entries: slices.Clone(r.Entries)}
				for i := range r.Entries {
					if r.Entries[i].SHA256 == digest {
						r.Entries[i].Size = int64(len(changed))
					}
				}
				wrong.Results[key] = r
			}
			p := tr.program(t, stamped(two))
			if made, err := (Share{wrong, t.TempDir()}).Copy(t.Context(), Links{t.TempDir()}, p); made || err == nil {
				t.Errorf("%s: made %v, %v", name, made, err)
			}
		}
	}
}

func TestTheNewestLinksAreKept(t *testing.T) {
	t.Parallel()
	tr := newTree(t, runtime.GOOS, runtime.GOARCH)
	for i := range 4 {
		tr.write(t, "version/version.go", versionSource+strings.Repeat("\nfunc init() { println(Version) }\n", i))
		tr.link(t, stamped(one))
	}
	folders, err := filepath.Glob(filepath.Join(tr.links.Folder, "*", "*"))
	if err != nil || len(folders) != kept {
		t.Errorf("kept %q, %v; want %d", folders, err, kept)
	}
	if _, copied := tr.get(t, stamped(two)); !copied {
		t.Error("the newest link was not kept")
	}
}

func TestErrorsOfToolsAreShown(t *testing.T) {
	t.Parallel()
	tr := newTree(t, runtime.GOOS, runtime.GOARCH)
	tr.write(t, "version/version.go", "package version\n\nfunc missing()\n\nvar Version, Date, Short = \"\", \"\", \"\"\n\nfunc init() { missing() }\n")
	tr.write(t, "version/empty.s", "")
	_, want, err := tr.build(t, stamped(one))
	if err == nil || !strings.Contains(string(want), "relocation target example.com/program/version.missing not defined") {
		t.Fatalf("%v: %s", err, want)
	}
	flag, err := Flag(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if _, got, err := tr.build(t, stamped(one), flag); err == nil || !bytes.Equal(got, want) {
		t.Errorf("%v: the go command prints %q alone, and %q with the flag", err, want, got)
	}
}

func TestMaskHasLengths(t *testing.T) {
	t.Parallel()
	masked, values := Mask("-s  -X a.Version=" + one + " -X a.Short=37 -w -X b.Version=" + two)
	if want := "-s -X a.Version: 40 bytes -X a.Short=37 -w -X b.Version: 40 bytes"; masked != want ||
		!maps.Equal(values, map[string]string{"a.Version": one, "b.Version": two}) {
		t.Errorf("%q, %q; want %q", masked, values, want)
	}
	const quoted = "-X 'a.Version=a version with blanks'"
	if masked, values := Mask(quoted); masked != quoted || len(values) > 0 {
		t.Errorf("%q, %q", masked, values)
	}
}

func TestUnusualLinksAreLeftToTheLinker(t *testing.T) {
	t.Parallel()
	const id = "-buildid=action/main/content/action"
	usual := []string{"-o", "out", "-importcfg", "cfg", "-X=runtime.godebugDefault=a=1", "-buildmode=exe", id, "-s", "-w", "-X", "a.b=" + one, "-extld=gcc", "main.a"}
	k, err := parse("link", usual)
	if err != nil || k.output != "out" || k.config != "cfg" || k.mode != "exe" || k.godebug != "a=1" || !slices.Equal(k.flags, []string{"-s", "-w", "-X", "a.b=" + one}) ||
		!slices.Equal(k.values, []int{10}) {
		t.Fatalf("%+v, %v", k, err)
	}
	with := func(more ...string) []string { return slices.Insert(slices.Clone(usual), 7, more...) }
	for _, args := range [][]string{
		{"-V=full"}, {}, {"-o"}, usual[2:], usual[:2], usual[:7], usual[:len(usual)-1],
		with("-linkmode=external"), with("-linkmode", "external"), with("-fipso", "fips.o"), with("-race"), with("-B", "gobuildid"), with("-buildmode=c-shared"),
		with("-buildid="), append(slices.Clone(usual), "other.a"),
		{"-o", "out", "-importcfg", "cfg", "-buildmode=exe", id, "-X", "a.b=short", "-extld=gcc", "main.a"},
	} {
		if k, err := parse("link", args); err == nil {
			t.Errorf("%q are parsed: %+v", args, k)
		}
	}
}
