package kubeadm

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"slipway.build/pkg/mechanism/badrequest"
)

const (
	kubeadmVersion = "apiVersion: kubeadm.k8s.io/v1beta4\n"
	kubeletVersion = "apiVersion: kubelet.config.k8s.io/v1beta1\n"
	ofCluster      = kubeadmVersion + "kind: ClusterConfiguration\n"
)

// settingsOf reads settings from a file with a text.
func settingsOf(t *testing.T, text string) (Settings, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "settings.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return ReadSettings(nil, nil, []string{file})
}

func TestMistakesInSettingsAreNamedWithTheirLine(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ text, want string }{
		{kubeletVersion + "kind: KubletConfiguration", `settings.yaml:1: unknown kind "KubletConfiguration"; did you mean KubeletConfiguration?`},
		{kubeletVersion, `settings.yaml:1: unknown kind ""; it can be AdmissionConfiguration, `},
		{"---\n---\napiVersion: v1\nkind: Policy", `settings.yaml:3: Policy has the apiVersion "v1", want audit.k8s.io/v1`},
		{kubeletVersion + "kind: KubeletConfiguration\n---\n" + kubeletVersion + "kind: KubeletConfiguration",
			"settings.yaml:4: KubeletConfiguration: there is one already, in "},
		{kubeletVersion + "kind: KubeletConfiguration\nmaxPods: 1\nmaxPods: 2", `line 4: mapping key "maxPods" already defined at line 3`},
		{kubeletVersion + "kind: KubeletConfiguration\ncgroupRoot: /", "cgroupRoot cannot be set: it belongs to slipway"},
		{ofCluster + "etcd: {external: {endpoints: []}}", "etcd.external cannot be set"},
		{ofCluster + "apiServer: {extraArgs: [{name: audit-policy-file, value: /x}]}",
			"apiServer.extraArgs: audit-policy-file cannot be set: it belongs to slipway"},
		{ofCluster + "apiServer: {extraArgs: [{name: v, values: x}]}", `unknown field "values"`},
		{ofCluster + "apiServer: {extraArgs: {v: x}}", "apiServer.extraArgs: json: cannot unmarshal object"},
		{kubeadmVersion + "kind: InitConfiguration\nnodeRegistration: {kubeletExtraArgs: [{name: node-ip, value: x}]}", "node-ip cannot be set"},
		{"- a", "settings.yaml:1: want a mapping with apiVersion and kind"},
		{"a: b: c", "mapping values are not allowed"},
		{"a: {2: 3}", "settings.yaml:1: json: unsupported type"},
	} {
		_, err := settingsOf(t, tt.text)
		if err == nil || !strings.Contains(err.Error(), tt.want) || !badrequest.Is(err) {
			t.Errorf("%s\ngot %v, want %s", tt.text, err, tt.want)
		}
	}
	for _, tt := range []struct {
		gates, runtime []string
		want           string
	}{
		{[]string{"A"}, nil, `feature gate "A": want NAME=true or NAME=false`},
		{[]string{"A=on"}, nil, `feature gate "A=on"`},
		{nil, []string{"batch/v1"}, `runtime configuration "batch/v1": want `},
	} {
		if _, err := ReadSettings(tt.gates, tt.runtime, nil); err == nil || !strings.HasPrefix(err.Error(), tt.want) || !badrequest.Is(err) {
			t.Errorf("%q %q: %v", tt.gates, tt.runtime, err)
		}
	}
	if s, err := settingsOf(t, "---\n# nothing\n---\n"); err != nil || !s.Empty() {
		t.Errorf("an empty file: %+v, %v", s, err)
	}
}

func TestSettingsAreMergedOverSlipwaysOwn(t *testing.T) {
	t.Parallel()
	s, err := settingsOf(t, `
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
apiServer: {extraArgs: [{name: feature-gates, value: C=true}, {name: audit-log-maxsize, value: "7"}]}
controllerManager: {extraArgs: [{name: kube-api-qps, value: "9"}]}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
nodeRegistration:
  taints: [{key: a, effect: NoSchedule}]
  kubeletExtraArgs: [{name: v, value: "4"}]
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
evictionHard: {memory.available: 50Mi}
imageMinimumGCAge: 1m
---
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {qps: 5}
`)
	if err != nil {
		t.Fatal(err)
	}
	s.FeatureGates, s.RuntimeConfig = map[string]bool{"A": true, "B": false}, map[string]string{"api/all": "true", "batch/v1": "false"}
	if err := s.Distribute(map[string][]string{apiServer: {"A", "B"}, kubelets: {"B"}, proxies: {}}); err != nil {
		t.Fatal(err)
	}
	c := Config{Cluster: "c", Node: Node{Name: "c-1", Address: "198.18.0.2"}, Settings: s}
	text, err := c.Init()
	if err != nil {
		t.Fatal(err)
	}
	docs := decode(t, text)
	arguments := func(kind string, path ...string) map[string]string {
		list, err := argumentsAt(docs[kind], path)
		if err != nil {
			t.Fatal(err)
		}
		byName := map[string]string{}
		for _, a := range list {
			byName[a.Name] += a.Value
		}
		return byName
	}
	for _, tt := range []struct {
		got  map[string]string
		want map[string]string
	}{
		{arguments(ClusterKind, "apiServer", "extraArgs"), map[string]string{"feature-gates": "A=true,B=false,C=true",
			"runtime-config": "api/all=true,batch/v1=false", "audit-log-maxsize": "7", "audit-log-maxbackup": "1"}},
		{arguments(ClusterKind, "controllerManager", "extraArgs"), map[string]string{"kube-api-qps": "9", "kube-api-burst": "400"}},
		{arguments(ClusterKind, "scheduler", "extraArgs"), map[string]string{"config": "/etc/kubernetes/slipway/scheduler.yaml"}},
		{arguments(InitKind, "nodeRegistration", "kubeletExtraArgs"), map[string]string{"v": "4", "node-ip": "198.18.0.2"}},
	} {
		for name, want := range tt.want {
			if tt.got[name] != want {
				t.Errorf("%s is %q, want %q", name, tt.got[name], want)
			}
		}
	}
	kubelet := docs[KubeletKind]
	if !reflect.DeepEqual(kubelet["featureGates"], object{"B": false}) || kubelet["imageMinimumGCAge"] != "1m" ||
		!reflect.DeepEqual(kubelet["evictionHard"], object{"memory.available": "50Mi"}) || kubelet["cgroupDriver"] != "cgroupfs" {
		t.Errorf("the kubelet has %v", kubelet)
	}
	if docs[ProxyKind]["featureGates"] != nil || docs[ProxyKind]["mode"] != "iptables" {
		t.Errorf("kube-proxy has %v", docs[ProxyKind])
	}
	if text, err = c.Join(false); err != nil || !strings.Contains(string(text), `"effect": "NoSchedule"`) ||
		decode(t, text)["JoinConfiguration"] == nil {
		t.Errorf("a node joins by %s, %v", text, err)
	}

	dir := t.TempDir()
	if err := WriteControlPlaneFiles(dir, NewSecret(), s); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(filepath.Join(dir, "slipway", "scheduler.yaml"))
	if err != nil || !reflect.DeepEqual(decode(t, file)[SchedulerKind]["clientConnection"],
		object{"kubeconfig": "/etc/kubernetes/scheduler.conf", "qps": 5}) {
		t.Errorf("the scheduler reads %s, %v", file, err)
	}
}

func TestControlPlaneAloneRefusesWhatItDoesNotHave(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		kubeletVersion + "kind: KubeletConfiguration":                                  "has no nodes",
		kubeadmVersion + "kind: InitConfiguration":                                     "has no nodes",
		"apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration":   "has no nodes",
		ofCluster + "apiServer: {certSANs: [a]}":                                       "apiServer.certSANs cannot be set",
		ofCluster + "etcd: {local: {extraArgs: []}}":                                   "etcd.local.extraArgs cannot be set",
		ofCluster + `apiServer: {extraArgs: [{name: v, value: "2"}]}`:                  "",
		"apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration": "",
		"apiVersion: audit.k8s.io/v1\nkind: Policy":                                    "",
		"apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration":         "",
	} {
		s, err := settingsOf(t, text)
		if err != nil {
			t.Fatal(err)
		}
		err = s.ForControlPlaneAlone()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) || !badrequest.Is(err)) {
			t.Errorf("%s\ngot %v, want %q", text, err, want)
		}
	}
	s := Settings{RuntimeConfig: map[string]string{"api/all": "true"}, Documents: map[string]Document{
		AuditKind:   {},
		ClusterKind: {Fields: object{"apiServer": object{"extraArgs": []any{object{"name": "v", "value": "2"}}}}},
	}}
	want := []string{"--runtime-config=api/all=true", "--audit-policy-file=/x/audit.yaml", "--v=2"}
	if got := s.Flags(apiServer, "/x"); !slices.Equal(got, want) || len(s.Flags(proxies, "/x")) > 0 {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestFeatureGateOfNoComponentIsUnknown(t *testing.T) {
	t.Parallel()
	s := Settings{FeatureGates: map[string]bool{"NodeSwop": true}}
	err := s.Distribute(map[string][]string{apiServer: {"NodeSwap"}, kubelets: {"NodeSwap"}})
	if err == nil || err.Error() != `unknown feature gate "NodeSwop"; did you mean NodeSwap?` {
		t.Error(err)
	}
}

func TestSettingsAreTheSameAfterTheyWereWritten(t *testing.T) {
	t.Parallel()
	s, err := settingsOf(t, kubeletVersion+"kind: KubeletConfiguration\nmaxPods: 110\nevictionHard: {}\nshutdownGracePeriod: 1m")
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var read Settings
	if err := json.Unmarshal(text, &read); err != nil || !read.Same(s) || read.Same(Settings{}) {
		t.Errorf("%s: %v", text, err)
	}
	want := []Setting{{KubeletKind, "evictionHard", "{}"}, {KubeletKind, "maxPods", "110"}, {KubeletKind, "shutdownGracePeriod", "1m"}}
	if got := s.List(); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
