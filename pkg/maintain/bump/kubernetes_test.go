package bump

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

// answers stands in for `go mod download -json`: it has the files of a folder, and refuses modules.
func answers(t *testing.T, dir string, refused ...string) *proxy {
	return &proxy{run: func(_ context.Context, _ string, args ...string) ([]byte, error) {
		var out strings.Builder
		var err error
		for _, name := range args[3:] {
			path, version, _ := strings.Cut(name, "@")
			m := map[string]string{"Path": path, "Version": version, "GoMod": filepath.Join(dir, "go.mod"), "Info": filepath.Join(dir, "info")}
			for _, r := range refused {
				if r == path {
					m["Error"], err = "403 Forbidden", errors.New("exit status 1")
				}
			}
			text, failed := json.Marshal(m)
			if failed != nil {
				t.Fatal(failed)
			}
			out.Write(text)
		}
		return []byte(out.String()), err
	}}
}

func TestModulesThatNothingIsCompiledFromMayBeMissing(t *testing.T) {
	t.Parallel()
	dir := unpack(t, `
-- info --
{"Version": "v1.36.2", "Time": "2026-09-23T17:06:22Z"}
-- go.mod --
module k8s.io/kubernetes

go 1.26.0

require k8s.io/api v0.0.0

replace (
	k8s.io/api => ./staging/src/k8s.io/api
	k8s.io/sample => ./staging/src/k8s.io/sample
)
`)
	for _, test := range []struct {
		name    string
		refused string
		needed  map[string]string
		without string // "" if there is an error
	}{
		{"nothing requires it", "k8s.io/sample", map[string]string{"k8s.io/api": "v0.36.1"}, "k8s.io/sample@v0.36.2"},
		{"the tree requires it", "k8s.io/sample", map[string]string{"k8s.io/api": "v0.36.1", "k8s.io/sample": "v0.36.1"}, ""},
		{"Kubernetes requires it", "k8s.io/api", nil, ""},
	} {
		u, err := answers(t, dir, test.refused).fetchKubernetes(t.Context(), "v1.36.2", test.needed)
		var missing unavailableError
		switch {
		case test.without == "":
			if !errors.As(err, &missing) || len(missing) != 1 || missing[0].Path != test.refused {
				t.Errorf("%s: error %v", test.name, err)
			}
		case err != nil:
			t.Errorf("%s: %v", test.name, err)
		case len(u.leftOut) != 1 || u.leftOut[0].String() != test.without || len(u.staging) != 1:
			t.Errorf("%s: without %v, with %v", test.name, u.leftOut, u.staging)
		}
	}
}
