package relink

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
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
	"slipway.build/pkg/mechanism/needs"
)

// TestMain is also the linker.
func TestMain(m *testing.M) {
	Main()
	os.Exit(m.Run())
}

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
	needs.Program(t, "go")
	if runtime.GOOS == "windows" {
		t.Skip("no POSIX shell on Windows")
	}
	tr := &tree{dir: t.TempDir(), links: Links{filepath.Join(t.TempDir(), "it's a folder")},
		env: append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch,
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
	return "-s -w -X " + pkg + "Date=" + date + " -X " + pkg + "Short=" + short + " -X " + pkg + "Unused=" + version + " -X " + pkg +
		"Version=" + version +
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
	return Program{Name: "linux/amd64/program", Key: hex.EncodeToString(sum[:]), Values: values}
}

// link links a program.
func (tr *tree) link(t *testing.T, flags string) (file string, r Record) {
	t.Helper()
	records := t.TempDir()
	flag, err := Flag(records)
	if err != nil {
		t.Fatal(err)
	}
	file, output, err := tr.build(t, flags, flag)
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	if r, err = ReadRecord(Records(records)["example.com/program"]); err != nil {
		t.Fatalf("the link was not recorded: %v", err)
	}
	return file, r
}

// get copies a program, or else links it, and keeps it.
func (tr *tree) get(t *testing.T, flags string) (file string, copied bool) {
	t.Helper()
	p := tr.program(t, flags)
	file = filepath.Join(t.TempDir(), "program")
	made, _ := tr.links.Copy(p, file, true)
	if copied = made != nil; !copied {
		made = new(Record)
		file, *made = tr.link(t, flags)
	}
	if err := tr.links.Keep(p, file, *made, action.Built); err != nil {
		t.Fatal(err)
	}
	return file, copied
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
				file, copied := tr.get(t, step.flags)
				if copied != step.copied {
					t.Errorf("step %d: copied %v, want %v", i, copied, step.copied)
				}
				if !bytes.Equal(content(t, file), tr.usual(t, step.flags)) {
					t.Errorf("step %d: not the program that the linker makes with %s", i, step.flags)
				}
			}
		})
	}
}

func TestChangedProgramsAreNotCopied(t *testing.T) {
	t.Parallel()
	tr := newTree(t, runtime.GOOS, runtime.GOARCH)
	tr.get(t, stamped(one))
	p := tr.program(t, stamped(two))
	dir := tr.links.dir(p)
	program, stateName := filepath.Join(dir, programFile), filepath.Join(dir, stateFile)
	data := content(t, program)
	var kept state
	if err := json.Unmarshal(content(t, stateName), &kept); err != nil {
		t.Fatal(err)
	}
	// put writes a program that looks as if nobody had written to it, and a state.
	put := func(data []byte, s state) {
		t.Helper()
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.WriteFile(program, data, 0o755), os.Chtimes(program, time.Time{}, s.Modified),
			os.WriteFile(stateName, text, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	copies := func(what string, want bool) {
		t.Helper()
		if made, _ := tr.links.Copy(p, filepath.Join(t.TempDir(), "program"), true); (made != nil) != want {
			t.Errorf("%s: copied %v, want %v", what, made != nil, want)
		}
	}
	change := func(what string, change func(r *Record, program []byte) []byte) {
		t.Helper()
		s := kept
		s.Record.Values, s.Record.BuildID = slices.Clone(s.Record.Values), slices.Clone(s.Record.BuildID)
		put(change(&s.Record, bytes.Clone(data)), s)
		copies(what, false)
		put(data, kept)
		copies(what+", mended", true)
	}
	last := func(r *Record) *Value { return &r.Values[len(r.Values)-1] }
	change("a program that was cut off", func(_ *Record, b []byte) []byte { return b[:100] })
	change("an empty program", func(_ *Record, b []byte) []byte { return nil })
	change("a byte that was changed", func(_ *Record, b []byte) []byte { b[len(b)/2]++; return b })
	change("a longer program", func(_ *Record, b []byte) []byte { return append(b, 0) })
	change("another action", func(r *Record, b []byte) []byte { r.Link.External += "x"; return b })
	change("another main package", func(r *Record, b []byte) []byte { r.Link.Main += "x"; return b })
	change("a value less", func(r *Record, b []byte) []byte { r.Values = r.Values[1:]; return b })
	change("another value", func(r *Record, b []byte) []byte { last(r).Text = longer; return b })
	change("an offset that is too large", func(r *Record, b []byte) []byte { last(r).Offsets = []int64{1 << 60}; return b })
	change("a negative offset", func(r *Record, b []byte) []byte { last(r).Offsets = []int64{-1}; return b })
	change("a wrong offset", func(r *Record, b []byte) []byte { last(r).Offsets = []int64{1000}; return b })
	change("a wrong offset of the build ID", func(r *Record, b []byte) []byte { r.BuildID = []int64{1000}; return b })
	change("the build ID twice", func(r *Record, b []byte) []byte { r.BuildID = append(r.BuildID, r.BuildID...); return b })
	change("no build ID", func(r *Record, b []byte) []byte { r.BuildID = nil; return b })
	change("a wrong offset of the host's ID", func(r *Record, b []byte) []byte { r.HostID++; return b })

	if err := os.Chtimes(program, time.Time{}, time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	copies("a program that was written to", false)
	put(data, kept)
	if err := os.WriteFile(stateName, []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	copies("a state that was cut off", false)
	put(data, kept)
	if err := os.Remove(program); err != nil {
		t.Fatal(err)
	}
	copies("a program that is gone", false)

	tr.write(t, "version/version.go", versionSource+"\nfunc init() { println(Unused) }\n")
	if made, _ := tr.links.Copy(tr.program(t, stamped(two)), filepath.Join(t.TempDir(), "program"), true); made != nil {
		t.Error("copied for other sources")
	}
}

func TestProgramsAreShared(t *testing.T) {
	t.Parallel()
	tr := newTree(t, runtime.GOOS, runtime.GOARCH)
	file, r := tr.link(t, stamped(one))
	m := cachetest.New()
	if err := (Share{m, t.TempDir()}).Store(t.Context(), tr.program(t, stamped(one)), file, r); err != nil {
		t.Fatal(err)
	}
	p := tr.program(t, stamped(two))
	made := filepath.Join(t.TempDir(), "program")
	if r, err := (Share{m, t.TempDir()}).Copy(t.Context(), p, made); r == nil || err != nil ||
		!bytes.Equal(content(t, made), tr.usual(t, stamped(two))) {
		t.Errorf("made %v, %v; or not the program that the linker makes", r, err)
	} else if err := tr.links.Keep(p, made, *r, action.Derived); err != nil {
		t.Fatal(err)
	}
	again := filepath.Join(t.TempDir(), "program")
	if r, origin := tr.links.Copy(p, again, true); r != nil {
		t.Errorf("what a cache had a part in (%q) is copied for what must be made here", origin)
	}
	if r, origin := tr.links.Copy(p, again, false); r == nil || origin != action.Derived || !bytes.Equal(content(t, again), content(t, made)) {
		t.Errorf("copied %v, origin %q, or not the program", r != nil, origin)
	}

	// The cache compares contents with their digests. Here they are wrong all the same.
	for digest, data := range m.Contents {
		for what, change := range map[string]func([]byte) []byte{
			"cut off":        func(b []byte) []byte { return b[:len(b)/2] },
			"empty":          func(b []byte) []byte { return nil },
			"no program":     func(b []byte) []byte { return []byte("not a program") },
			"another offset": func(b []byte) []byte { return bytes.Replace(b, []byte(`"Offsets":[`), []byte(`"Offsets":[1000,`), 1) },
		} {
			changed := change(bytes.Clone(data))
			if bytes.Equal(changed, data) {
				continue
			}
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
			if r, err := (Share{wrong, t.TempDir()}).Copy(t.Context(), p, filepath.Join(t.TempDir(), "program")); r != nil && err == nil {
				t.Errorf("%s: a program was made", what)
			}
		}
	}
}

func TestTheNewestLinksAreKept(t *testing.T) {
	t.Parallel()
	tr := newTree(t, runtime.GOOS, runtime.GOARCH)
	file, r := tr.link(t, stamped(one))
	programs := make([]Program, 4)
	for i := range programs {
		programs[i] = tr.program(t, stamped(one))
		programs[i].Key = fmt.Sprint(i)
		if err := tr.links.Keep(programs[i], file, r, action.Built); err != nil {
			t.Fatal(err)
		}
		old := time.Now().Add(time.Duration(i-len(programs)) * time.Hour)
		if err := os.Chtimes(filepath.Join(tr.links.dir(programs[i]), stateFile), old, old); err != nil {
			t.Fatal(err)
		}
	}
	for i, p := range programs {
		made, _ := tr.links.Copy(p, filepath.Join(t.TempDir(), "program"), true)
		if want := i >= len(programs)-kept; (made != nil) != want {
			t.Errorf("link %d of %d is kept: %v, want %v", i, len(programs), made != nil, want)
		}
	}
}

func TestErrorsOfToolsAreShown(t *testing.T) {
	t.Parallel()
	tr := newTree(t, runtime.GOOS, runtime.GOARCH)
	tr.write(t, "version/version.go", "package version\n\nfunc missing()\n\nvar Version, Date, Short = \"\", \"\", \"\"\n\n"+
		"func init() { missing() }\n")
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
	for _, flags := range []string{"-X 'a.Version=a version with blanks'", "-X a.Version=" + one + " -X a.Version=" + two} {
		if masked, values := Mask(flags); masked != flags || len(values) > 0 {
			t.Errorf("%q, %q", masked, values)
		}
	}
}

func TestUnusualLinksAreLeftToTheLinker(t *testing.T) {
	t.Parallel()
	const id = "-buildid=action/main/content/action"
	usual := []string{"-o", "out", "-importcfg", "cfg", "-X=runtime.godebugDefault=a=1", "-buildmode=exe", id, "-s", "-w", "-X", "a.b=" + one,
		"-extld=gcc", "main.a"}
	k, err := parse("link", usual)
	if err != nil || k.output != "out" || k.config != "cfg" || k.mode != "exe" || k.godebug != "a=1" ||
		!slices.Equal(k.flags, []string{"-s", "-w", "-X", "a.b=" + one}) ||
		!slices.Equal(k.values, []int{10}) {
		t.Fatalf("%+v, %v", k, err)
	}
	with := func(more ...string) []string { return slices.Insert(slices.Clone(usual), 7, more...) }
	for _, args := range [][]string{
		{"-V=full"}, {}, {"-o"}, usual[2:], usual[:2], usual[:7], usual[:len(usual)-1],
		with("-linkmode=external"), with("-linkmode", "external"), with("-fipso", "fips.o"), with("-race"), with("-B", "gobuildid"),
		with("-buildmode=c-shared"),
		with("-buildid="), with("-X", "a.b="+two), append(slices.Clone(usual), "other.a"),
		{"-o", "out", "-importcfg", "cfg", "-buildmode=exe", id, "-X", "a.b=short", "-extld=gcc", "main.a"},
	} {
		if k, err := parse("link", args); err == nil {
			t.Errorf("%q are parsed: %+v", args, k)
		}
	}
}
