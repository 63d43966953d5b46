package cluster

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/mechanism/child/childtest"
	"slipway.build/pkg/prove/cluster/kubeadm"
)

func TestComplaintsOfProgramsAreFound(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ said, want string }{
		{"I1128 12:00:00 1 a.go:1] hello\nE1128 12:00:00 1 run.go:72] \"command failed\" err=\"unknown \\\"x\\\"\"\n", `unknown "x"`},
		{"W1128 reader.go:81] Audit policy contains errors: strict decoding error: unknown field \"a\"\nE1128 \"command failed\" err=\"open x\"",
			`strict decoding error: unknown field "a"`},
		{`I1128 options.go:502] "Using lenient decoding" err="strict decoding error: unknown field \"modee\""`,
			`strict decoding error: unknown field "modee"`},
		{"panic: unrecognized feature gate: A\n\ngoroutine 1", "unrecognized feature gate: A"},
		{"error: it is wrong\nTo see the stack trace\n", "it is wrong"},
		{"\nwhat?\n", "what?"},
		{"", ""},
	} {
		if got := complaint(tt.said); got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.said, got, tt.want)
		}
	}
}

// Scripts stand in for the programs of a control plane, which read what was set.
func TestProgramsRefuseSettingsBeforeAnythingStarts(t *testing.T) {
	t.Parallel()
	s := created(t, t.TempDir(), "a")
	s.patience = time.Minute
	dir := t.TempDir()
	const help = "case \"$*\" in --help) echo '  --v int'; echo ' kube:Good=true|false (ALPHA)' ;;\n"
	for name, does := range map[string]string{
		"etcd": "sleep 60",
		"kube-scheduler": help + "*--config=*--write-config-to=*) " +
			"echo 'strict decoding error: unknown field \"a.profilez\"'; exit 1 ;;\nesac\n# json:\"profiles,omitempty\"",
		"kube-controller-manager": help + "*--vv=1*) echo 'Error: unknown flag: --vv'; exit 1 ;;\nesac",
		"kube-apiserver": help + "*--version) ;;\n*=batch/v9*) echo 'E1 \"command failed\" err=\"group version batch/v9\"'; exit 1 ;;\n" +
			"*) echo \"E1 \\\"command failed\\\" err=\\\"open $(echo \"$*\" | sed 's/.*=//'): no such file or directory\\\"\"; exit 1 ;;\nesac",
	} {
		childtest.Script(t, filepath.Join(dir, name), "#!/bin/sh\n"+does+"\n")
		p, err := s.store(t.Context(), dir, name)
		if err != nil {
			t.Fatal(err)
		}
		s.Programs = append(s.Programs, p)
	}
	document := func(kind string, fields object) Settings {
		return Settings{Documents: map[string]kubeadm.Document{kind: {From: "a.yaml:1", Fields: fields}}}
	}
	for _, tt := range []struct {
		set  Settings
		want string
	}{
		{Settings{FeatureGates: map[string]bool{"Goood": true}}, `unknown feature gate "Goood"; did you mean Good?`},
		{Settings{RuntimeConfig: map[string]string{"batch/v9": "true"}}, "kube-apiserver: group version batch/v9"},
		{document(kubeadm.SchedulerKind, object{"profilez": 1}),
			`a.yaml:1: KubeSchedulerConfiguration: kube-scheduler: strict decoding error: unknown field "a.profilez"; did you mean profiles?`},
		{document(kubeadm.ClusterKind, object{"controllerManager": object{"extraArgs": []any{object{"name": "vv", "value": "1"}}}}),
			"a.yaml:1: ClusterConfiguration: kube-controller-manager: unknown flag: --vv; did you mean v?"},
		{Settings{FeatureGates: map[string]bool{"Good": true}, RuntimeConfig: map[string]string{"batch/v1": "true"}}, ""},
		{Settings{}, ""},
	} {
		s.Settings = tt.set
		err := s.checkSettings(t.Context())
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || !badrequest.Is(err)) {
			t.Errorf("got %v, want %q", err, tt.want)
		}
	}
	if left, err := filepath.Glob(s.path("settings-*")); err != nil || len(left) > 0 {
		t.Errorf("%q are left, %v", left, err)
	}
}

func TestStatusListsSettings(t *testing.T) {
	t.Parallel()
	s := &State{Name: "a", Settings: Settings{FeatureGates: map[string]bool{"A": true}}}
	var text strings.Builder
	const want = "SETTING        FIELD   VALUE\nfeature gate   A       true\n"
	if err := s.Status(t.Context()).Text(&text); err != nil || !strings.Contains(text.String(), want) {
		t.Errorf("%v\n%s", err, text.String())
	}
}

func TestStatusCountsHollowNodes(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	const want = "HOLLOW NODES   READY\n5              4\n"
	if err := (Status{Hollow: &Hollow{Wanted: 5, Ready: 4}}).Text(&text); err != nil || !strings.Contains(text.String(), want) {
		t.Errorf("%v\n%s", err, text.String())
	}
}

func TestNothingIsLeftOfClusterWithUnknownFeatureGate(t *testing.T) {
	t.Parallel()
	dir, bin := t.TempDir(), t.TempDir()
	for _, name := range controlPlanePrograms {
		childtest.Script(t, filepath.Join(bin, name), "#!/bin/sh\n# "+name+"\necho Kubernetes v1.37.0 Good=true'|'false\n")
	}
	s, err := Up(t.Context(), Options{Dir: dir, Name: "a", Bin: bin, ControlPlaneOnly: true,
		Settings: Settings{FeatureGates: map[string]bool{"Goood": true}}, Events: func(action.Event) {}})
	if s != nil || err == nil || !strings.Contains(err.Error(), "did you mean Good?") || !badrequest.Is(err) {
		t.Errorf("got %+v, %v", s, err)
	}
	if names, err := Names(dir); err != nil || len(names) > 0 {
		t.Errorf("%q are left, %v", names, err)
	}
}
