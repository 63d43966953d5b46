package cluster

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"slipway.build/pkg/mechanism/atomicfile"
)

// ignoredChecks are kubeadm's checks of what does not matter here: known kernels, a service manager, no swap, the size of the
// machine.
const ignoredChecks = "--ignore-preflight-errors=SystemVerification,Service-kubelet,Swap,NumCPU,Mem"

// volumePlugins is a folder of the node. The default one is in /usr, which belongs to the machine.
const volumePlugins = "/var/lib/kubelet/volumeplugins"

// RuntimeEndpoint is where a node's container runtime listens.
const RuntimeEndpoint = "unix:///run/containerd/containerd.sock"

type object = map[string]any

// A setup is kubeadm's configuration of a cluster and a node.
type setup struct {
	cluster    string
	version    string
	registry   string
	token      string
	endpoint   string // of the API server: address and port
	cgroupRoot string
	name       string // of the node
	address    string // of the node
	key        string // encrypts the control plane's keys for nodes that join as another one; if empty, there is one
	secret     []byte // encrypts Secrets
	wait       time.Duration
	patched    bool // the manifests of its static Pods
}

// config returns the file for kubeadm init.
func (c setup) config() ([]byte, error) {
	start := object{
		"apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "InitConfiguration",
		"bootstrapTokens": []object{{"token": c.token, "ttl": "1h0m0s", "usages": []string{"signing", "authentication"},
			"groups": []string{"system:bootstrappers:kubeadm:default-node-token"}}},
		"localAPIEndpoint": c.local(),
		"nodeRegistration": c.registration(), "timeouts": c.timeouts(),
	}
	whole := object{
		"apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "ClusterConfiguration",
		"clusterName": c.cluster, "kubernetesVersion": c.version, "imageRepository": c.registry,
		"networking": object{"podSubnet": podNetwork, "serviceSubnet": serviceNetwork},
		"apiServer":  apiServerSettings(),
		"controllerManager": object{"extraArgs": arguments("flex-volume-plugin-dir", volumePlugins,
			// By default it waits for its own limit of 20 requests per second while it starts, so its controllers sign no certificates of
			// kubelets for seconds, and each kubelet asks less and less often.
			"kube-api-qps", "200", "kube-api-burst", "400")},
	}
	if c.patched {
		start["patches"] = object{"directory": patchesInNode}
	}
	if c.key != "" {
		start["certificateKey"], whole["controlPlaneEndpoint"] = c.key, c.endpoint
	}
	return documents(start, whole,
		nodeSettings(),
		object{
			"apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration",
			"mode": "iptables",
			// The limit of tracked connections applies to the whole machine.
			"conntrack": object{"maxPerCore": 0, "min": 0},
		},
	)
}

// nodeSettings returns the kubelets' configuration.
func nodeSettings() object {
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

// joinConfig returns the file for kubeadm join, of a node with a control plane or without one.
func (c setup) joinConfig(controlPlane bool) ([]byte, error) {
	join := object{
		"apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "JoinConfiguration",
		"discovery":        object{"file": object{"kubeConfigPath": discoveryFile}, "tlsBootstrapToken": c.token},
		"nodeRegistration": c.registration(), "timeouts": c.timeouts(),
	}
	if c.patched {
		join["patches"] = object{"directory": patchesInNode}
	}
	if controlPlane {
		join["controlPlane"] = object{"certificateKey": c.key, "localAPIEndpoint": c.local()}
	}
	return documents(join)
}

// local returns where the API server of a node listens.
func (c setup) local() object { return object{"advertiseAddress": c.address, "bindPort": apiPort} }

// timeouts returns kubeadm's timeouts. What it waits for includes pulls of images, so it waits longer than others.
func (c setup) timeouts() object {
	long := (2 * c.wait).String()
	return object{"kubernetesAPICall": long, "controlPlaneComponentHealthCheck": long, "kubeletHealthCheck": long, "tlsBootstrap": long}
}

func (c setup) registration() object {
	return object{
		"name": c.name, "criSocket": RuntimeEndpoint,
		"imagePullSerial":  false,
		"taints":           []object{}, // Pods run on every node, including the first
		"kubeletExtraArgs": arguments("node-ip", c.address, "cgroup-root", "/"+c.cgroupRoot),
	}
}

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

// newToken returns a token for nodes that join: 6 letters and digits, a dot, and 16 more.
func newToken() string {
	text := strings.ToLower(rand.Text())
	return text[:6] + "." + text[6:22]
}

// newKey returns a key of AES-256 as kubeadm reads it.
func newKey() string {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	return hex.EncodeToString(key)
}

// kubeadm runs a command of a kubeadm in a node, with its output in a log. It waits for one there that an earlier process has left.
func (s *State) kubeadm(ctx context.Context, n node, program string, config []byte, command ...string) error {
	if err := atomicfile.WriteFile(filepath.Join(s.nodeDir(n), "kubeadm.yaml"), config, 0o600); err != nil {
		return err
	}
	command = append([]string{"flock", "/run/slipway/kubeadm.lock", program},
		append(command, "--config=/run/slipway/node/kubeadm.yaml", ignoredChecks)...)
	said, err := s.inNode(ctx, n, command...)
	log := filepath.Join(s.nodeDir(n), "var-log", "kubeadm.log")
	if written := atomicfile.WriteFile(log, []byte(said), 0o644); err == nil {
		return written
	}
	return fmt.Errorf("%w; see %s", err, filepath.Dir(log))
}

// initialize makes the first node the control plane, and copies the administrator's kubeconfig.
func (s *State) initialize(ctx context.Context, n node, c setup) error {
	var err error
	if c.patched, err = s.writePatches(n); err != nil {
		return err
	}
	if err := s.protect(n, c.secret); err != nil {
		return err
	}
	config, err := c.config()
	if err != nil {
		return err
	}
	command := []string{"init"}
	if c.key != "" {
		command = append(command, "--upload-certs")
	}
	if err := s.kubeadm(ctx, n, "kubeadm", config, command...); err != nil {
		return err
	}
	return s.copyKubeconfig(n)
}

// copyKubeconfig copies the administrator's kubeconfig from a node with a control plane.
func (s *State) copyKubeconfig(n node) error {
	text, err := os.ReadFile(filepath.Join(s.nodeDir(n), "kubernetes", "admin.conf"))
	if err != nil {
		return err
	}
	return atomicfile.WriteFile(s.Kubeconfig(), text, 0o600)
}

// discoveryFile says to a node that joins where the API is, and which CA it has. With a token alone, kubeadm waits until a controller has
// signed what it asks for, and asks every five seconds.
const discoveryFile = "/run/slipway/node/discovery.conf"

// join adds a node to the cluster.
func (s *State) join(ctx context.Context, n, first node, c setup) error {
	ca, err := os.ReadFile(filepath.Join(s.nodeDir(first), "kubernetes", "pki", "ca.crt"))
	if err != nil {
		return err
	}
	discovery, err := c.discovery(ca)
	if err != nil {
		return err
	}
	if err := atomicfile.WriteFile(filepath.Join(s.nodeDir(n), path.Base(discoveryFile)), discovery, 0o644); err != nil {
		return err
	}
	if c.patched, err = s.writePatches(n); err != nil {
		return err
	}
	controlPlane := n.number <= s.ControlPlanes
	if controlPlane {
		if err := s.protect(n, c.secret); err != nil {
			return err
		}
	}
	config, err := c.joinConfig(controlPlane)
	if err != nil {
		return err
	}
	return s.kubeadm(ctx, n, "kubeadm", config, "join")
}

// discovery returns a kubeconfig without a user, whose cluster has no name: kubeadm takes that one.
func (c setup) discovery(ca []byte) ([]byte, error) {
	return documents(object{
		"apiVersion": "v1", "kind": "Config",
		"clusters": []object{{"name": "", "cluster": object{"server": "https://" + c.endpoint, "certificate-authority-data": ca}}},
	})
}

// kubectl runs the release's kubectl as administrator, with its cache in the cluster's folder.
func (s *State) kubectl(ctx context.Context, args ...string) (string, error) {
	return s.kubectlWith(ctx, "", args...)
}

// kubectlWith runs kubectl with standard input.
func (s *State) kubectlWith(ctx context.Context, stdin string, args ...string) (string, error) {
	kubectl, err := s.Kubectl()
	if err != nil {
		return "", err
	}
	return output(ctx, stdin, append([]string{kubectl, "--kubeconfig=" + s.Kubeconfig(), "--cache-dir=" + s.path("kubectl")}, args...)...)
}

// KubectlEnvironment returns an environment in which kubectl is the cluster's administrator, and keeps its cache in the cluster's folder.
// It asks no proxy for the way to the cluster.
func (s *State) KubectlEnvironment(environment []string) []string {
	direct := []string{"127.0.0.1"}
	if s.Subnet != "" {
		direct = append(direct, s.Subnet)
	}
	for _, e := range environment {
		if name, value, _ := strings.Cut(e, "="); strings.EqualFold(name, "NO_PROXY") && value != "" {
			direct = append(direct, value)
		}
	}
	none := strings.Join(direct, ",")
	return append(slices.Clone(environment), "KUBECONFIG="+s.Kubeconfig(), "KUBECACHEDIR="+s.path("kubectl"),
		"NO_PROXY="+none, "no_proxy="+none)
}

// approveKubelets approves the certificates of the kubelets' servers, as an administrator does who knows the nodes.
func (s *State) approveKubelets(ctx context.Context, nodes []node) error {
	approved := map[string]bool{}
	return s.eventually(ctx, func(ctx context.Context) (bool, error) {
		out, err := s.kubectl(ctx, "get", "csr", "-o",
			`jsonpath={range .items[?(@.spec.signerName=="kubernetes.io/kubelet-serving")]}{.metadata.name} {.spec.username}{"\n"}{end}`)
		if err != nil {
			return false, err
		}
		for line := range strings.Lines(out) {
			request, user, _ := strings.Cut(strings.TrimSpace(line), " ")
			for _, n := range nodes {
				if user != "system:node:"+n.name || approved[n.name] {
					continue
				}
				if _, err := s.kubectl(ctx, "certificate", "approve", request); err != nil {
					return false, err
				}
				approved[n.name] = true
			}
		}
		return len(approved) == len(nodes), nil
	})
}
