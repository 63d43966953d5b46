package bump

import (
	"strings"
	"testing"
)

func TestProjectsShareTheModulesOfTheComponents(t *testing.T) {
	t.Parallel()
	const before = `module example.com/project
go 1.25.0
require (
	example.com/tool v1.0.0
	k8s.io/older v0.36.0 // indirect
	k8s.io/newer v0.39.0 // indirect
	example.com/own v1.0.0 // indirect
)
`
	const after = `module example.com/project

go 1.26.0

require example.com/tool v1.0.0

require (
	example.com/own v1.0.0 // indirect
	k8s.io/newer v0.39.0 // indirect
	k8s.io/older v0.37.0 // indirect
)

godebug default=go1.25
`
	w := wanted{Go: "1.25.0", Own: []string{"example.com/tool"}, Replace: []requirement{}, Versions: map[string]string{
		"example.com/tool": "v1.0.0", "k8s.io/older": "v0.36.0", "k8s.io/newer": "v0.39.0",
		"example.com/own": "v1.0.0",
	}}
	for path, version := range w.Versions {
		w.Add = append(w.Add, requirement{Path: path, Version: version})
	}
	w.share(selection{Go: "1.26.0", Versions: map[string]string{
		"example.com/tool": "v9.0.0", "k8s.io/older": "v0.37.0", "k8s.io/newer": "v0.37.0", "k8s.io/unused": "v0.37.0",
	}})
	got, err := rewrite("go.mod", []byte(before), w)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != after {
		t.Errorf("got:\n%s\nwant:\n%s", got, strings.TrimSpace(after))
	}
}
