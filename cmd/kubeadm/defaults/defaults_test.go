package defaults

import (
	"embed"
	"strings"
	"testing"
	"testing/fstest"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/cli/flag"
	"k8s.io/kubernetes/cmd/kubeadm/app/apis/kubeadm"
	"k8s.io/kubernetes/cmd/kubeadm/app/componentconfigs"
	"k8s.io/kubernetes/cmd/kubeadm/app/util/config"
	kubelet "k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/apis/config/scheme"
	"k8s.io/kubernetes/pkg/kubelet/apis/config/validation"
)

//go:embed kubeadm.yaml profiles/cis.yaml
var shipped embed.FS

const mine = `apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {advertiseAddress: 10.0.0.1}
nodeRegistration: {name: node}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
apiServer:
  extraArgs: [{name: audit-log-maxage, value: "30"}, {name: tls-cipher-suites, value: TLS_AES_128_GCM_SHA256}]
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
podPidsLimit: 77
failCgroupV1: false # or this machine would decide
`

// The schemes are the program's, so there is one test.
func TestProfileIsMergedUnderAUsersConfiguration(t *testing.T) {
	files := fstest.MapFS{}
	for name, from := range map[string]string{first: first, "cis.yaml": "profiles/cis.yaml"} {
		text, err := shipped.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = &fstest.MapFile{Data: text}
	}
	upstream := made(t, mine)
	if err := use(files, "v1.36.0"); err != nil {
		t.Fatal(err)
	}
	got := made(t, mine)
	if got.KubernetesVersion != "v1.36.0" {
		t.Errorf("it is for Kubernetes %s", got.KubernetesVersion)
	}
	// The benchmark's numbers are those of its version 1.11. What kubeadm does by itself must stay so, too.
	k := kubeletOf(t, got)
	const anonymous = "anonymous-auth"
	probes := argument(upstream.APIServer.ExtraArgs, anonymous)
	for what, ok := range map[string]bool{
		"1.2.1 anonymous requests are for probes":   argument(got.APIServer.ExtraArgs, anonymous) == probes,
		"1.2.15 API server without profiles":        argument(got.APIServer.ExtraArgs, "profiling") == "false",
		"1.2.29 a user's ciphers":                   argument(got.APIServer.ExtraArgs, "tls-cipher-suites") == "TLS_AES_128_GCM_SHA256",
		"1.2.17 a user's other argument":            argument(got.APIServer.ExtraArgs, "audit-log-maxage") == "30",
		"1.3.1 terminated Pods go":                  argument(got.ControllerManager.ExtraArgs, "terminated-pod-gc-threshold") == "1000",
		"1.3.2 controller manager without profiles": argument(got.ControllerManager.ExtraArgs, "profiling") == "false",
		"1.4.1 scheduler without profiles":          argument(got.Scheduler.ExtraArgs, "profiling") == "false",
		"4.2.1 no anonymous requests to kubelets":   !k.Authentication.Anonymous.Enabled,
		"4.2.2 API servers authorize for kubelets":  k.Authorization.Mode == kubelet.KubeletAuthorizationModeWebhook,
		"4.2.3 a CA of clients":                     k.Authentication.X509.ClientCAFile != "",
		"4.2.4 no port that all may read":           k.ReadOnlyPort == 0,
		"4.2.6 iptables":                            k.MakeIPTablesUtilChains,
		"4.2.10 certificates rotate":                k.RotateCertificates,
		"4.2.12 ciphers of kubelets":                len(k.TLSCipherSuites) == 4,
		"4.2.13 a user's limit of processes":        k.PodPidsLimit == 77,
		"4.2.14 seccomp":                            k.SeccompDefault,
		"kernel settings are checked":               k.ProtectKernelDefaults,
	} {
		if !ok {
			t.Error(what)
		}
	}
	if err := validation.ValidateKubeletConfiguration(k, feature.DefaultFeatureGate); err != nil {
		t.Error(err)
	}
	ciphers := argument(made(t, strings.Replace(mine, "tls-cipher-suites", "other", 1)).APIServer.ExtraArgs, "tls-cipher-suites")
	for _, list := range [][]string{strings.Split(ciphers, ","), k.TLSCipherSuites} {
		if all, err := flag.TLSCipherSuites(list); err != nil || len(all) != 4 {
			t.Errorf("%q: %v", list, err)
		}
	}

	files["cis.yaml"].Data = []byte("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPds: 1\n")
	if err := use(files, "v1.36.0"); err == nil || !strings.HasPrefix(err.Error(), "defaults/cis.yaml, of which this kubeadm is made: ") {
		t.Errorf("error %v", err)
	}
}

// made returns what kubeadm makes of a configuration.
func made(t *testing.T, text string) *kubeadm.InitConfiguration {
	t.Helper()
	c, err := config.BytesToInitConfiguration([]byte(text), true)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// argument returns an argument, which must be there once at most.
func argument(all []kubeadm.Arg, name string) string {
	var values []string
	for _, a := range all {
		if a.Name == name {
			values = append(values, a.Value)
		}
	}
	return strings.Join(values, " and ")
}

// kubeletOf returns the configuration of kubelets.
func kubeletOf(t *testing.T, c *kubeadm.InitConfiguration) *kubelet.KubeletConfiguration {
	t.Helper()
	schemes, _, err := scheme.NewSchemeAndCodecs()
	if err != nil {
		t.Fatal(err)
	}
	versioned := c.ComponentConfigs[componentconfigs.KubeletGroup].Get()
	k := &kubelet.KubeletConfiguration{}
	schemes.Default(versioned.(runtime.Object))
	if err := schemes.Convert(versioned, k, nil); err != nil {
		t.Fatal(err)
	}
	return k
}
