// Package defaults has kubeadm do by default what kubeadm.yaml, in its folder, says, and after it the other YAML files there. Those in
// profiles count only where they are copied to.
package defaults

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
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

// files have documents of kubeadm's API, the kubelet's and kube-proxy's.
//
//go:embed *.yaml
var files embed.FS

const (
	first       = "kubeadm.yaml"
	clusterKind = "ClusterConfiguration"
)

// Use has kubeadm take what the documents say where neither flags nor a configuration do, field by field. A ClusterConfiguration that names
// no version of Kubernetes means a release, this program's. Without documents, everything is as in upstream's kubeadm.
func Use(release string) error { return use(files, release) }

func use(files fs.FS, release string) error {
	names, err := fs.Glob(files, "*.yaml")
	if err != nil {
		return err
	}
	if at := slices.Index(names, first); at > 0 {
		names = slices.Insert(slices.Delete(names, at, at+1), 0, first)
	}
	ours, components := map[string][][]byte{}, kubeadm.DocumentMap{} // by kind: fields in JSON, of which the first count first
	for _, name := range names {
		if err := read(files, name, ours, components); err != nil {
			return fmt.Errorf("defaults/%s, of which this kubeadm is made: %w", name, err)
		}
	}
	if of := ours[clusterKind]; len(of) > 0 && !strings.HasPrefix(release, "v0.0.0") {
		version, err := json.Marshal(map[string]string{"kubernetesVersion": release})
		if err != nil {
			return err
		}
		ours[clusterKind] = append(of, version)
	}
	if err := fillIn(scheme.Scheme, scheme.AddToScheme, ours); err != nil {
		return err
	}
	if err := fillIn(componentconfigs.Scheme, componentconfigs.AddToScheme, ours); err != nil || len(components) == 0 {
		return err
	}
	return addComponents(components)
}

// read adds the documents in a file.
func read(files fs.FS, name string, ours map[string][][]byte, components kubeadm.DocumentMap) error {
	text, err := fs.ReadFile(files, name)
	if err != nil {
		return err
	}
	documents, err := util.SplitConfigDocuments(text)
	if err != nil {
		return err
	}
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
		counts, err := json.Marshal(fields)
		if err != nil {
			return err
		}
		ours[gvk.Kind] = append(ours[gvk.Kind], counts)
		if gvk.Group != kubeadm.GroupName && components[gvk] == nil {
			components[gvk] = data // and the rest is filled in
		}
	}
	return nil
}

// fillIn has a scheme fill in fields, by kind, before its own defaults.
func fillIn(s *runtime.Scheme, register func(*runtime.Scheme), ours map[string][][]byte) error {
	upstream := runtime.NewScheme()
	register(upstream)
	for gvk := range s.AllKnownTypes() {
		all, ok := ours[gvk.Kind]
		if !ok || gvk.Version == runtime.APIVersionInternal {
			continue
		}
		object, err := s.New(gvk)
		if err != nil {
			return err
		}
		s.AddTypeDefaultingFunc(object, func(object any) {
			to := reflect.ValueOf(object).Elem()
			for _, fields := range all {
				from := reflect.New(to.Type())
				if err := json.Unmarshal(fields, from.Interface()); err != nil {
					panic(err) // the type has these fields
				}
				fill(to, from.Elem())
			}
			upstream.Default(object.(runtime.Object))
		})
	}
	return nil
}

// fill copies what is not set. Of lists of arguments, that is every argument by its name; others are taken whole.
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
	case to.Kind() == reflect.Slice && to.Type().Elem().Name() == "Arg":
		set := map[string]bool{}
		for i := range to.Len() {
			set[to.Index(i).FieldByName("Name").String()] = true
		}
		for i := range from.Len() {
			if argument := from.Index(i); !set[argument.FieldByName("Name").String()] {
				to.Set(reflect.Append(to, argument))
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
		if gvk.Kind != clusterKind || gvk.Version == runtime.APIVersionInternal {
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
