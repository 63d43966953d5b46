package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

type (
	ctx        = context.Context
	connection = io.ReadWriteCloser
)

func second(_ Stats, err error) error { return err }

func failingDial(err error) Dial { return func(ctx) (connection, error) { return nil, err } }

// meanwhile dials after something has happened.
func meanwhile(err error, dial Dial, c ctx) (connection, error) {
	if err != nil {
		return nil, err
	}
	return dial(c)
}

// pipe is a remote end that is a function.
func pipe(serve func(conn net.Conn)) Dial {
	return func(ctx) (connection, error) {
		here, there := net.Pipe()
		go func() {
			defer there.Close()
			serve(there)
		}()
		return here, nil
	}
}

func silent(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }

// dying is a remote end that dies after some bytes, read or written; or falls silent.
func dying(dial Dial, after int64, silently bool) Dial {
	return func(ctx ctx) (connection, error) {
		conn, err := dial(ctx)
		if err != nil {
			return nil, err
		}
		m := &mortal{process: conn.(*process), silently: silently, quit: make(chan struct{})}
		m.left.Store(after)
		return m, nil
	}
}

type mortal struct {
	*process
	left     atomic.Int64
	silently bool
	quit     chan struct{}
	closed   atomic.Bool
}

func (m *mortal) Read(p []byte) (int, error)  { return m.count(m.process.Read, p) }
func (m *mortal) Write(p []byte) (int, error) { return m.count(m.process.Write, p) }

func (m *mortal) count(move func([]byte) (int, error), p []byte) (int, error) {
	if m.left.Load() < 0 && m.silently {
		<-m.quit
		return 0, io.ErrClosedPipe
	}
	n, err := move(p)
	if m.left.Add(-int64(n)) < 0 && !m.silently {
		_ = m.cmd.Process.Kill()
	}
	return n, err
}

func (m *mortal) Close() error {
	if m.closed.CompareAndSwap(false, true) {
		close(m.quit)
	}
	return m.process.Close()
}

func TestFailuresAreReportedClearlyAndSoon(t *testing.T) {
	t.Parallel()
	good := newDaemon(t)
	big := t.TempDir()
	write(t, filepath.Join(big, "big"), strings.Repeat("0123456789abcdef", 4<<20))
	const short = 300 * time.Millisecond
	tests := []struct {
		name   string
		remote Remote
		want   []string
	}{
		{"Dial fails", Remote{Dial: failingDial(errors.New("no such container"))}, []string{"connect: no such container"}},
		{"Dial hangs", Remote{Patience: short, Dial: func(ctx ctx) (connection, error) { <-ctx.Done(); return nil, ctx.Err() }},
			[]string{"the remote end did not answer within 300ms"}},
		{"closes at once", Remote{Dial: pipe(func(net.Conn) {})}, []string{"the remote end ended without an answer"}},
		{"closes at once with an error", Remote{Dial: func(ctx ctx) (connection, error) {
			return start(ctx, "sh", "-c", "echo rsync: bad configuration >&2")
		}}, []string{"the remote end ended without an answer: rsync: bad configuration"}},
		{"never greets", Remote{Patience: short, Dial: pipe(silent)}, []string{"the remote end did not answer within 300ms"}},
		{"greets slowly and not to the end", Remote{Patience: short, Dial: pipe(func(conn net.Conn) {
			_, _ = conn.Write([]byte(greeting))
			silent(conn)
		})}, []string{"the remote end did not answer within 300ms"}},
		{"is something else", Remote{Dial: pipe(func(conn net.Conn) {
			_, _ = conn.Write([]byte("exec: \"rsync\": executable file not found in $PATH\r\n"))
		})}, []string{"is not an rsync daemon", `executable file not found`}},
		{"is something else that says a lot", Remote{Dial: pipe(func(conn net.Conn) {
			_, _ = conn.Write(make([]byte, 1<<20))
		})}, []string{"is not an rsync daemon"}},
		{"greets and falls silent", Remote{Patience: short, Dial: pipe(func(conn net.Conn) {
			_, _ = conn.Write([]byte(greeting + " 31.0 md5\n"))
			silent(conn)
		})}, []string{"the connection broke: nothing came or went for 300ms"}},
		{"greets and takes nothing", Remote{Patience: short, Dial: pipe(func(conn net.Conn) {
			_, _ = conn.Write([]byte(greeting + " 31.0 md5\n"))
			<-t.Context().Done() // without reading
		})}, []string{"the connection broke: nothing came or went for 300ms"}},
		{"greets and closes", Remote{Dial: pipe(func(conn net.Conn) {
			_, _ = conn.Write([]byte(greeting + " 31.0 md5\n"))
		})}, []string{"the connection broke"}},
		{"wrong password", Remote{Dial: good.dial, Password: "guess"}, []string{"the password was refused"}},
		{"no password", Remote{Dial: good.dial}, []string{"the password was refused"}},
		{"dies while it gets a large file", Remote{Dial: dying(good.dial, 8<<20, false), Password: password}, []string{"the connection broke"}},
		{"falls silent while it gets a large file", Remote{Dial: dying(good.dial, 8<<20, true), Password: password, Patience: short},
			[]string{"the connection broke: nothing came or went for 300ms"}},
		{"repeats the password", Remote{Password: password, Dial: pipe(func(conn net.Conn) {
			_, _ = fmt.Fprintf(conn, "%s 31.0 md5\n@ERROR: not %s\n", greeting, password)
			silent(conn)
		})}, []string{"the remote end refused: not …"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			_, err := test.remote.Mirror(t.Context(), "tree", big, []string{"big"})
			failing(t, err, began, 0, append(test.want, "rsync to tree: ")...)
		})
	}
}

func TestReadOnlyModuleIsAnError(t *testing.T) {
	t.Parallel()
	d, dir := newDaemon(t), t.TempDir()
	began := time.Now()
	_, err := d.remote().Mirror(t.Context(), "out", dir, tree{"a": "1"}.write(t, dir))
	failing(t, err, began, 0, "rsync to out: ", "module is read only")
}

func TestUserSettingsHaveNoEffect(t *testing.T) {
	d, dir, home := newDaemon(t), t.TempDir(), t.TempDir()
	write(t, filepath.Join(home, ".popt"), "rsync alias --links --dry-run\nrsync alias --stats --dry-run\n")
	for key, value := range map[string]string{
		"HOME": home, "RSYNC_PASSWORD": "other", "RSYNC_PROXY": "localhost:1", "RSYNC_CONNECT_PROG": "false", "RSYNC_MAX_ALLOC": "1",
		"RSYNC_PARTIAL_DIR": ".partial", "LC_ALL": "de_DE.UTF-8", "RSYNC_PROTECT_ARGS": "1", "RSYNC_OLD_ARGS": "1",
	} {
		t.Setenv(key, value)
	}
	r := d.remote()
	r.Dial = func(ctx ctx) (connection, error) {
		return start(ctx, "env", "-i", d.program, "--server", "--daemon", "--config="+d.config, ".")
	}
	must(t, 1)(r.Mirror(t.Context(), "tree", dir, tree{"a": "1"}.write(t, dir)))
	same(t, tree{"a": "1"}, d.tree)
}

func TestMissingRsyncNamesThePackage(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := (&Remote{}).Mirror(t.Context(), "tree", t.TempDir(), nil)
	failing(t, err, time.Now(), 0, "rsync to tree: rsync is not in PATH: install the package rsync (apt-get install rsync")
	t.Setenv("PATH", ".:bin")
	if _, err := Client(t.Context()); err == nil {
		t.Error("rsync was found by a relative PATH")
	}
}

func TestClientVersions(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"rsync  version 3.1.3  protocol version 31\nCopyright": "",
		"rsync  version 3.2.7  protocol version 31\n":          "",
		"rsync  version v3.4.1  protocol version 32\n":         "",
		"rsync  version 3.5.0pre1  protocol version 32\n":      "",
		"rsync  version 4.0  protocol version 40\n":            "",
		"rsync  version 3.1.2  protocol version 31\n":          "is version 3.1.2, and 3.1.3 is needed: install",
		"rsync  version 2.6.9  protocol version 29\n":          "is version 2.6.9, and 3.1.3 is needed",
		"openrsync: protocol version 29\nrsync version 2.6.9 compatible\n": "is openrsync, which will not do: install the " +
			"package rsync (apt-get install rsync, dnf install rsync, apk add rsync; on macOS brew install rsync)",
		"BusyBox": `cannot be read, "BusyBox"`,
		"":        "cannot be read",
	}
	for text, want := range tests {
		err := checkVersion(text)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if runtime.GOOS == "windows" {
		return
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "rsync"), "0755|#!/bin/sh\necho openrsync: protocol version 29\n")
	program := filepath.Join(dir, "rsync")
	if err := check(t.Context(), program); err == nil || !strings.HasPrefix(err.Error(), program+": is openrsync") {
		t.Errorf("err = %v", err)
	}
}

func TestExitCodesAreExplained(t *testing.T) {
	t.Parallel()
	tests := []struct {
		code                    int
		stderr, complaint, want string
	}{
		{23, "rsync: [sender] send_files failed to open \"/x/a b\": Permission denied (13)\n" +
			"rsync error: some files/attrs were not transferred (see previous errors) (code 23) at main.c(1338) [sender=3.2.7]\n", "",
			`not all files could be transferred: send_files failed to open "/x/a b": Permission denied (13)`},
		{23, "rsync: send_files failed to open \"/x/a\": Permission denied (13)\n" + // 3.1.3
			"IO error encountered -- skipping file deletion\n", "",
			`not all files could be transferred: send_files failed to open "/x/a": Permission denied (13)`},
		{24, "file has vanished: \"/x/a\"\nrsync warning: some files vanished before they could be transferred (code 24) at main.c(1338)\n", "",
			`files vanished while they were read, run it again: file has vanished: "/x/a"`},
		{12, "rsync: connection unexpectedly closed (11 bytes received so far) [sender]\n" +
			"rsync error: error in rsync protocol data stream (code 12)\n",
			"Killed", "the connection broke: Killed"},
		{12, "rsync: [sender] write error: Broken pipe (32)\n", "", "the connection broke"},
		{11, "rsync: [receiver] write failed on \"a\" (in tree): No space left on device (28)\n", "",
			`a file could not be read or written: write failed on "a" (in tree): No space left on device (28)`},
		{12, strings.Repeat("rsync: the same\n", 9) + "1\n2\n3\n4\n5\n6\n", "", "the connection broke: the same; 1; 2; 3; 4; and 2 more"},
		{5, "@ERROR: auth failed on module tree\nrsync error: error starting client-server protocol (code 5)\n", "x", "the password was refused"},
		{5, "@ERROR: Unknown module 'x'\n", "", "the remote end refused: Unknown module 'x'"},
		{30, "rsync error: timeout in data send/receive (code 30)\n", "", "the connection broke: nothing came or went for 30s"},
		{20, "", "", "rsync was interrupted"},
		{77, "", "", "rsync failed: exit status 77"},
	}
	for _, test := range tests {
		exit := exec.Command("sh", "-c", fmt.Sprintf("exit %d", test.code)).Run()
		if err := newFailure(exit, test.stderr, test.complaint, idlePatience); err.Error() != test.want {
			t.Errorf("%d: %v\nwant %s", test.code, err, test.want)
		}
	}
	err := newFailure(exec.Command("sh", "-c", "kill -9 $$").Run(), "", "", idlePatience)
	if err == nil || err.Error() != "rsync was ended: signal: killed" {
		t.Errorf("err = %v", err)
	}
}

// It does not run beside other tests, so that what it counts is its own.
func TestNothingIsLeftBehind(t *testing.T) {
	d, big := newDaemon(t), t.TempDir()
	write(t, filepath.Join(big, "big"), strings.Repeat("0123456789abcdef", 2<<20))
	names := []string{"big"}
	enough := errors.New("enough")
	var conn atomic.Pointer[process]
	dial := func(ctx ctx) (connection, error) {
		c, err := d.dial(ctx)
		if err == nil {
			conn.Store(c.(*process))
		}
		return c, err
	}
	before := runtime.NumGoroutine()
	for name, r := range map[string]*Remote{
		"all is well":                {Dial: dial, Password: password},
		"canceled before the dial":   {Dial: func(ctx ctx) (connection, error) { <-ctx.Done(); return nil, ctx.Err() }},
		"canceled in the greeting":   {Dial: pipe(silent)},
		"canceled after it":          {Dial: pipe(func(conn net.Conn) { _, _ = conn.Write([]byte(greeting + " 31.0\n")); silent(conn) })},
		"canceled in mid-transfer":   {Dial: dying(dial, 4<<20, true), Password: password},
		"wrong password":             {Dial: dial, Password: "guess"},
		"dies":                       {Dial: dying(dial, 4<<20, false), Password: password},
		"Dial fails":                 {Dial: failingDial(enough)},
		"closes at once":             {Dial: pipe(func(net.Conn) {})},
		"takes no end for an answer": {Dial: deaf(dial), Password: password},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		began := time.Now()
		if strings.HasPrefix(name, "canceled") {
			time.AfterFunc(300*time.Millisecond, func() { cancel(enough) })
		}
		_, err := r.Mirror(ctx, "tree", big, names)
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%s: it took %v", name, took)
		}
		if strings.HasPrefix(name, "canceled") && !errors.Is(err, enough) {
			t.Errorf("%s: %v", name, err)
		}
		cancel(nil)
		if p := conn.Swap(nil); p != nil && p.cmd.ProcessState == nil {
			t.Errorf("%s: the daemon runs on", name)
		}
		for wait := time.Now().Add(3 * time.Second); runtime.NumGoroutine() > before; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(wait) {
				stacks := make([]byte, 1<<20)
				t.Fatalf("%s: %d goroutines, and %d before\n%s", name, runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
			}
		}
		if err := os.RemoveAll(filepath.Join(d.tree, "big")); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := filepath.Glob(filepath.Join(big, ".*")); err != nil || len(left) > 0 {
		t.Errorf("left %q (%v)", left, err)
	}
}

// deaf is a connection whose other end does not end by itself, and that cannot be closed in one direction.
func deaf(dial Dial) Dial {
	return func(ctx ctx) (connection, error) {
		conn, err := dial(ctx)
		return struct{ connection }{conn}, err
	}
}
