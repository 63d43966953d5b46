package cluster

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/mechanism/child/childtest"
	"slipway.build/pkg/prove/cluster/machine"
)

const schedulerManifest = `apiVersion: v1
kind: Pod
metadata:
  labels:
    component: kube-scheduler
  name: kube-scheduler
spec:
  containers:
  - command:
    - kube-scheduler
    image: registry.k8s.io/kube-scheduler:v1
    imagePullPolicy: IfNotPresent
`

func TestManifestGoesToAnotherImageAndBack(t *testing.T) {
	t.Parallel()
	m := manifest(schedulerManifest)
	if got, err := m.image(); got != "registry.k8s.io/kube-scheduler:v1" || err != nil {
		t.Errorf("its image is %q, %v", got, err)
	}
	other := m.with("registry.k8s.io/kube-scheduler:v1-built", "4711")
	if got, err := other.image(); got != "registry.k8s.io/kube-scheduler:v1-built" || err != nil {
		t.Errorf("its image is %q, %v", got, err)
	}
	if !strings.Contains(string(other), "metadata:\n  uid: 4711\n  labels:\n") {
		t.Errorf("it has no UID:\n%s", other)
	}
	third := other.with("registry.k8s.io/kube-scheduler:v1-again", "4711")
	if strings.Count(string(third), "uid:") != 1 {
		t.Errorf("it has several UIDs:\n%s", third)
	}
	if back := third.with("registry.k8s.io/kube-scheduler:v1", ""); back != m { // the kubelet computes the first UID from its content
		t.Errorf("it is not as before:\n%s", back)
	}
	if _, err := manifest("metadata:\n").image(); err == nil {
		t.Error("a manifest without an image is taken")
	}
}

func TestComponentsThatCannotBeReplacedAreNamed(t *testing.T) {
	t.Parallel()
	nodes, alone := &State{}, &State{ControlPlaneOnly: true}
	for _, tt := range []struct {
		s          *State
		name, want string
	}{
		{nodes, "etcd", "etcd cannot be replaced: another version may write data"},
		{nodes, "kublet", `unknown component "kublet"; did you mean kubelet?`},
		{alone, "kubelet", `unknown component "kubelet"; it can be kube-apiserver, kube-controller-manager or kube-scheduler`},
	} {
		err := tt.s.Replace(t.Context(), ReplaceOptions{Components: []string{tt.name}})
		if err == nil || !strings.Contains(err.Error(), tt.want) || !badrequest.Is(err) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
	if err := nodes.Replace(t.Context(), ReplaceOptions{Components: []string{"kubelet"}}); !errors.Is(err, ErrUnfinished) {
		t.Errorf("a cluster that is not up: got %v", err)
	}
}

// TestProgramIsReplacedAndBack replaces a script that runs as a process of a control plane. A script in the place of kubectl says that it
// is ready when it has written a file.
func TestProgramIsReplacedAndBack(t *testing.T) {
	t.Parallel()
	s := created(t, t.TempDir(), "a")
	t.Cleanup(func() { _ = s.endProcesses(t.Context()) })
	ready := s.path("ready")
	// script writes a program to a folder of its own.
	script := func(name, does string) (dir string) {
		dir = t.TempDir()
		text := "#!/bin/sh\ncase \"$1\" in *version*) false ;; esac || { echo 'version " + does + "'; exit; }\n" + does + "\n"
		childtest.Script(t, filepath.Join(dir, name), text)
		return dir
	}
	runs := func(word string) string { return "echo " + word + ` "$@" >` + ready + "; exec sleep 60" }
	for name, does := range map[string]string{"kubectl": "cat " + ready, "kube-scheduler": runs("first")} {
		p, err := s.store(t.Context(), script(name, does), name)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.change(func() { s.Programs, s.Ready = append(s.Programs, p), true }); err != nil {
			t.Fatal(err)
		}
	}
	program, err := s.fileOf("kube-scheduler", s.original("kube-scheduler"))
	if err != nil {
		t.Fatal(err)
	}
	s.patience = time.Minute
	p := Process{Name: "kube-scheduler", Address: "https://127.0.0.1:1", Flags: []string{"--flag=a b"}}
	if err := s.startProgram(t.Context(), program, p); err != nil {
		t.Fatal(err)
	}
	isReady := func(want string) {
		t.Helper()
		limit, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := machine.Retry(limit, time.Millisecond, func() error {
			got, err := os.ReadFile(ready)
			if err == nil && string(got) != want+" --flag=a b\n" {
				err = errors.New(string(got))
			}
			return err
		})
		if err != nil {
			t.Errorf("not %s: %v", want, err)
		}
	}
	isReady("first")
	replace := func(o ReplaceOptions) error {
		if err := os.Remove(ready); err != nil {
			t.Fatal(err)
		}
		o.Components, o.Events, o.Wait = []string{"kube-scheduler"}, func(action.Event) {}, 10*time.Second
		loaded, err := Load(filepath.Dir(s.dir), "a") // as another command does
		if err != nil {
			t.Fatal(err)
		}
		err = loaded.Replace(t.Context(), o)
		s.Processes, s.Replaced, s.Unsettled = loaded.Processes, loaded.Replaced, loaded.Unsettled
		return err
	}

	if err := replace(ReplaceOptions{Dir: script("kube-scheduler", runs("second"))}); err != nil {
		t.Fatal(err)
	}
	isReady("second")
	if len(s.Replaced) != 1 || !strings.HasPrefix(s.Replaced[0].Version, "version echo second") || len(s.Processes) != 1 {
		t.Errorf("the state is %+v, %+v", s.Replaced, s.Processes)
	}

	err = replace(ReplaceOptions{Dir: script("kube-scheduler", "echo it cannot start >&2; exit 3")})
	if err == nil || !strings.Contains(err.Error(), "the earlier one was put back") || !strings.Contains(err.Error(), "it cannot start") {
		t.Errorf("a program that ends: %v", err)
	}
	isReady("second")
	if len(s.Replaced) != 1 || len(s.Unsettled) != 0 {
		t.Errorf("the state is %+v, %q", s.Replaced, s.Unsettled)
	}

	if err := replace(ReplaceOptions{Back: true}); err != nil {
		t.Fatal(err)
	}
	isReady("first")
	if len(s.Replaced) != 0 {
		t.Errorf("the state is %+v", s.Replaced)
	}
	copies, err := filepath.Glob(s.path("programs", "*"))
	if err != nil || len(copies) != 2 {
		t.Errorf("copies are %q, %v, want those of the two first programs", copies, err)
	}
}

func TestReplacedProgramIsOfNoRelease(t *testing.T) {
	t.Parallel()
	s := &State{dir: t.TempDir(), Programs: []Program{{Name: "kubelet", SHA256: strings.Repeat("a", 64)}}}
	if got := s.current("kubelet"); got == nil || got.SHA256[0] != 'a' {
		t.Errorf("current is %v", got)
	}
	s.Replaced = []Program{{Name: "kubelet", SHA256: strings.Repeat("b", 64), From: "/src/kubelet"}}
	s.Unsettled = []string{"kube-proxy"}
	if got := s.current("kubelet"); got.SHA256[0] != 'b' || s.original("kubelet").SHA256[0] != 'a' || s.current("kubectl") != nil {
		t.Errorf("current is %v", got)
	}
	var text strings.Builder
	if err := s.Status(t.Context()).Text(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"bbbbbbbbbbbb", "/src/kubelet", "kube-proxy", "its replacement was cut off"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %s in\n%s", want, text.String())
		}
	}
	if strings.Contains(text.String(), "aaaaaaaaaaaa") {
		t.Errorf("it lists what does not run:\n%s", text.String())
	}
}

func TestProcessTakesThePlaceOfOneWithItsName(t *testing.T) {
	t.Parallel()
	before := []Process{{Name: "a", Process: machine.Process{PID: 1}}, {Name: "b", Process: machine.Process{PID: 2}}}
	after := withProcess(before, Process{Name: "a", Process: machine.Process{PID: 3}})
	if after[0].PID != 3 || len(after) != 2 || before[0].PID != 1 {
		t.Errorf("got %+v", after)
	}
	if after = withProcess(before, Process{Name: "c"}); len(after) != 3 || !slices.EqualFunc(after[:2], before,
		func(a, b Process) bool { return a.Name == b.Name }) {
		t.Errorf("got %+v", after)
	}
}
