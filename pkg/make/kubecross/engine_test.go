//go:build integration

package kubecross

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/pkg/stdcopy"
	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/mechanism/engine"
)

func TestBuildImage(t *testing.T) {
	t.Setenv("SLIPWAY_TEST_TOKEN", "hunter2") // stands for everything in the environment of the build
	e, owner := connect(t), nobody()
	i, has, leave := left(t, e)
	if !leave {
		i = fresh(t)
	}
	tidy(t, e, owner)
	start := time.Now()
	ref, built, err := i.Ensure(t.Context(), e, owner, func(line string) { t.Logf("%6.1f s  %s", time.Since(start).Seconds(), line) })
	if err != nil {
		t.Fatal(err)
	}
	if want, err := i.Ref(owner, e.Platform); err != nil || ref != want || built == has {
		t.Fatalf("image %s (built: %v), want %s (%v)", ref, built, want, err)
	}
	img, err := e.Client.ImageInspect(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("built in %.1f s, %d MB", time.Since(start).Seconds(), img.Size/1_000_000)
	l := lab{e, ref}
	if leave && !has {
		if _, _, err := i.Ensure(t.Context(), e, nobody(), nil); err != nil {
			t.Fatal(err)
		}
	}

	t.Run("user and folders", func(t *testing.T) {
		got := l.run(t, nil, "sh", "-c", "id; pwd; go version; stat -c '%U:%G %a %n' /tree /tree/_output /modules /cache /cache/home /out "+
			"/usr/local/go/bin/go; "+
			"find / -xdev -type f '(' -perm /6000 -o -perm /0002 -o -user build ')' 2>/dev/null; touch /x 2>&1; env | sort | cut -d= -f1 | tr "+
			"'\n' ' '")
		want := "uid=1000(build) gid=1000(build) groups=1000(build)\n/\ngo version " + i.Pin.Version + " " + e.Platform.String() + "\n" +
			"build:build 755 /tree\nbuild:build 755 /tree/_output\nbuild:build 755 /modules\nbuild:build 755 /cache\nbuild:build 755 /cache/home\n" +
			"build:build 755 /out\nroot:root 755 /usr/local/go/bin/go\n" +
			"touch: cannot touch '/x': Read-only file system\nHOME HOSTNAME LANG PATH PWD "
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("the Go in it is the released one", func(t *testing.T) {
		program := filepath.Join(t.TempDir(), "find")
		c := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./testdata/find")
		c.Env = append(os.Environ(), "GOOS="+e.Platform.OS, "GOARCH="+e.Platform.Arch, "CGO_ENABLED=0", "GOFLAGS=-trimpath")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		f, err := os.Open(program)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		got := l.run(t, f, "sh", "-c", `cat >/tmp/find && chmod +x /tmp/find && exec /tmp/find "$@"`, "sh", i.Pin.Version,
			i.Pin.Sums[e.Platform.Dash()])
		if got != "/usr/local/go\n" { // and no other output
			t.Errorf("package toolchain finds %s", got)
		}
	})
	t.Run("a C compiler for each server platform", func(t *testing.T) {
		got := l.run(t, strings.NewReader("#include <stdio.h>\nint main(void) { return puts(\"hello\") < 0; }\n"), "sh", "-ec",
			"cd /tmp; cat >hello.c; for arch in x86_64 aarch64 s390x powerpc64le; do $arch-linux-gnu-gcc -O2 -Wall -Werror -o hello hello.c; "+
				"readelf -h hello | sed -n 's/^ *Machine: *//p'; done")
		want := "Advanced Micro Devices X86-64\nAArch64\nIBM S/390\nPowerPC64\n"
		if got != want {
			t.Errorf("programs are for %s, want %s", got, want)
		}
	})
	t.Run("cgo and the race detector", func(t *testing.T) { // the container road's tests use cgo for other platforms
		got := l.run(t, strings.NewReader("package main\n\n// int one(void) { return 1; }\nimport \"C\"\n\n"+
			"func main() { println(int(C.one())) }\n"),
			"sh", "-ec", "cd /tmp; cat >main.go; export CGO_ENABLED=1 GOFLAGS=-p=2 GO111MODULE=off GOTMPDIR=/tmp; "+
				// With much randomness in addresses, the race detector seldom finds no room for itself, and a container may not ask for less.
				"go build -race -o hello main.go; for i in 1 2 3 4 5; do if ./hello 2>said; then cat said; exit; fi; done; cat said; exit 1")
		if got != "1\n" {
			t.Errorf("got %s", got)
		}
	})
	t.Run("it holds nothing of this machine", func(t *testing.T) { notOfThisMachine(t, l, img) })
	t.Run("attended", func(t *testing.T) { attended(t, l) })
	t.Run("rsync-host", func(t *testing.T) { rsyncHost(t, l) })
	t.Run("it is built once", func(t *testing.T) {
		start := time.Now()
		again, built, err := i.Ensure(t.Context(), e, owner, func(line string) { t.Errorf("it says %s", line) })
		if err != nil || built || again != ref {
			t.Errorf("it is %s (built: %v), %v", again, built, err)
		}
		t.Logf("again: %v", time.Since(start))
		if took := time.Since(start); took > time.Second {
			t.Errorf("it took %v", took)
		}
	})
	t.Run("two trees share it, and each removes its own name", func(t *testing.T) { shared(t, e, i, owner, ref, img.ID, leave) })
}

// notOfThisMachine looks for what must not be in the image: in its history and settings, and in files that may come from outside.
func notOfThisMachine(t *testing.T, l lab, img image.InspectResponse) {
	history, err := l.engine.Client.ImageHistory(t.Context(), l.image)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal([]any{history, img.Config})
	if err != nil {
		t.Fatal(err)
	}
	files := l.run(t, nil, "sh", "-c", "cat /etc/hostname; grep -v -e ^127 -e ^:: -e '^fe00' -e '^ff0' /etc/hosts; cat "+
		"/etc/apt/sources.list; "+
		"find /etc/apt/sources.list.d /etc/apt/apt.conf.d /etc/apt/auth.conf* -type f -exec cat {} +; cat /etc/dpkg/dpkg.cfg.d/*; "+
		"ls /usr/local/share/ca-certificates /var/lib/apt/lists")
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	secrets := []string{"hunter2", "://", name} // "://" is in every mirror's address
	for _, secret := range secrets {
		if strings.Contains(string(text), secret) {
			t.Errorf("%q is in the image's history or settings:\n%s", secret, text)
		}
		if strings.Contains(files, secret) {
			t.Errorf("%q is in the image's files:\n%s", secret, files)
		}
	}
	if want := []string{"PATH=/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"LANG=C.UTF-8"}; !slices.Equal(img.Config.Env, want) {
		t.Errorf("environment %q", img.Config.Env)
	}
}

func attended(t *testing.T, l lab) {
	for name, test := range map[string]struct {
		script string
		do     func(s *subject) error
		status int64
		output string
	}{
		"success":        {"echo done", nil, 0, "done\n"},
		"status":         {"echo no >&2; exit 7", nil, 7, "no\n"},
		"signal":         {"kill -KILL $$", nil, 137, "Killed\n"}, // by the shell
		"standard input": {"cat; echo read", nil, 0, "read\n"},
		"more processes": {"(sleep 600; echo late) & exit 3", nil, 3, ""},
		"input ends":     {"sleep 600 & echo started; sleep 600", func(s *subject) error { return s.stream.CloseWrite() }, 129, "started\n"},
		"the client is gone": {"trap '' HUP TERM; sleep 600 & echo started; wait",
			func(s *subject) error { return s.stream.Conn.Close() }, 129, "started\n"},
		"SIGTERM": {"trap '' TERM; sleep 600 & echo started; wait", func(s *subject) error {
			return l.engine.Client.ContainerKill(context.Background(), s.id, "TERM")
		}, 143, "started\n"},
	} {
		t.Run(name, func(t *testing.T) {
			s := l.start(t, "attended", "sh", "-c", test.script)
			if test.do != nil {
				s.started(t)
				if err := test.do(s); err != nil {
					t.Fatal(err)
				}
			}
			start := time.Now()
			status, out := s.end(t)
			if status != test.status || out != test.output {
				t.Errorf("it ends with %d, %q; want %d, %q", status, out, test.status, test.output)
			}
			if took := time.Since(start); took > 8*time.Second {
				t.Errorf("it ends after %v", took)
			}
		})
	}
	t.Run("no such command", func(t *testing.T) {
		if status, out := l.start(t, "attended", "frobnicate").end(t); status != 127 || !strings.Contains(out, "frobnicate") {
			t.Errorf("it ends with %d, %q", status, out)
		}
	})
}

func rsyncHost(t *testing.T, l lab) {
	s := l.start(t, "rsync-host")
	if _, err := io.WriteString(s.stream.Conn, "correct horse\n"); err != nil {
		t.Fatal(err)
	}
	logs := func() string {
		r, err := l.engine.Client.ContainerLogs(t.Context(), s.id, container.LogsOptions{ShowStdout: true, ShowStderr: true})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		var b bytes.Buffer
		_, _ = stdcopy.StdCopy(&b, &b, r)
		return b.String()
	}
	within(t, 10*time.Second, "it is ready", func() bool { return strings.HasPrefix(logs(), "ready ") })
	if got := execIn(t, l, s.id, "stat", "-c", "%U %a", "/run/rsync/secrets"); got != "build 600\n" {
		t.Errorf("the secrets are %s", got)
	}
	if got := execIn(t, l, s.id, "cat", "/run/rsync/secrets"); got != "slipway:correct horse\n" {
		t.Errorf("the secrets hold %q", got)
	}
	if got := execIn(t, l, s.id, "sh", "-c", "cat /proc/1/environ /proc/*/cmdline"); strings.Contains(got, "horse") {
		t.Errorf("the password can be seen: %q", got)
	}
	if got := execIn(t, l, s.id, "sh", "-c", "rsync --server --daemon --config=/etc/slipway/rsyncd.conf . "+
		"</dev/null"); !strings.HasPrefix(got, "@RSYNCD: ") {
		t.Errorf("rsync says %q", got)
	}
	if err := s.stream.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if status, _ := s.end(t); status != 0 {
		t.Errorf("it ends with %d", status)
	}

	without := l.start(t, "rsync-host")
	if err := without.stream.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if status, out := without.end(t); status != 1 || !strings.Contains(out, "no password") {
		t.Errorf("without a password it ends with %d, %q", status, out)
	}
}

func execIn(t *testing.T, l lab, id string, command ...string) string {
	t.Helper()
	c := l.engine.Client
	created, err := c.ContainerExecCreate(t.Context(), id, container.ExecOptions{Cmd: command, AttachStdout: true, AttachStderr: true})
	if err != nil {
		t.Fatal(err)
	}
	stream, err := c.ContainerExecAttach(t.Context(), created.ID, container.ExecAttachOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	var b bytes.Buffer
	if _, err := stdcopy.StdCopy(&b, &b, stream.Reader); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func shared(t *testing.T, e *engine.Engine, i Image, first engine.Owner, ref, id string, leave bool) {
	second := nobody()
	tidy(t, e, second)
	start := time.Now()
	other, built, err := i.Ensure(t.Context(), e, second, nil)
	if err != nil || built || other == ref {
		t.Fatalf("for another tree it is %s (built: %v), %v", other, built, err)
	}
	t.Logf("shared: %v", time.Since(start))
	if img, err := e.Client.ImageInspect(t.Context(), other); err != nil || img.ID != id {
		t.Errorf("%s is %s, not %s (%v)", other, img.ID, id, err)
	}

	if removed, err := Tidy(t.Context(), e, first, ref); err != nil || len(removed) != 0 {
		t.Errorf("the tag to keep was removed: %q, %v", removed, err)
	}
	before := list(t, e, first)
	removed, err := Tidy(t.Context(), e, first, "")
	if err != nil || !slices.Contains(removed, ref) || len(removed) != len(before) || len(list(t, e, first)) != 0 {
		t.Errorf("of %q these were removed: %q, %v", before, removed, err)
	}
	if _, err := e.Client.ImageInspect(t.Context(), other); err != nil {
		t.Errorf("the other tree lost its image: %v", err)
	}
	if _, err := Tidy(t.Context(), e, second, ""); err != nil {
		t.Error(err)
	}
	if _, err := e.Client.ImageInspect(t.Context(), id); !leave && !cerrdefs.IsNotFound(err) {
		t.Errorf("the image has no tags, and still exists: %v", err)
	}
}

func TestFailedBuildLeavesNothing(t *testing.T) {
	e, i, owner := connect(t), fresh(t), nobody()
	tidy(t, e, owner)
	i.Base = tiny(t, e)
	_, _, err := i.Ensure(t.Context(), e, owner, nil)
	if err == nil || !strings.Contains(err.Error(), "build image slipway/kube-cross:"+owner.ID) || !strings.Contains(err.Error(), "RUN sh") {
		t.Errorf("error %v for a base without a shell", err)
	}
	if names := list(t, e, owner); len(names) != 0 {
		t.Errorf("left behind: %q", names)
	}
	within(t, 30*time.Second, "its containers are gone", func() bool { return count(t, e, i.Base) == 0 })

	i.Base = "slipway.invalid/base:v1"
	_, _, err = i.Ensure(t.Context(), e, owner, nil)
	if err == nil || !strings.Contains(err.Error(), "from slipway.invalid/base:v1") {
		t.Errorf("error %v for a base that does not exist", err)
	}
}

func TestInterruptedBuildLeavesNothing(t *testing.T) {
	e, i, owner := connect(t), fresh(t), nobody()
	tidy(t, e, owner)
	i.Base = tiny(t, e)
	// The engine needs a while to copy Go, so the last step is never reached.
	write(t, filepath.Join(i.Dir, "Dockerfile"), "ARG BASE\nFROM ${BASE}\nCOPY go /usr/local/go\nCOPY go /usr/local/go2\n"+
		"COPY go /usr/local/go3\n", 0o644)
	ctx, cancel := context.WithCancelCause(t.Context())
	interrupted := errors.New("interrupted")
	_, _, err := i.Ensure(ctx, e, owner, func(line string) {
		if strings.HasPrefix(line, "Step 3/") {
			cancel(interrupted)
		}
	})
	if !errors.Is(err, interrupted) {
		t.Errorf("error %v", err)
	}
	if names := list(t, e, owner); len(names) != 0 {
		t.Errorf("left behind: %q", names)
	}
	within(t, time.Minute, "its containers are gone", func() bool { return count(t, e, i.Base) == 0 })
}

// An interruption while packages are installed leaves no folder of them.
func TestInterruptedBootstrapLeavesNothing(t *testing.T) {
	e, i, owner := connect(t), fresh(t), nobody()
	tidy(t, e, owner)
	if _, err := e.Client.ImageInspect(t.Context(), published); err == nil {
		t.Skipf("the engine has %s", published)
	}
	tmp := t.TempDir()
	if err := os.Chmod(tmp, 0o777); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", tmp)
	ctx, cancel := context.WithCancelCause(t.Context())
	interrupted := errors.New("interrupted")
	_, _, err := i.Ensure(ctx, e, owner, func(line string) {
		t.Log(line)
		if strings.HasPrefix(line, "base: downloading") || strings.HasPrefix(line, "Step ") {
			cancel(interrupted)
		}
	})
	if !errors.Is(err, interrupted) {
		t.Errorf("error %v", err)
	}
	left, err := filepath.Glob(filepath.Join(tmp, "mmdebstrap.*"))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
	if names := list(t, e, owner); len(names) != 0 {
		t.Errorf("left behind: %q", names)
	}
}

func TestFailedBootstrapKeepsCredentialsSecret(t *testing.T) {
	e, i, owner := connect(t), fresh(t), nobody()
	tidy(t, e, owner)
	i.Mirror = "http://me:hunter2@127.0.0.1:9/debian"
	err := builder{engine: e, owner: owner, progress: func(string) {}}.
		bootstrap(t.Context(), i, folder{{name: "dpkg.cfg", data: []byte("path-exclude=/usr/share/doc/*\n")}}, []string{"git"},
			ref(BaseRepository, owner, strings.Repeat("0", 64)), "0")
	if err == nil || !strings.Contains(err.Error(), "mmdebstrap: exit status") || !strings.Contains(err.Error(), "127.0.0.1") {
		t.Fatalf("error %v", err)
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the error holds the password: %v", err)
	}
	t.Log(err)
	if names := list(t, e, owner); len(names) != 0 {
		t.Errorf("left behind: %q", names)
	}
}
