package cluster

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/checksum"
)

// publish makes a folder with a server tarball and its sum.
func publish(t *testing.T, members ...member) string {
	t.Helper()
	dir := t.TempDir()
	text, err := os.ReadFile(pack(t, members...))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		serverTarball(): string(text),
		"SHA256SUMS":    fmt.Sprintf("%x  %s\n%064x  kubernetes-client.tar.gz\n", sha256.Sum256(text), serverTarball(), 0),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func up(t *testing.T, tarballs string) (dir string, s *State, err error) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("needs Linux")
	}
	dir = t.TempDir()
	s, err = Up(t.Context(), Options{Dir: dir, Name: "x", Tarballs: tarballs, Nodes: 1, ControlPlaneOnly: true, Events: func(action.Event) {}})
	return dir, s, err
}

func TestTarballThatDiffersFromItsSumIsRefusedBeforeAnythingIsMade(t *testing.T) {
	t.Parallel()
	tarballs := publish(t, file("kubernetes/version", "v1\n"))
	f, err := os.OpenFile(filepath.Join(tarballs, serverTarball()), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte{1}, 4); err != nil { // the time in gzip's header, which gzip itself does not check
		t.Fatal(err)
	}
	dir, s, err := up(t, tarballs)
	if !errors.Is(err, checksum.ErrDiffers) || !strings.Contains(err.Error(), serverTarball()) || s != nil {
		t.Errorf("%v, error %v", s, err)
	}
	if made, _ := filepath.Glob(filepath.Join(dir, "*")); len(made) > 0 {
		t.Errorf("it made %q", made)
	}
}

func TestTarballWithoutASumIsRefused(t *testing.T) {
	t.Parallel()
	tarballs := publish(t, file("kubernetes/version", "v1\n"))
	sums := filepath.Join(tarballs, "SHA256SUMS")
	if err := os.WriteFile(sums, []byte(fmt.Sprintf("%064x  other\n", 0)), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := up(t, tarballs); !errors.Is(err, checksum.ErrUnnamed) {
		t.Errorf("error %v", err)
	}
	if err := os.Remove(sums); err != nil {
		t.Fatal(err)
	}
	if _, _, err := up(t, tarballs); !errors.As(err, new(*MissingError)) || err.Error() != "there is no SHA256SUMS in "+tarballs {
		t.Errorf("error %v", err)
	}
}

func TestWhatATarballLacksIsNamed(t *testing.T) {
	t.Parallel()
	_, s, err := up(t, publish(t, file("kubernetes/version", "v1\n"), file("kubernetes/server/bin/kubectl", "")))
	if err == nil || !strings.Contains(err.Error(), "lacks kubernetes/addons/bin/etcd, kubernetes/server/bin/kube-apiserver") || s == nil {
		t.Errorf("%v, error %v", s, err)
	}
	images := []imageFile{{"kubernetes/addons/images/pause.tar", []string{"registry.k8s.io/pause:3.10.2"}}}
	if err := requireImages(images, []string{"registry.k8s.io/pause:3.10.2", "registry.k8s.io/etcd:3.6.8-0"}); err == nil || !strings.Contains(err.Error(), ": registry.k8s.io/etcd:3.6.8-0:") {
		t.Errorf("error %v", err)
	}
}

func TestImagesAreKnownByTheLastPartOfTheirNames(t *testing.T) {
	t.Parallel()
	images := []imageFile{
		{"a", []string{"registry.example:5000/kube-apiserver-amd64:v1", "registry.example:5000/kube-apiserver:v1"}},
		{"b", []string{"registry.example:5000/coredns/coredns:v2"}},
	}
	for i, want := range map[int]map[string]string{
		0: {"kube-apiserver": "registry.example:5000", "kube-apiserver-amd64": "registry.example:5000", "kube": ""},
		1: {"coredns": "registry.example:5000/coredns", "etcd": ""},
	} {
		for short, repository := range want {
			if got := strings.Join(images[i].repositories(short), " "); got != repository {
				t.Errorf("of %s it is %q, want %q", short, got, repository)
			}
		}
	}
	if !hasImage(images, "coredns") || hasImage(images, "etcd") {
		t.Error("there is CoreDNS, and no etcd")
	}
	if !images[0].controlPlane() || images[1].controlPlane() {
		t.Error("the API server alone is of the control plane here")
	}
}

func TestStepsWaitForOthersAndTheFirstErrorEndsThem(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	var order []string
	var kinds []string
	events := func(e action.Event) { kinds = append(kinds, string(e.Kind)+" "+e.Action) }
	note := func(name string, err error) step {
		return step{name: name, run: func(context.Context) error { order = append(order, name); return err }}
	}
	one, two, three := note("one", nil), note("two", broken), note("three", nil)
	two.after, three.after = []string{"one"}, []string{"two"}
	if err := take(t.Context(), []step{three, two, one}, events); !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "two: ") {
		t.Errorf("error %v", err)
	}
	if got := strings.Join(order, " "); got != "one two" {
		t.Errorf("taken were %s", got)
	}
	if got := strings.Join(kinds, ", "); got != "planned , started one, done one, started two, failed two, finished " {
		t.Errorf("told was %s", got)
	}
}
