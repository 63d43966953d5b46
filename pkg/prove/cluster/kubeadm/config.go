package kubeadm

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

const (
	// Folder is where a node has its own folder.
	Folder = "/run/slipway/node"
	// Patches is the folder, in that of a node, with changes to the manifests of static Pods.
	Patches = "patches"
	// DiscoveryFile, in the folder of a node, says to a node that joins where the API is, and which CA it has. With a token alone, kubeadm
	// waits until a controller has signed what it asks for, and asks every five seconds.
	DiscoveryFile = "discovery.conf"

	// RuntimeEndpoint is where a node's container runtime listens.
	RuntimeEndpoint = "unix:///run/containerd/containerd.sock"
	// APIPort is where API servers listen.
	APIPort = 6443

	// Pods of a node have addresses from a part of PodNetwork that the controller manager chooses.
	PodNetwork     = "10.244.0.0/16"
	ServiceNetwork = "10.96.0.0/12"

	// volumePlugins is a folder of the node. The default one is in /usr, which belongs to the machine.
	volumePlugins = "/var/lib/kubelet/volumeplugins"
)

type object = map[string]any

// A Config is what kubeadm must know of a cluster and a node.
type Config struct {
	Cluster  string
	Version  string // this and Registry are empty if kubeadm knows them by itself
	Registry string
	Token    string        // of nodes that join
	Endpoint string        // of the API server: address and port
	Key      string        // encrypts the control plane's keys for nodes that join with a control plane; empty if none does
	Wait     time.Duration // for the API
	Node     Node
	Settings Settings
}

// A Node is what kubeadm must know of a node.
type Node struct {
	Name       string
	Address    string
	CgroupRoot string
	Patched    bool // the manifests of its static Pods
}

// NewToken returns a token for nodes that join: 6 letters and digits, a dot, and 16 more.
func NewToken() string {
	text := strings.ToLower(rand.Text())
	return text[:6] + "." + text[6:22]
}

// NewKey returns a key of AES-256 as kubeadm reads it.
func NewKey() string { return hex.EncodeToString(NewSecret()) }

// Init returns the file for kubeadm init.
func (c Config) Init() ([]byte, error) {
	start := c.node("InitConfiguration")
	start["bootstrapTokens"] = []object{{"token": c.Token, "ttl": "1h0m0s", "usages": []string{"signing", "authentication"},
		"groups": []string{"system:bootstrappers:kubeadm:default-node-token"}}}
	start["localAPIEndpoint"] = c.local()
	whole := object{
		"apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "ClusterConfiguration",
		"clusterName": c.Cluster,
		"networking":  object{"podSubnet": PodNetwork, "serviceSubnet": ServiceNetwork},
		"apiServer":   apiServerSettings(),
		"controllerManager": object{"extraArgs": arguments("flex-volume-plugin-dir", volumePlugins,
			// By default it waits for its own limit of 20 requests per second while it starts, so its controllers sign no certificates of
			// kubelets for seconds, and each kubelet asks less and less often.
			"kube-api-qps", "200", "kube-api-burst", "400")},
	}
	if c.Registry != "" {
		whole["kubernetesVersion"], whole["imageRepository"] = c.Version, c.Registry
	}
	if c.Key != "" {
		start["certificateKey"], whole["controlPlaneEndpoint"] = c.Key, c.Endpoint
	}
	return documents(start, c.Settings.cluster(whole), c.Settings.over(kubelet(), c.Settings.gates(kubelets)),
		c.Settings.over(proxy(), c.Settings.gates(proxies)))
}

func proxy() object {
	return object{
		"apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration",
		"mode": "iptables",
		// The limit of tracked connections applies to the whole machine.
		"conntrack": object{"maxPerCore": 0, "min": 0},
	}
}

// Join returns the file for kubeadm join, of a node with a control plane or without one.
func (c Config) Join(controlPlane bool) ([]byte, error) {
	join := c.node("JoinConfiguration")
	join["discovery"] = object{"file": object{"kubeConfigPath": Folder + "/" + DiscoveryFile}, "tlsBootstrapToken": c.Token}
	if controlPlane {
		join["controlPlane"] = object{"certificateKey": c.Key, "localAPIEndpoint": c.local()}
	}
	return documents(join)
}

// node returns what the configurations of nodes have in common.
func (c Config) node(kind string) object {
	o := object{
		"apiVersion": "kubeadm.k8s.io/v1beta4", "kind": kind, "timeouts": c.timeouts(),
		"nodeRegistration": object{
			"name": c.Node.Name, "criSocket": RuntimeEndpoint,
			"imagePullSerial":  false,
			"taints":           []object{}, // Pods run on every node, including the first
			"kubeletExtraArgs": arguments("node-ip", c.Node.Address, "cgroup-root", "/"+c.Node.CgroupRoot),
		},
	}
	if c.Node.Patched {
		o["patches"] = object{"directory": Folder + "/" + Patches}
	}
	set := maps.Clone(c.Settings.Documents[InitKind].Fields)
	delete(set, "kind") // it may be a JoinConfiguration
	return merge(o, set)
}

// local returns where the API server of a node listens.
func (c Config) local() object {
	return object{"advertiseAddress": c.Node.Address, "bindPort": APIPort}
}

// timeouts returns kubeadm's timeouts. kubeadm gets twice Config.Wait, since it also waits for pulls of images.
func (c Config) timeouts() object {
	long := (2 * c.Wait).String()
	return object{"kubernetesAPICall": long, "controlPlaneComponentHealthCheck": long, "kubeletHealthCheck": long, "tlsBootstrap": long}
}

// Upgrade returns the file for kubeadm upgrade.
func (c Config) Upgrade() ([]byte, error) {
	timeouts := c.timeouts()
	timeouts["upgradeManifests"] = (5 * c.Wait).String()
	return documents(object{
		"apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "UpgradeConfiguration",
		"apply": object{
			"kubernetesVersion": c.Version, "imagePullSerial": false,
			"allowExperimentalUpgrades": true, "allowRCUpgrades": true, // a release may be of any version
		},
		"node":     object{"imagePullSerial": false},
		"timeouts": timeouts,
	})
}

// WithRegistry returns kubeadm's configuration of a cluster with another registry.
func WithRegistry(config, registry string) (string, error) {
	var c object
	if err := yaml.Unmarshal([]byte(config), &c); err != nil {
		return "", err
	}
	if c["imageRepository"] == registry {
		return config, nil
	}
	c["imageRepository"] = registry
	text, err := yaml.Marshal(c)
	return string(text), err
}

// Discovery returns a kubeconfig without a user, whose cluster has no name: kubeadm takes that one.
func (c Config) Discovery(ca []byte) ([]byte, error) {
	return documents(object{
		"apiVersion": "v1", "kind": "Config",
		"clusters": []object{{"name": "", "cluster": object{"server": "https://" + c.Endpoint, "certificate-authority-data": ca}}},
	})
}

// Kubelet returns the kubelets' configuration with other settings.
func Kubelet(settings map[string]any) ([]byte, error) {
	o := kubelet()
	maps.Copy(o, settings)
	return documents(o)
}

func kubelet() object {
	return object{
		"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
		"cgroupDriver": "cgroupfs", "failCgroupV1": false, "failSwapOn": false, "volumePluginDir": volumePlugins,
		// Without CAP_SYS_RESOURCE, the kubelet cannot raise these above what it was started with.
		"oomScoreAdj": 0, "maxOpenFiles": 20000,
		// The cluster's CA signs the certificates of kubelets' servers, so that metrics-server can verify them.
		"serverTLSBootstrap": true,
		// A node whose disk was full takes Pods again a moment after it has space, and not five minutes.
		"evictionPressureTransitionPeriod": "15s",
		// An image that nothing uses may go as soon as the disk is full, and not only two minutes after it was pulled.
		"imageMinimumGCAge": "5s",
	}
}

// arguments returns the extra arguments of a program as kubeadm reads them.
func arguments(pairs ...string) []object {
	var args []object
	for i := 0; i < len(pairs); i += 2 {
		args = append(args, object{"name": pairs[i], "value": pairs[i+1]})
	}
	return args
}

// documents returns objects as documents of a YAML file. JSON is YAML.
func documents(objects ...object) ([]byte, error) {
	var b bytes.Buffer
	for _, o := range objects {
		text, err := json.MarshalIndent(o, "", "  ")
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "---\n%s\n", text)
	}
	return b.Bytes(), nil
}
