package transfer

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
)

const password = "swordfish-7"

// A daemon is a real one, as it is in a container: a process for each connection, talking on its stdin and stdout. Its
// modules are folders.
type daemon struct {
	tree, out string // the modules: tree can be written to
	config    string
	program   string
}

func newDaemon(t testing.TB) *daemon {
	t.Helper()
	return daemonIn(t, t.TempDir(), "0")
}

// daemonIn has its files in dir, and is the user uid if this test is root.
func daemonIn(t testing.TB, dir, uid string) *daemon {
	t.Helper()
	program, err := exec.LookPath("rsync")
	if err != nil {
		if os.Getenv("SLIPWAY_CI") == "1" {
			t.Fatal("rsync is not installed")
		}
		t.Skip("rsync is not installed")
	}
	d := &daemon{filepath.Join(dir, "tree"), filepath.Join(dir, "out"), filepath.Join(dir, "rsyncd.conf"), program}
	for _, module := range []string{d.tree, d.out} {
		if err := os.Mkdir(module, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	secrets := filepath.Join(dir, "secrets")
	if err := os.WriteFile(secrets, []byte(User+":"+password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	config := "use chroot = no\nmunge symlinks = no\nauth users = " + User + "\nsecrets file = " + secrets + "\n"
	if os.Getuid() == 0 {
		config += "uid = " + uid + "\ngid = " + uid + "\n"
	}
	config += "[tree]\npath = " + d.tree + "\nread only = no\n[out]\npath = " + d.out + "\n"
	if err := os.WriteFile(d.config, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *daemon) remote() *Remote { return &Remote{Dial: d.dial, Password: password} }

func (d *daemon) dial(ctx context.Context) (io.ReadWriteCloser, error) {
	return start(ctx, d.program, "--server", "--daemon", "--config="+d.config, ".")
}

// A process is a connection to the input and output of one.
type process struct {
	io.Reader
	in, out io.Closer
	io.Writer
	cmd     *exec.Cmd
	problem bytes.Buffer
	close   sync.Once
}

func start(ctx context.Context, program string, args ...string) (*process, error) {
	p := &process{cmd: exec.CommandContext(ctx, program, args...)}
	p.cmd.Stderr = &p.problem
	p.cmd.WaitDelay = time.Second
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.Reader, p.Writer, p.in, p.out = out, in, in, out
	return p, p.cmd.Start()
}

func (p *process) CloseWrite() error { return p.in.Close() }

func (p *process) Close() error {
	p.close.Do(func() {
		_ = p.in.Close()
		_ = p.out.Close()
		_ = p.cmd.Wait()
	})
	if text := strings.TrimSpace(p.problem.String()); text != "" {
		return errors.New(text)
	}
	return nil
}

// A tree is a folder: content by name, or "-> target" for a link, with the mode if it is not 0644.
type tree map[string]string

func (w tree) write(t testing.TB, dir string) []string {
	t.Helper()
	var names []string
	for name, content := range w {
		write(t, filepath.Join(dir, name), content)
		names = append(names, name)
	}
	return names
}

func write(t testing.TB, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	target, link := strings.CutPrefix(content, "-> ")
	if link {
		if err := os.Symlink(target, path); err != nil {
			t.Fatal(err)
		}
		return
	}
	mode := fs.FileMode(0o644)
	if digits, rest, ok := strings.Cut(content, "|"); ok {
		if _, err := fmt.Sscanf(digits, "%o", &mode); err != nil {
			t.Fatal(err)
		}
		content = rest
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil { // whatever the umask is
		t.Fatal(err)
	}
}

// holds reads a folder. Folders are in it only if they are empty.
func holds(t testing.TB, dir string) tree {
	t.Helper()
	got := tree{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		switch {
		case e.IsDir():
			inside, err := os.ReadDir(path)
			if len(inside) == 0 {
				got[name] = "empty folder"
			}
			return err
		case e.Type() == fs.ModeSymlink:
			target, err := os.Readlink(path)
			got[name] = "-> " + target
			return err
		}
		content, err := os.ReadFile(path)
		got[name] = string(content)
		if mode := info.Mode().Perm(); mode != 0o644 {
			got[name] = fmt.Sprintf("%04o|%s", mode, content)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func same(t testing.TB, want tree, dir string) {
	t.Helper()
	if diff := gocmp.Diff(want, holds(t, dir)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", dir, diff)
	}
}

func must(t testing.TB, want int) func(Stats, error) {
	t.Helper()
	return func(s Stats, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		if s.Files != want {
			t.Errorf("%d files traveled, want %d", s.Files, want)
		}
	}
}

// failing checks that err has all of want, but not the password, and that it came within d (0 means a few seconds).
func failing(t testing.TB, err error, began time.Time, d time.Duration, want ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("the error does not say %q:\n%v", w, err)
		}
	}
	if strings.Contains(err.Error(), password) {
		t.Errorf("the password is in the error:\n%v", err)
	}
	if took, most := time.Since(began), cmp.Or(d, 6*time.Second); took > most {
		t.Errorf("it took %v, more than %v: %v", took, most, err)
	}
}

var odd = tree{
	"a file":                "1",
	" leading space":        "2",
	"trailing space ":       "3",
	"new\nline":             "4",
	"-rf":                   "5",
	"--delete":              "6",
	"#comment":              "7",
	";comment":              "8",
	"*":                     "9",
	"a?b":                   "10",
	"[ab]":                  "11",
	`back\slash`:            "12",
	`\*`:                    "13",
	`end\`:                  "14",
	`*\`:                    "15",
	"]":                     "16",
	"ünï-日本":                "17",
	"\xff\xfe":              "18",
	"a:b":                   "19",
	"host::module":          "20",
	"\"quoted' $(name) `x`": "21",
	"***/[!a]*/ **/\tf":     "22",
	"dir /- x":              "23",
	"dir./.hidden":          "24",
	"+ plus":                "25",
	"- minus":               "26",
	"!":                     "27",
	"P protect":             "28",
	"{a,b}":                 "29",
	"~":                     "30",
	"@":                     "31",
	"%s%n":                  "32",
	"tool.sh":               "0755|33",
	"read-only":             "0444|34",
	"link":                  "-> dir./.hidden",
	"dangling\n":            "-> no where/[x]",
}
