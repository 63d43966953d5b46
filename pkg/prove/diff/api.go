package diff

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
)

// An api is an OpenAPI document, version 2, as Kubernetes has it: what clients are generated from.
type api struct {
	Paths       map[string]map[string]json.RawMessage // operations by path and method
	Definitions map[string]definition
}

// A definition is a type of objects.
type definition struct {
	Properties map[string]schema
	Required   []string
	Kinds      []struct{ Group, Version, Kind string } `json:"x-kubernetes-group-version-kind"`
}

// A schema is the type of a field.
type schema struct {
	Type, Format string
	Ref          string  `json:"$ref"`
	Items        *schema // of a list
	Values       *schema `json:"additionalProperties"` // of a map
}

func (s schema) String() string {
	switch {
	case s.Items != nil:
		return "list of " + s.Items.String()
	case s.Values != nil:
		return "map of " + s.Values.String()
	}
	return cmp.Or(strings.TrimPrefix(s.Ref, "#/definitions/"), strings.TrimSpace(s.Type+" "+s.Format), "anything")
}

func isAPI(name string) bool { return path.Base(name) == "swagger.json" }

// compareAPIs compares two APIs: paths, kinds, and the fields of definitions.
func compareAPIs(a, b member, f *File) error {
	x, err := readAPI(a)
	if err != nil {
		return err
	}
	y, err := readAPI(b)
	if err != nil {
		return err
	}
	f.addAll("paths", "%d differ", unequalFacts(x.paths(), y.paths()))
	f.addAll("kinds", "%d differ", unequalFacts(x.kinds(), y.kinds()))
	f.addAll("fields", "%d differ", unequalFacts(x.fields(), y.fields()))
	if len(f.Reasons) == 0 {
		f.add("content", "descriptions, parameters or answers differ; paths, kinds and fields are the same")
	}
	return nil
}

func readAPI(m member) (*api, error) {
	data, err := m.read()
	if err != nil {
		return nil, err
	}
	found := &api{}
	return found, json.Unmarshal(data, found)
}

// paths returns the methods of each path.
func (a *api) paths() map[string]string {
	facts := map[string]string{}
	for name, operations := range a.Paths {
		facts[name] = strings.Join(names(operations, nil), " ")
	}
	return facts
}

// kinds returns the definition of each kind.
func (a *api) kinds() map[string]string {
	facts := map[string]string{}
	for name, d := range a.Definitions {
		if len(d.Kinds) != 1 { // types such as DeleteOptions are of all groups
			continue
		}
		k := d.Kinds[0]
		facts[strings.TrimPrefix(k.Group+"/"+k.Version+" "+k.Kind, "/")] = name
	}
	return facts
}

// fields returns the type of each field of each definition, and whether it is required.
func (a *api) fields() map[string]string {
	facts := map[string]string{}
	for name, d := range a.Definitions {
		for property, s := range d.Properties {
			facts[name+"."+property] = s.String()
			if slices.Contains(d.Required, property) {
				facts[name+"."+property] += ", required"
			}
		}
	}
	return facts
}

// unequalFacts names the facts that only one has, or both have differently.
func unequalFacts(a, b map[string]string) []string {
	var differ []string
	for _, name := range names(a, b) {
		v, inA := a[name]
		w, inB := b[name]
		switch {
		case !inA:
			differ = append(differ, name+" only in B")
		case !inB:
			differ = append(differ, name+" only in A")
		case v != w:
			differ = append(differ, fmt.Sprintf("%s: %s and %s", name, v, w))
		}
	}
	return differ
}
