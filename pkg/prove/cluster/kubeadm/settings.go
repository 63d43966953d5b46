package kubeadm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/mechanism/suggest"
)

// Settings are what a user sets of the configuration of a cluster. They are merged over the configuration in this package.
type Settings struct {
	FeatureGates  map[string]bool            `json:"featureGates,omitempty"`
	RuntimeConfig map[string]string          `json:"runtimeConfig,omitempty"`
	Documents     map[string]Document        `json:"documents,omitempty"` // by kind
	Gates         map[string]map[string]bool `json:"gates,omitempty"`     // those of FeatureGates that a component has, by component
}

// A Document is a document of a configuration file.
type Document struct {
	From   string `json:"from"`   // its file and line
	Fields object `json:"fields"` // with apiVersion and kind
}

// Kinds of configuration.
const (
	ClusterKind   = "ClusterConfiguration"
	InitKind      = "InitConfiguration"
	KubeletKind   = "KubeletConfiguration"
	ProxyKind     = "KubeProxyConfiguration"
	SchedulerKind = "KubeSchedulerConfiguration"
	AuditKind     = "Policy"
	AdmissionKind = "AdmissionConfiguration"
)

// versions are the versions of the kinds that can be set.
var versions = map[string]string{
	ClusterKind: "kubeadm.k8s.io/v1beta4", InitKind: "kubeadm.k8s.io/v1beta4",
	KubeletKind: "kubelet.config.k8s.io/v1beta1", ProxyKind: "kubeproxy.config.k8s.io/v1alpha1",
	SchedulerKind: "kubescheduler.config.k8s.io/v1", AuditKind: "audit.k8s.io/v1", AdmissionKind: "apiserver.config.k8s.io/v1",
}

// ownFields are the fields without which the cluster would not work, by kind. They cannot be set.
var ownFields = map[string][]string{
	ClusterKind: {"certificatesDir", "clusterName", "controlPlaneEndpoint", "dns.imageRepository", "dns.imageTag", "etcd.external",
		"etcd.local.dataDir", "etcd.local.imageRepository", "etcd.local.imageTag", "imageRepository", "kubernetesVersion", "networking"},
	InitKind: {"bootstrapTokens", "certificateKey", "dryRun", "localAPIEndpoint", "nodeRegistration.criSocket", "nodeRegistration.name",
		"patches", "skipPhases"},
	KubeletKind: {"cgroupDriver", "cgroupRoot", "containerRuntimeEndpoint", "failCgroupV1", "serverTLSBootstrap", "staticPodPath",
		"volumePluginDir"},
	ProxyKind:     {"clientConnection", "clusterCIDR", "conntrack.maxPerCore", "conntrack.min"}, // the last two are the machine's
	SchedulerKind: {"clientConnection.kubeconfig"},
}

// ownArguments are arguments of components that cannot be set, either: files of the cluster, and what a kind of configuration is for.
var ownArguments = []string{"admission-control-config-file", "audit-log-path", "audit-policy-file", "cgroup-root", "config",
	"encryption-provider-config", "flex-volume-plugin-dir", "kubeconfig", "node-ip"}

// parts are the components of a control plane, by the fields of a ClusterConfiguration that are about them.
var parts = map[string]string{"apiServer": apiServer, "controllerManager": "kube-controller-manager", "scheduler": scheduler}

const (
	apiServer = "kube-apiserver"
	scheduler = "kube-scheduler"
	kubelets  = "kubelet"
	proxies   = "kube-proxy"
)

// ReadSettings reads settings: feature gates as A=true, parts of the API as batch/v1=true, and files of YAML documents.
func ReadSettings(gates, runtime, files []string) (Settings, error) {
	s := Settings{FeatureGates: map[string]bool{}, RuntimeConfig: map[string]string{}, Documents: map[string]Document{}}
	for _, text := range gates {
		name, value, _ := strings.Cut(text, "=")
		on, err := strconv.ParseBool(value)
		if err != nil || name == "" {
			return s, refuse("feature gate %q: want NAME=true or NAME=false", text)
		}
		s.FeatureGates[name] = on
	}
	for _, text := range runtime {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return s, refuse("runtime configuration %q: want GROUP/VERSION=true, api/all=true or the like", text)
		}
		s.RuntimeConfig[name] = value
	}
	for _, file := range files {
		if err := s.readFile(file); err != nil {
			return s, err
		}
	}
	return s, nil
}

func refuse(format string, args ...any) error { return badrequest.Mark(fmt.Errorf(format, args...)) }

// readFile reads the documents of a file.
func (s Settings) readFile(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for d := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var node yaml.Node
		if err := d.Decode(&node); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return refuse("%s: %w", file, err)
		}
		from := file + ":" + strconv.Itoa(node.Content[0].Line)
		if node.Content[0].Tag == "!!null" {
			continue // nothing is between two lines of ---
		}
		if node.Content[0].Kind != yaml.MappingNode {
			return refuse("%s: want a mapping with apiVersion and kind", from)
		}
		var fields object
		if err := node.Decode(&fields); err != nil {
			return refuse("%s: %w", from, err)
		}
		if fields, err = plain(fields); err != nil {
			return refuse("%s: %w", from, err)
		}
		if err := s.add(Document{from, fields}); err != nil {
			return refuse("%s: %w", from, err)
		}
	}
}

// add adds a document.
func (s Settings) add(d Document) error {
	kind, _ := d.Fields["kind"].(string)
	version, ok := versions[kind]
	if !ok {
		return suggest.Unknown("kind", kind, slices.Sorted(maps.Keys(versions)))
	}
	if has, _ := d.Fields["apiVersion"].(string); has != version {
		return fmt.Errorf("%s has the apiVersion %q, want %s", kind, has, version)
	}
	if before, twice := s.Documents[kind]; twice {
		return fmt.Errorf("%s: there is one already, in %s", kind, before.From)
	}
	for _, path := range ownFields[kind] {
		if has(d.Fields, strings.Split(path, ".")) {
			return fmt.Errorf("%s: %s cannot be set: it belongs to slipway", kind, path)
		}
	}
	s.Documents[kind] = d
	for _, f := range argumentFields {
		list, err := argumentsAt(s.Documents[f.kind].Fields, f.path)
		if err != nil {
			return fmt.Errorf("%s: %s: %w", f.kind, strings.Join(f.path, "."), err)
		}
		for _, a := range list {
			if slices.Contains(ownArguments, a.Name) {
				return fmt.Errorf("%s: %s: %s cannot be set: it belongs to slipway", f.kind, strings.Join(f.path, "."), a.Name)
			}
		}
	}
	return nil
}

// argumentFields are the fields with arguments of programs.
var argumentFields = []struct {
	program, kind string
	path          []string
}{
	{apiServer, ClusterKind, []string{"apiServer", "extraArgs"}},
	{"kube-controller-manager", ClusterKind, []string{"controllerManager", "extraArgs"}},
	{scheduler, ClusterKind, []string{"scheduler", "extraArgs"}},
	{"etcd", ClusterKind, []string{"etcd", "local", "extraArgs"}},
	{kubelets, InitKind, []string{"nodeRegistration", "kubeletExtraArgs"}},
}

// An argument is an argument of a program as kubeadm reads it.
type argument struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// argumentsAt returns the arguments at a path.
func argumentsAt(fields object, path []string) ([]argument, error) {
	for _, name := range path[:len(path)-1] {
		fields, _ = fields[name].(object)
	}
	text, err := json.Marshal(fields[path[len(path)-1]])
	if err != nil {
		return nil, err
	}
	var list []argument
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return list, d.Decode(&list)
}

// has reports whether there is a field at a path.
func has(fields object, path []string) bool {
	value, ok := fields[path[0]]
	inner, _ := value.(object)
	return ok && (len(path) == 1 || has(inner, path[1:]))
}

// ForControlPlaneAlone returns an error that names what a control plane without nodes does not have.
func (s Settings) ForControlPlaneAlone() error {
	for _, kind := range []string{InitKind, KubeletKind, ProxyKind} {
		if d, ok := s.Documents[kind]; ok {
			return refuse("%s: %s cannot be set: a control plane alone has no nodes", d.From, kind)
		}
	}
	d := s.Documents[ClusterKind]
	for _, l := range leaves(d.Fields, "") {
		part, arguments := strings.CutSuffix(l.field, ".extraArgs")
		if l.field != "apiVersion" && l.field != "kind" && (!arguments || parts[part] == "") {
			return refuse("%s: %s: %s cannot be set: kubeadm does not make a control plane alone", d.From, ClusterKind, l.field)
		}
	}
	return nil
}

// Empty reports whether nothing is set.
func (s Settings) Empty() bool { return len(s.FeatureGates)+len(s.RuntimeConfig)+len(s.Documents) == 0 }

// Same reports whether other settings are the same.
func (s Settings) Same(other Settings) bool { return slices.Equal(s.List(), other.List()) }

// A Setting is a field with a value that was set.
type Setting struct {
	Kind  string `json:"kind"`
	Field string `json:"field"`
	Value string `json:"value"`
}

// List returns everything that is set, in order.
func (s Settings) List() []Setting {
	var list []Setting
	for _, name := range slices.Sorted(maps.Keys(s.FeatureGates)) {
		list = append(list, Setting{"feature gate", name, strconv.FormatBool(s.FeatureGates[name])})
	}
	for _, name := range slices.Sorted(maps.Keys(s.RuntimeConfig)) {
		list = append(list, Setting{"runtime configuration", name, s.RuntimeConfig[name]})
	}
	for _, kind := range slices.Sorted(maps.Keys(s.Documents)) {
		for _, l := range leaves(s.Documents[kind].Fields, "") {
			if l.field != "apiVersion" && l.field != "kind" {
				list = append(list, Setting{kind, l.field, l.value})
			}
		}
	}
	return list
}

// Where returns the file, line and kind of the only document with a name, followed by a colon, or nothing.
func (s Settings) Where(name string) string {
	where := ""
	for kind, d := range s.Documents {
		text, _ := json.Marshal(d.Fields) // it was read from JSON
		if !bytes.Contains(text, []byte(strconv.Quote(name))) {
			continue
		}
		if where != "" {
			return ""
		}
		where = d.From + ": " + kind + ": "
	}
	return where
}

// A leaf is a field whose value has no fields.
type leaf struct{ field, value string }

// leaves returns the leaves of an object, by their paths.
func leaves(o object, path string) []leaf {
	var all []leaf
	for _, name := range slices.Sorted(maps.Keys(o)) {
		if inner, ok := o[name].(object); ok && len(inner) > 0 {
			all = append(all, leaves(inner, path+name+".")...)
			continue
		}
		value, ok := o[name].(string)
		if !ok {
			text, _ := json.Marshal(o[name]) // it was read from JSON
			value = string(text)
		}
		all = append(all, leaf{path + name, value})
	}
	return all
}

// Distribute gives each component the feature gates that it has, and returns an error for one that none has. Known are the names of the
// feature gates of each component.
func (s *Settings) Distribute(known map[string][]string) error {
	s.Gates = map[string]map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(s.FeatureGates)) {
		var all []string
		for component, names := range known {
			all = append(all, names...)
			if slices.Contains(names, name) {
				if s.Gates[component] == nil {
					s.Gates[component] = map[string]bool{}
				}
				s.Gates[component][name] = s.FeatureGates[name]
			}
		}
		if !slices.Contains(all, name) {
			return suggest.Unknown("feature gate", name, all)
		}
	}
	return nil
}
