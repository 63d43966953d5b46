//go:build integration

package integration

import (
	"bytes"
	"debug/elf"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestContainerCommandRunsAsItWouldHere(t *testing.T) {
	needEngine(t)
	tr := smallTree(t)
	sh := func(script string) []string { return []string{"run", "--", "sh", "-c", script} }
	for _, c := range []struct {
		name   string
		script string
		code   int
	}{
		{"success", "exit 0", 0}, {"failure", "exit 3", 3}, {"usage error", "exit 2", 2}, {"kill -9", "kill -9 $$", 137},
		{"SIGTERM", "kill -TERM $$", 143},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := tr.slipway(t, sh(c.script)...); got.code != c.code {
				t.Errorf("want exit code %d: %v", c.code, got)
			}
			tr.settled(t)
		})
	}
	t.Run("unknown command", func(t *testing.T) {
		got := tr.slipway(t, "run", "--", "no-such-command", "argument")
		if got.code != 127 && got.code != 126 || !strings.Contains(got.stdout+got.stderr, "no-such-command") {
			t.Errorf("want the exit code that shells have for it, and its name: %v", got)
		}
		tr.settled(t)
	})
	t.Run("no command", func(t *testing.T) { tr.slipway(t, "run").fails(t, 2, "slipway run --help") })
	t.Run("input and output", func(t *testing.T) {
		input := bytes.Repeat([]byte("line\x00\r\n\xff"), 1<<17)
		got := tr.runWith(t, input, sh("cat; echo problem >&2")...).ok(t)
		if got.stdout != string(input) {
			t.Errorf("%d bytes went in, and %d came out", len(input), len(got.stdout))
		}
		if !strings.HasSuffix(got.stderr, "problem\n") {
			t.Errorf("standard error is not handed on: %v", got)
		}
	})
	t.Run("flags behind the command are its own", func(t *testing.T) {
		if got := tr.slipway(t, "run", "echo", "--fetch", "x", "-h").ok(t); got.stdout != "--fetch x -h\n" {
			t.Errorf("the command did not get its flags: %v", got)
		}
	})
	t.Run("surroundings", func(t *testing.T) {
		script := `ls -m /sys/class/net; id -u; id -g; pwd; touch /etc/x /usr/x /out/x 2>/dev/null; echo $?; grep -E '^(CapEff|CapPrm|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status
			touch /tmp/x /cache/x /tree/_output/x "$HOME/x" && echo written; ls -m /modules | head -0; touch /modules/x 2>/dev/null || echo no`
		got := tr.slipway(t, sh(script)...).ok(t).stdout
		want := "lo\n1000\n1000\n/tree\n1\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\nCapBnd:\t0000000000000000\nNoNewPrivs:\t1\n" +
			"Seccomp:\t2\nwritten\nno\n"
		if strings.ReplaceAll(got, "Seccomp:\t0", "Seccomp:\t2") != want { // the kernel may have none
			t.Errorf("the command's surroundings are\n%swant\n%s", got, want)
		}
	})
	t.Run("tools", func(t *testing.T) {
		got := tr.slipway(t, sh("go version && git --version && make --version | head -1 && gcc --version | head -1 && rsync --version "+
			"| head -1")...).ok(t).stdout
		for _, want := range []string{"go version " + tr.stamp(t).GoVersion + " ", "git version ", "GNU Make ", "gcc ", "rsync "} {
			if !strings.Contains(got, want) {
				t.Errorf("the container lacks %s:\n%s", want, got)
			}
		}
	})
	t.Run("settings", func(t *testing.T) {
		tr := tr.with("KUBE_BUILD_PLATFORMS=linux/arm64 linux/s390x", "WHAT=cmd/kubectl", "ROAD=container", "FOREIGN=1")
		s := tr.stamp(t)
		got := tr.slipway(t, sh(`echo "$KUBE_BUILD_PLATFORMS|$WHAT|$KUBE_GIT_VERSION|$KUBE_GIT_COMMIT|$ROAD$FOREIGN"`)...).ok(t).stdout
		if want := "linux/arm64 linux/s390x|cmd/kubectl|" + s.GitVersion + "|" + s.GitCommit + "|\n"; got != want {
			t.Errorf("the command has %q, want %q", got, want)
		}
	})
	t.Run("changes in the tree are undone, and results fetched", func(t *testing.T) {
		tr.slipway(t, sh("echo changed >LICENSE && echo >docs/new && mkdir -p _output/a/b _output/c && echo one >_output/a/b/file && ln -s "+
			"file _output/a/b/link && chmod 755 _output/a/b/file")...).ok(t)
		if tr.exists("_output/a") {
			t.Error("a folder was fetched without --fetch")
		}
		got := tr.slipway(t, "run", "--fetch=a,c", "--", "sh", "-c", "cat LICENSE; ls docs; echo two >_output/c/file").ok(t)
		if want := tr.read(t, "LICENSE") + "index.md\n"; got.stdout != want {
			t.Errorf("the tree has %q, want %q", got.stdout, want)
		}
		if tr.read(t, "_output/a/b/file") != "one\n" || tr.read(t, "_output/a/b/link") != "one\n" || tr.read(t, "_output/c/file") != "two\n" {
			t.Error("the fetched files are not what was made")
		}
		run(t, tr.dir, nil, "test", "-x", tr.path("_output/a/b/file")).ok(t)
		tr.slipway(t, "run", "--fetch=nothing", "--", "true").fails(t, 1, "nothing")
		tr.slipway(t, "run", "--fetch=../..", "--", "true").fails(t, 1, "..")
		if got := tr.slipway(t, "run", "--fetch=c", "--", "sh", "-c", "echo three >_output/c/file; exit 5"); got.code != 5 ||
			tr.read(t, "_output/c/file") != "two\n" {
			t.Errorf("a command that failed changed what is here: %v", got)
		}
	})
	tr.settled(t)
}

func TestContainerShellHasATerminal(t *testing.T) {
	needEngine(t)
	need(t, "script", "bsdutils")
	tr := smallTree(t)
	tr.slipway(t, "run", "--", "true").ok(t)
	c := command(tr.dir, append(tr.env, "TERM=xterm-256color"), "script", "--quiet", "--return", "--command", slipway(t)+" shell", "/dev/null")
	var out syncBuffer
	c.Stdout, c.Stderr = &out, &out
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = c.Wait(); close(ended) }()
	t.Cleanup(func() { _ = c.Process.Kill(); <-ended })
	said := func(text string) func() bool { return func() bool { return strings.Contains(out.String(), text) } }
	sleeper := fmt.Sprint("sleep ", time.Now().UnixNano()) // no other process has this line
	for _, step := range []struct {
		after func() bool
		typed string
	}{
		{said("$ "), "tty; echo $TERM; stty size; pwd\n"},
		{said("/tree\r\n"), sleeper + "\n"},
		{func() bool { return runs(t, sleeper) }, "\x03"}, // Ctrl-C is the command's
		{said("^C"), "echo status $?\n"},
		{said("status 130\r\n"), "exit 3\n"},
	} {
		for deadline := time.Now().Add(time.Minute); !step.after(); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%q cannot be typed yet:\n%s", step.typed, out.String())
			}
		}
		if _, err := io.WriteString(in, step.typed); err != nil {
			t.Fatalf("%v\n%s", err, out.String())
		}
	}
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatalf("the shell does not end:\n%s", out.String())
	}
	if code := c.ProcessState.ExitCode(); code != 3 {
		t.Errorf("exit code %d, want that of the shell, 3:\n%s", code, out.String())
	}
	if text := out.String(); !strings.Contains(text, "/dev/pts/") || !strings.Contains(text, "xterm-256color") {
		t.Errorf("the shell has no terminal:\n%s", text)
	}
	tr.settled(t)
}

// runs reports whether a process has this command line, in whatever namespace.
func runs(t *testing.T, line string) bool {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(file string) bool {
		return readFile(file) == strings.ReplaceAll(line, " ", "\x00")+"\x00"
	})
}

// A syncBuffer can be read while it is written to.
type syncBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// The cross compilers in the image work: what they make with cgo is for another machine, and runs there.
func TestContainerCompilesCgoForOtherPlatforms(t *testing.T) {
	rare(t, "another standard library is compiled for each")
	needEngine(t)
	tr := smallTree(t)
	if err := exec.Command("mkdir", "-p", tr.path("cmd/cgo")).Run(); err != nil {
		t.Fatal(err)
	}
	tr.write(t, "cmd/cgo/main.go", `package main

// #include <stdio.h>
// #include <math.h>
// #cgo LDFLAGS: -lm
// static void hello(double x) { printf("cgo says %.3f\n", pow(x, 0.5)); fflush(stdout); }
import "C"

func main() { C.hello(2) }
`)
	for _, c := range []struct {
		arch, cc, qemu string
		machine        elf.Machine
	}{
		{"arm64", "aarch64-linux-gnu-gcc", "qemu-aarch64-static", elf.EM_AARCH64},
		{"s390x", "s390x-linux-gnu-gcc", "qemu-s390x-static", elf.EM_S390},
		{"ppc64le", "powerpc64le-linux-gnu-gcc", "qemu-ppc64le-static", elf.EM_PPC64},
	} {
		t.Run(c.arch, func(t *testing.T) {
			script := `cd cmd && go build -o ../_output/cgo/dynamic-$GOARCH ./cgo && go build -ldflags='-linkmode external -extldflags -static' -o ../_output/cgo/static-$GOARCH ./cgo`
			tr.slipway(t, "run", "--fetch=cgo", "--", "env", "CGO_ENABLED=1", "CC="+c.cc, "GOARCH="+c.arch, "sh", "-c", script).ok(t)
			for kind, wantLibraries := range map[string]bool{"dynamic": true, "static": false} {
				f, err := elf.Open(tr.path("_output/cgo/" + kind + "-" + c.arch))
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				libraries, _ := f.ImportedLibraries() // a static one has no section for them
				if f.Machine != c.machine || (len(libraries) > 0) != wantLibraries {
					t.Errorf("the %s binary is for %v and needs the libraries %q", kind, f.Machine, libraries)
				}
			}
			need(t, c.qemu, "qemu-user-static")
			if got := run(t, tr.dir, nil, c.qemu, tr.path("_output/cgo/static-"+c.arch)).ok(t).stdout; got != "cgo says 1.414\n" {
				t.Errorf("it says %q", got)
			}
		})
	}
}
