package verify

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A manifest is an object of the API as data.
type manifest = map[string]any

// An edit changes a part of a Pod's manifest.
type edit func(p *podParts)

type podParts struct{ metadata, labels, spec, container manifest }

// pod returns the manifest of a Pod that runs a command of the probe.
func pod(name, command string, edits ...edit) string {
	p := podParts{
		labels:    manifest{"app": name},
		container: manifest{"name": "main", "image": "$image", "imagePullPolicy": "IfNotPresent", "args": strings.Fields(command)},
	}
	p.metadata = manifest{"name": name, "labels": p.labels}
	p.spec = manifest{"containers": []manifest{p.container}}
	for _, e := range edits {
		e(&p)
	}
	return document(manifest{"apiVersion": "v1", "kind": "Pod", "metadata": p.metadata, "spec": p.spec})
}

// metadata, label, spec and container set fields, which are the fields of a YAML mapping.
func metadata(fields string) edit { return func(p *podParts) { maps.Copy(p.metadata, parse(fields)) } }
func label(fields string) edit    { return func(p *podParts) { maps.Copy(p.labels, parse(fields)) } }
func spec(fields string) edit     { return func(p *podParts) { maps.Copy(p.spec, parse(fields)) } }
func container(fields string) edit {
	return func(p *podParts) { maps.Copy(p.container, parse(fields)) }
}

// parse reads a YAML mapping that a check has written.
func parse(text string) manifest {
	var m manifest
	if err := yaml.Unmarshal([]byte(text), &m); err != nil {
		panic(fmt.Sprintf("%v in %q", err, text))
	}
	return m
}

// document returns one of several YAML documents. JSON is YAML.
func document(m manifest) string {
	text, err := json.Marshal(m)
	if err != nil {
		panic(err) // maps, lists and strings can be marshaled
	}
	return "---\n" + string(text) + "\n"
}

// requests sets a resource's request and limit to the same amount.
func requests(resource, amount string) edit {
	return container("resources: {requests: {" + resource + ": " + amount + "}, limits: {" + resource + ": " + amount + "}}")
}
