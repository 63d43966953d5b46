//go:build integration

package kubecross

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/pkg/stdcopy"

	"slipway.build/pkg/make/toolchain"
	"slipway.build/pkg/mechanism/engine"
	"slipway.build/pkg/mechanism/needs"
	"slipway.build/pkg/tree/catalog"
)

// connect connects to this machine's engine. In CI there must be one.
func connect(t *testing.T) *engine.Engine {
	t.Helper()
	e, err := engine.Connect(t.Context())
	if err != nil {
		needs.Missing(t, "%v", err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// left returns the build image of this repository as it is, if the test may leave it in the engine, and whether the engine has it. It may
// in CI: the tests of the container road come next, and would spend minutes on making it again, as would the next run on this machine.
func left(t *testing.T, e *engine.Engine) (i Image, has, ok bool) {
	t.Helper()
	if os.Getenv("SLIPWAY_CI") != "1" {
		return Image{}, false, false
	}
	i = own(t)
	_, sum, err := i.read(e.Platform)
	if err != nil {
		t.Fatal(err)
	}
	id, _, err := builder{engine: e, owner: nobody()}.labeled(t.Context(), Repository, imageLabel, sum)
	if err != nil {
		t.Fatal(err)
	}
	return i, id != "", true
}

// nobody returns an owner that is not a tree.
func nobody() engine.Owner {
	return engine.Owner{ID: fmt.Sprintf("%012x", rand.Uint64()&0xffffffffffff), Folder: "/nowhere"}
}

// fresh returns the build image of this repository with a change, so that no engine has it or its base.
func fresh(t *testing.T) Image {
	t.Helper()
	i := own(t)
	f, err := os.OpenFile(filepath.Join(i.Dir, "dpkg.cfg"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(f, "# %d\n", rand.Uint64()); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return i
}

// own returns the build image of this repository, in a copy of its folder.
func own(t *testing.T) Image {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	c, err := catalog.Load(root)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "kube-cross")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(root, "images", "kube-cross"))); err != nil {
		t.Fatal(err)
	}
	return Image{Dir: dir, Pin: toolchain.Pin{Version: c.Go.Version, Sums: c.Go.Sums}}
}

// tidy removes an owner's images after the test.
func tidy(t *testing.T, e *engine.Engine, owner engine.Owner) {
	t.Helper()
	t.Cleanup(func() {
		if _, err := Tidy(context.Background(), e, owner, ""); err != nil {
			t.Error(err)
		}
	})
}

// A lab runs containers of an image as the container road does: read-only but for volumes, and not as root.
type lab struct {
	engine *engine.Engine
	image  string
}

// A subject is a container whose standard input is open.
type subject struct {
	id     string
	stream types.HijackedResponse
	output *bytes.Buffer
	first  chan struct{} // closed at the first output
	done   chan struct{} // closed at the end of the output
	status <-chan container.WaitResponse
	failed <-chan error
}

func (l lab) start(t *testing.T, command ...string) *subject {
	t.Helper()
	c := l.engine.Client
	created, err := c.ContainerCreate(t.Context(), &container.Config{
		Image: l.image, Cmd: command, Env: []string{"HOME=/tmp"},
		OpenStdin: true, StdinOnce: true, AttachStdin: true, AttachStdout: true, AttachStderr: true,
	}, &container.HostConfig{
		NetworkMode: "none", ReadonlyRootfs: true, CapDrop: []string{"ALL"}, SecurityOpt: []string{"no-new-privileges"},
		Tmpfs: map[string]string{"/tmp": "exec,size=1g", "/run/rsync": "uid=1000,gid=1000,mode=0700,size=64k"},
	}, nil, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := c.ContainerRemove(context.Background(), created.ID, container.RemoveOptions{Force: true, RemoveVolumes: true})
		if err != nil {
			t.Error(err)
		}
	})
	s := &subject{id: created.ID, output: &bytes.Buffer{}, first: make(chan struct{}), done: make(chan struct{})}
	s.stream, err = c.ContainerAttach(t.Context(), s.id, container.AttachOptions{Stream: true, Stdin: true, Stdout: true, Stderr: true})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(s.done)
		_, _ = stdcopy.StdCopy(s, s, s.stream.Reader)
	}()
	s.status, s.failed = c.ContainerWait(t.Context(), s.id, container.WaitConditionNextExit)
	if err := c.ContainerStart(t.Context(), s.id, container.StartOptions{}); err != nil {
		t.Fatal(err)
	}
	return s
}

// Write keeps output. One goroutine calls it.
func (s *subject) Write(p []byte) (int, error) {
	if s.output.Len() == 0 {
		defer close(s.first)
	}
	return s.output.Write(p)
}

// started waits for the first output.
func (s *subject) started(t *testing.T) {
	t.Helper()
	select {
	case <-s.first:
	case <-s.done:
		t.Fatal("the container ended without output")
	}
}

// end waits for the container's end, and returns its status and output.
func (s *subject) end(t *testing.T) (int64, string) {
	t.Helper()
	select {
	case status := <-s.status:
		<-s.done
		s.stream.Close()
		return status.StatusCode, s.output.String()
	case err := <-s.failed:
		t.Fatal(err)
	case <-time.After(10 * time.Minute): // one that compiles took over two on a slow machine, beside the unit tests
		t.Fatal("the container does not end")
	}
	return 0, ""
}

// run runs a container with input to its end, which must be a success.
func (l lab) run(t *testing.T, input io.Reader, command ...string) string {
	t.Helper()
	s := l.start(t, command...)
	if input != nil {
		if _, err := io.Copy(s.stream.Conn, input); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.stream.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	status, out := s.end(t)
	if status != 0 {
		t.Fatalf("%q ends with %d:\n%s", command, status, out)
	}
	return out
}

// within polls the engine until something holds.
func within(t *testing.T, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v", what, limit)
		}
	}
}

// list returns an owner's tags.
func list(t *testing.T, e *engine.Engine, owner engine.Owner) []string {
	t.Helper()
	var names []string
	for _, repository := range []string{Repository, BaseRepository} {
		found, err := e.Client.ImageList(t.Context(), image.ListOptions{Filters: filters.NewArgs(
			filters.Arg("reference", repository+":"+owner.ID+"-*"))})
		if err != nil {
			t.Fatal(err)
		}
		for _, img := range found {
			names = append(names, img.RepoTags...)
		}
	}
	return names
}

// tiny makes an image of one small file, to start builds from.
func tiny(t *testing.T, e *engine.Engine) string {
	t.Helper()
	var b bytes.Buffer
	if err := (buildContext{folder: folder{{name: "etc/motd", data: []byte("hello")}}}).write(&b); err != nil {
		t.Fatal(err)
	}
	ref := fmt.Sprintf("slipway.test/tiny-%d:v1", rand.Uint64())
	body, err := e.Client.ImageImport(t.Context(), image.ImportSource{Source: &b, SourceName: "-"}, ref, image.ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	if err := read(body, func(message) {}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, err := e.Client.ImageRemove(context.Background(), ref, image.RemoveOptions{Force: true, PruneChildren: true})
		if err != nil {
			t.Error(err)
		}
	})
	return ref
}

// count returns the number of containers of an image and of images made from it. An engine's builder gives its own containers no
// names or labels.
func count(t *testing.T, e *engine.Engine, ref string) int {
	t.Helper()
	all, err := e.Client.ContainerList(t.Context(), container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("ancestor", ref))})
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}
