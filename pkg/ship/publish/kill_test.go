//go:build unix

package publish

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/mechanism/signature"
	"slipway.build/pkg/ship/trust"
	"slipway.build/pkg/ship/verify"
)

// Variables that make the test's program publish a folder to another one, by a public key's file.
const (
	toPublish = "TEST_PUBLISH_FOLDER"
	byTarget  = "TEST_PUBLISH_TARGET"
	byKey     = "TEST_PUBLISH_KEY"
)

// TestMain is publishing in a process of its own, if the environment says so.
func TestMain(m *testing.M) {
	if os.Getenv(toPublish) == "" {
		os.Exit(m.Run())
	}
	if err := publishOnce(context.Background(), os.Getenv(toPublish), os.Getenv(byTarget), os.Getenv(byKey)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func publishOnce(ctx context.Context, dir, to, key string) error {
	public, err := signature.ReadPublic(ctx, key)
	if err != nil {
		return err
	}
	accepted, err := Accept(ctx, dir, verify.Want{Trust: trust.Of(public)}, "", time.Now())
	if err != nil {
		return err
	}
	p, err := accepted.Plan(ctx, folder(to))
	if err != nil {
		return err
	}
	fmt.Println("planned")
	return p.Send(ctx, func() { fmt.Println("waiting") })
}

// process returns a process that publishes.
func (o owner) process(t *testing.T, dir, to string) *exec.Cmd {
	t.Helper()
	key := filepath.Join(t.TempDir(), "release.pub")
	if err := os.WriteFile(key, o.key.Public().PEM(), 0o644); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), toPublish+"="+dir, byTarget+"="+to, byKey+"="+key)
	return c
}

// whole checks that each file at a target is that of a whole one, and that markers name only what is there.
func whole(t *testing.T, to string, want map[string]string) (files int) {
	t.Helper()
	got := contents(t, to)
	for name, text := range got {
		if strings.HasPrefix(name, work) {
			continue
		}
		files++
		if text != want[name] && !strings.HasPrefix(name, "release/latest") && !strings.HasPrefix(name, "release/stable") {
			t.Errorf("%s is %q, want %q", name, text, want[name])
		}
	}
	for marker, version := range marked(t, to) {
		prefix := filepath.Join("release", version) + "/"
		for name := range want {
			if strings.HasPrefix(name, prefix) && got[name] == "" {
				t.Errorf("%s names %s, but there is no %s", marker, version, name)
			}
		}
	}
	return files
}

func TestKilledPublicationIsContinued(t *testing.T) {
	t.Parallel()
	o := newOwner(t)
	first, second := o.release(t, "v1.37.0+acme.9", nil), o.release(t, "v1.37.0+acme.10", nil)
	reference := t.TempDir()
	o.publish(t, first, reference)
	o.publish(t, second, reference)
	want := contents(t, reference)
	partial, kills := 0, 0
	for ; kills < 20 && partial < 5; kills++ {
		to := t.TempDir()
		o.publish(t, first, to)
		c := o.process(t, second, to)
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(out, make([]byte, len("planned\n"))); err != nil { // from now on, it writes
			t.Fatal(err)
		}
		time.Sleep(time.Duration(rand.IntN(100_000)) * time.Microsecond)
		_ = c.Process.Kill()
		_ = c.Wait()
		if whole(t, to, want) != len(want) {
			partial++
		}
		o.publish(t, second, to)
		got := contents(t, to)
		for name := range got { // which a run leaves that was killed when all was done
			if strings.HasPrefix(name, work) {
				delete(got, name)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the same again ends in another way (-want +got):\n%s", diff)
		}
	}
	t.Logf("%d of %d kills left a part", partial, kills)
	if partial == 0 {
		t.Error("no kill left a part: all came too late")
	}
}

func TestReadersAlwaysFindWhatMarkersName(t *testing.T) {
	t.Parallel()
	o, to := newOwner(t), t.TempDir()
	o.publish(t, o.release(t, "v1.37.0+acme.1", nil), to)
	var dirs []string
	for n := 2; n <= 6; n++ {
		dirs = append(dirs, o.release(t, fmt.Sprintf("v1.37.0+acme.%d", n), nil))
	}
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				marker, err := os.ReadFile(filepath.Join(to, "release", "stable.txt"))
				if err != nil {
					t.Error(err)
					return
				}
				names, err := os.ReadDir(filepath.Join(to, "release"))
				if err != nil {
					t.Error(err)
					return
				}
				for _, d := range names {
					if !d.IsDir() {
						continue
					}
					report, err := verify.Folder(context.Background(), filepath.Join(to, "release", d.Name()), o.want())
					if errors.Is(err, fs.ErrNotExist) && d.Name() != string(marker) {
						continue // on its way
					}
					if err != nil || !report.OK() {
						t.Errorf("%s, while stable is %s: %+v, %v", d.Name(), marker, report, err)
						return
					}
				}
			}
		})
	}
	for _, dir := range dirs {
		o.publish(t, dir, to)
	}
	p, err := Withdraw(t.Context(), folder(to), "v1.37.0+acme.6", "a test", Repositories{})
	if err == nil {
		err = p.Send(t.Context(), func() {})
	}
	close(done)
	readers.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if got := marked(t, to)["stable.txt"]; got != "v1.37.0+acme.5" {
		t.Errorf("stable is %s", got)
	}
}

func TestTwoPublishersLoseNothing(t *testing.T) {
	t.Parallel()
	o := newOwner(t)
	first, second := o.release(t, "v1.37.0+acme.9", nil), o.release(t, "v1.37.0+acme.10", nil)
	reference := t.TempDir()
	o.publish(t, first, reference)
	o.publish(t, second, reference)
	want := contents(t, reference)
	for range 5 {
		to := t.TempDir()
		var both sync.WaitGroup
		for _, dir := range []string{first, second, first} {
			c := o.process(t, dir, to)
			both.Go(func() {
				if out, err := c.CombinedOutput(); err != nil {
					t.Errorf("%v: %s", err, out)
				}
			})
		}
		both.Wait()
		if diff := cmp.Diff(want, contents(t, to)); diff != "" {
			t.Errorf("together, they end in another way (-want +got):\n%s", diff)
		}
	}
}

func TestSecondPublisherWaits(t *testing.T) {
	t.Parallel()
	o, to := newOwner(t), t.TempDir()
	p, err := o.plan(t, o.release(t, "v1.37.0", nil), to)
	if err != nil {
		t.Fatal(err)
	}
	waits := make(chan struct{})
	ended := make(chan error, 1)
	err = folder(to).Locked(t.Context(), func() {}, func() error {
		go func() { ended <- p.Send(t.Context(), func() { close(waits) }) }()
		<-waits
		if got := marked(t, to); len(got) > 0 {
			t.Errorf("it wrote %v", got)
		}
		return nil
	})
	if err = errors.Join(err, <-ended); err != nil || len(marked(t, to)) != 6 {
		t.Errorf("%v, %v", marked(t, to), err)
	}
}

// A full is a channel whose disk becomes full.
type full struct {
	folder
	mu   sync.Mutex
	left int64
}

func (f *full) Put(ctx context.Context, name string, fill func(io.Writer) error) error {
	return f.folder.Put(ctx, name, func(w io.Writer) error { return fill(fullWriter{f, w}) })
}

type fullWriter struct {
	f *full
	w io.Writer
}

func (w fullWriter) Write(p []byte) (int, error) {
	w.f.mu.Lock()
	defer w.f.mu.Unlock()
	if w.f.left -= int64(len(p)); w.f.left < 0 {
		n, err := w.w.Write(p[:len(p)/2])
		return n, errors.Join(err, syscall.ENOSPC)
	}
	return w.w.Write(p)
}

func TestFullDiskLeavesWholeFiles(t *testing.T) {
	t.Parallel()
	o := newOwner(t)
	from := o.release(t, "v1.37.0", nil)
	reference := t.TempDir()
	o.publish(t, from, reference)
	want := contents(t, reference)
	accepted, err := Accept(t.Context(), from, o.want(), "", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for _, space := range []int64{0, 10_000, 100_000, 250_000} {
		to := t.TempDir()
		p, err := accepted.Plan(t.Context(), &full{folder: folder(to), left: space})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Send(t.Context(), func() {}); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("with %d bytes: %v", space, err)
		}
		whole(t, to, want)
		if got := marked(t, to); len(got) > 0 {
			t.Errorf("with %d bytes, there are the markers %v", space, got)
		}
		if entries, err := os.ReadDir(filepath.Join(to, work)); len(entries) > 0 {
			t.Errorf("with %d bytes, it left %v, %v", space, entries, err)
		}
		o.publish(t, from, to)
		if diff := cmp.Diff(want, contents(t, to)); diff != "" {
			t.Errorf("with %d bytes, the same again ends in another way (-want +got):\n%s", space, diff)
		}
	}
}

func TestUmaskDoesNotMatter(t *testing.T) { // not parallel: a umask is the process'
	o := newOwner(t)
	from := o.release(t, "v1.37.0", nil)
	var all []map[string]string
	for _, umask := range []int{0o077, 0} {
		to := t.TempDir()
		old := syscall.Umask(umask)
		o.publish(t, from, to)
		syscall.Umask(old)
		all = append(all, contents(t, to))
	}
	if diff := cmp.Diff(all[0], all[1]); diff != "" {
		t.Errorf("by another umask:\n%s", diff)
	}
}
