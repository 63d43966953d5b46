// Package defaults has kubeadm do by default what kubeadm.yaml, in its folder, says.
package defaults

import (
	_ "embed"
	"encoding/json"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/kubernetes/cmd/kubeadm/app/apis/kubeadm"
	"k8s.io/kubernetes/cmd/kubeadm/app/apis/kubeadm/scheme"
	"k8s.io/kubernetes/cmd/kubeadm/app/componentconfigs"
	"k8s.io/kubernetes/cmd/kubeadm/app/util"
	"k8s.io/kubernetes/cmd/kubeadm/app/util/config/strict"
)

// text is of documents of kubeadm's API, the kubelet's and kube-proxy's.
//
//go:embed kubeadm.yaml
var text []byte

// Use has kubeadm take what the documents say where neither flags nor a configuration do, field by field. A ClusterConfiguration that names
// no version of Kubernetes means a release, this program's. Without documents, everything is as in upstream's kubeadm.
func Use(release string) error {
	documents, err := util.SplitConfigDocuments(text)
	if err != nil {
		return err
	}
	ours, components := map[string][]byte{}, kubeadm.DocumentMap{} // by kind: fields in JSON
	for gvk, data := range documents {
		if err := strict.VerifyUnmarshalStrict([]*runtime.Scheme{scheme.Scheme, componentconfigs.Scheme}, gvk, data); err != nil {
			return err
		}
		var fields map[string]any
		if err := yaml.Unmarshal(data, &fields); err != nil {
			return err
		}
		delete(fields, "apiVersion") // the document counts for all versions
		delete(fields, "kind")
		if gvk.Kind == "ClusterConfiguration" && fields["kubernetesVersion"] == nil && !strings.HasPrefix(release, "v0.0.0") {
			fields["kubernetesVersion"] = release
		}
		if ours[gvk.Kind], err = json.Marshal(fields); err != nil {
			return err
		}
		if gvk.Group != kubeadm.GroupName {
			components[gvk] = data
		}
	}
	if err := fillIn(scheme.Scheme, scheme.AddToScheme, ours); err != nil {
		return err
	}
	if err := fillIn(componentconfigs.Scheme, componentconfigs.AddToScheme, ours); err != nil || len(components) == 0 {
		return err
	}
	return addComponents(components)
}

// fillIn has a scheme fill in fields, by kind, before its own defaults.
func fillIn(s *runtime.Scheme, register func(*runtime.Scheme), ours map[string][]byte) error {
	upstream := runtime.NewScheme()
	register(upstream)
	for gvk := range s.AllKnownTypes() {
		fields, ok := ours[gvk.Kind]
		if !ok || gvk.Version == runtime.APIVersionInternal {
			continue
		}
		object, err := s.New(gvk)
		if err != nil {
			return err
		}
		s.AddTypeDefaultingFunc(object, func(object any) {
			to := reflect.ValueOf(object).Elem()
			from := reflect.New(to.Type())
			if err := json.Unmarshal(fields, from.Interface()); err != nil {
				panic(err) // the type has these fields
			}
			fill(to, from.Elem())
			upstream.Default(object.(runtime.Object))
		})
	}
	return nil
}

// fill copies what is not set.
func fill(to, from reflect.Value) {
	switch {
	case to.IsZero():
		to.Set(from)
	case to.Kind() == reflect.Pointer && !from.IsNil():
		fill(to.Elem(), from.Elem())
	case to.Kind() == reflect.Map:
		for key, value := range from.Seq2() {
			if !to.MapIndex(key).IsValid() {
				to.SetMapIndex(key, value)
			}
		}
	case to.Kind() == reflect.Struct:
		for i := range to.NumField() {
			if to.Type().Field(i).IsExported() {
				fill(to.Field(i), from.Field(i))
			}
		}
	}
}

// addComponents has kubeadm begin with documents of components, not with empty ones.
func addComponents(documents kubeadm.DocumentMap) error {
	upstream := runtime.NewScheme()
	scheme.AddToScheme(upstream)
	for gvk := range scheme.Scheme.AllKnownTypes() {
		if gvk.Kind != "ClusterConfiguration" || gvk.Version == runtime.APIVersionInternal {
			continue
		}
		object, err := scheme.Scheme.New(gvk)
		if err != nil {
			return err
		}
		err = scheme.Scheme.AddConversionFunc(object, &kubeadm.ClusterConfiguration{}, func(from, to any, _ conversion.Scope) error {
			cluster := to.(*kubeadm.ClusterConfiguration)
			if err := upstream.Convert(from, cluster, nil); err != nil {
				return err
			}
			if err := componentconfigs.FetchFromDocumentMap(cluster, documents); err != nil {
				return err
			}
			for _, c := range cluster.ComponentConfigs {
				c.SetUserSupplied(false) // an upgrade may replace it
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
