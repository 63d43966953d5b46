package kubeadm

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// arguments returns the arguments of a component that are not in a document, as pairs. Folder is where it finds the files of WriteFiles.
func (s Settings) arguments(component, folder string) []string {
	var pairs []string
	if gates := s.Gates[component]; len(gates) > 0 {
		pairs = append(pairs, featureGates, joined(gates))
	}
	if component == apiServer && len(s.RuntimeConfig) > 0 {
		pairs = append(pairs, runtimeConfig, joined(s.RuntimeConfig))
	}
	for _, f := range settingFiles {
		if _, ok := s.Documents[f.kind]; ok && f.component == component {
			pairs = append(pairs, f.argument, filepath.Join(folder, f.file))
		}
	}
	return pairs
}

const featureGates, runtimeConfig = "feature-gates", "runtime-config"

// joined returns a map as programs read it.
func joined[V any](values map[string]V) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		all = append(all, fmt.Sprintf("%s=%v", name, values[name]))
	}
	return strings.Join(all, ",")
}

// OwnFlags returns the flags of a component that are not in a document.
func (s Settings) OwnFlags(component, folder string) []string {
	var flags []string
	pairs := s.arguments(component, folder)
	for i := 0; i < len(pairs); i += 2 {
		flags = append(flags, "--"+pairs[i]+"="+pairs[i+1])
	}
	return flags
}

// Flags returns the flags of a component: those of OwnFlags, and those in documents.
func (s Settings) Flags(component, folder string) []string {
	flags := s.OwnFlags(component, folder)
	for _, f := range argumentFields {
		if f.program != component {
			continue
		}
		list, _ := argumentsAt(s.Documents[f.kind].Fields, f.path) // add has read them
		for _, a := range list {
			flags = append(flags, "--"+a.Name+"="+a.Value)
		}
	}
	return flags
}

// settingFiles are the files of documents that a component reads itself.
var settingFiles = []struct{ kind, component, argument, file string }{
	{AuditKind, apiServer, "audit-policy-file", auditFile},
	{AdmissionKind, apiServer, "admission-control-config-file", "admission.yaml"},
	{SchedulerKind, scheduler, "config", "scheduler.yaml"},
}

// WriteFiles writes the files that components of a control plane read to a folder. The scheduler takes its kubeconfig from its file.
func (s Settings) WriteFiles(folder, kubeconfig string) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	for _, f := range settingFiles {
		d, ok := s.Documents[f.kind]
		if !ok {
			continue
		}
		fields := d.Fields
		if f.kind == SchedulerKind {
			fields = merge(object{"clientConnection": object{"kubeconfig": kubeconfig}}, fields)
		}
		if err := writeDocument(filepath.Join(folder, f.file), fields); err != nil {
			return err
		}
	}
	return nil
}

// Kubelet returns the kubelets' configuration with the settings.
func (s Settings) Kubelet() ([]byte, error) { return documents(s.over(kubelet(), s.gates(kubelets))) }

// Proxy returns kube-proxy's configuration with the settings.
func (s Settings) Proxy() ([]byte, error) { return documents(s.over(proxy(), s.gates(proxies))) }

func (s Settings) gates(component string) object {
	if len(s.Gates[component]) == 0 {
		return nil
	}
	return object{"featureGates": s.Gates[component]}
}

// cluster returns kubeadm's configuration of a cluster with the settings.
func (s Settings) cluster(base object) object {
	const folder = kubernetesFolder + "/" + apiServerFolder
	own := object{}
	for part, component := range parts {
		if pairs := s.arguments(component, folder); len(pairs) > 0 {
			own[part] = object{"extraArgs": arguments(pairs...)}
		}
	}
	if _, ok := s.Documents[SchedulerKind]; ok {
		own["scheduler"].(object)["extraVolumes"] = []object{
			{"name": "slipway", "hostPath": folder, "mountPath": folder, "readOnly": true, "pathType": "Directory"}}
	}
	return s.over(base, own)
}

// over merges settings over a document of the same kind: first others, then those of a file.
func (s Settings) over(base, others object) object {
	return merge(merge(base, others), s.Documents[base["kind"].(string)].Fields)
}

// merge merges an object over another one.
func merge(base, over object) object {
	a, b := mustPlain(base), mustPlain(over)
	return mergeValues(a, b).(object)
}

// mergeValues merges objects field by field, and lists of objects with names by these. Anything else replaces what there was.
func mergeValues(base, over any) any {
	switch over := over.(type) {
	case object:
		base, ok := base.(object)
		if !ok {
			return over
		}
		for name, value := range over {
			base[name] = mergeValues(base[name], value)
		}
		return base
	case []any:
		base, _ := base.([]any)
		if !named(base) || !named(over) {
			return over
		}
		for _, o := range over {
			base = mergeNamed(base, o.(object))
		}
		return base
	}
	return over
}

// mergeNamed puts an object in the place of that with the same name. Both values of a flag that takes a list of pairs count.
func mergeNamed(list []any, o object) []any {
	for i, other := range list {
		before := other.(object)
		if before["name"] != o["name"] {
			continue
		}
		if o["name"] == featureGates || o["name"] == runtimeConfig {
			o = object{"name": o["name"], "value": fmt.Sprintf("%v,%v", before["value"], o["value"])}
		}
		list[i] = o
		return list
	}
	return append(list, o)
}

// named reports whether all elements of a list are objects with names.
func named(list []any) bool {
	return !slices.ContainsFunc(list, func(e any) bool {
		o, _ := e.(object)
		return o["name"] == nil
	})
}

// plain returns an object as it is read from JSON.
func plain(o object) (object, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	var result object
	return result, json.Unmarshal(text, &result)
}

// mustPlain does so for an object that was read from JSON, or has only what JSON has.
func mustPlain(o object) object {
	result, err := plain(o)
	if err != nil {
		panic(err)
	}
	return result
}
