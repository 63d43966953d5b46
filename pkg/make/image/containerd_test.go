package image

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"slipway.build/pkg/mechanism/archive"
	"slipway.build/pkg/mechanism/needs"
)

// containerd is the test's own containerd, in a folder of its own: the machine's belongs to others.
func containerd(t *testing.T) (address string) {
	t.Helper()
	for _, program := range []string{"containerd", "ctr"} {
		if _, err := exec.LookPath(program); err != nil {
			needs.Missing(t, "containerd and its client: %v", err)
		}
	}
	if os.Geteuid() != 0 {
		needs.Missing(t, "root: containerd doesn't start without")
	}
	// Not t.TempDir: the address of a socket must be short.
	dir, err := os.MkdirTemp("", "ctr")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	address = filepath.Join(dir, "sock")
	config := write(t, filepath.Join(dir, "config.toml"), fmt.Sprintf(`version = 2
root = %q
state = %q
disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.internal.v1.opt"]
[grpc]
address = %q
`, filepath.Join(dir, "root"), filepath.Join(dir, "state"), address))

	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	daemon := exec.Command("containerd", "--config", config)
	daemon.Stdout, daemon.Stderr = log, log
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- daemon.Wait() }()
	t.Cleanup(func() {
		daemon.Process.Signal(os.Interrupt)
		<-ended
		log.Close()
	})
	for range 300 {
		if exec.Command("ctr", "--address", address, "--connect-timeout", "1s", "version").Run() == nil {
			return address
		}
		select {
		case err := <-ended:
			ended <- err
			out, _ := os.ReadFile(log.Name())
			needs.Missing(t, "a containerd that starts: %v\n%s", err, out)
		case <-time.After(100 * time.Millisecond):
		}
	}
	out, _ := os.ReadFile(log.Name())
	t.Fatalf("containerd doesn't answer\n%s", out)
	return ""
}

func TestContainerdImportsTheLayout(t *testing.T) {
	t.Parallel()
	ctr := []string{"--address", containerd(t), "--namespace", "slipway-test"}
	spec := spec("hello", runtime.GOARCH)
	b := newBench(t, spec).run(t)
	path := filepath.Join(t.TempDir(), "layout.tar")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var entries []archive.Entry
	for name, data := range files(t, b.layout) {
		entries = append(entries, archive.Entry{Name: name, Data: []byte(data)})
	}
	if err := archive.Tar(f, entries, created); err != nil {
		t.Fatal(err)
	}
	run(t, "ctr", append(ctr, "images", "import", "--snapshotter", "native", path)...)
	list := string(run(t, "ctr", append(ctr, "images", "list")...))
	index, err := b.images(t)[spec.Tags[0]].Digest()
	if err != nil {
		t.Fatal(err)
	}
	for _, tag := range spec.Tags {
		if !regexp.MustCompile(regexp.QuoteMeta(tag) + " .* " + index.String() + " ").MatchString(list) {
			t.Errorf("no %s with the digest %s in\n%s", tag, index, list)
		}
	}
}

func TestContainerdImportsAndUnpacksAComponent(t *testing.T) {
	t.Parallel()
	ctr := []string{"--address", containerd(t), "--namespace", "slipway-test"}
	path, tag := hello(t)
	run(t, "ctr", append(ctr, "images", "import", "--snapshotter", "native", path)...)
	list := string(run(t, "ctr", append(ctr, "images", "list")...))
	if !strings.Contains(list, tag+" ") {
		t.Fatalf("no %s in\n%s", tag, list)
	}
	check := string(run(t, "ctr", append(ctr, "images", "check", "--snapshotter", "native")...))
	if !strings.Contains(check, "complete (4/4)") {
		t.Errorf("want config and three layers complete, got\n%s", check)
	}

	// A mount of the native snapshotter is a bind mount; the files are the same in its folder.
	found, err := filepath.Glob(filepath.Join(filepath.Dir(ctr[1]), "root", "io.containerd.snapshotter.v1.native", "snapshots", "*", "usr",
		"local", "bin", "hello"))
	if err != nil || len(found) == 0 {
		t.Fatalf("the binary isn't in any snapshot (%v)", err)
	}
	top := strings.TrimSuffix(found[0], filepath.Join("usr", "local", "bin", "hello"))
	tmp, err := os.Stat(filepath.Join(top, "tmp"))
	if err != nil {
		t.Fatal(err)
	}
	if got := tmp.Mode().String(); got != "dtrwxrwxrwx" {
		t.Errorf("/tmp is %s", got)
	}
	f, err := os.Open(found[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	magic := make([]byte, 4)
	if _, err := io.ReadFull(f, magic); err != nil || string(magic) != "\x7fELF" {
		t.Errorf("the binary begins with %q (%v)", magic, err)
	}
}
