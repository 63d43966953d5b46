package bump

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"slipway.build/pkg/make/codegen"
)

// generators are the modules that the code generators are compiled from. A go.mod lists the modules of its tools as indirect ones,
// which rewrite would drop.
var generators = []string{
	"github.com/gogo/protobuf", "golang.org/x/tools", "google.golang.org/protobuf",
	"k8s.io/apimachinery", "k8s.io/code-generator", "k8s.io/gengo/v2", "k8s.io/kube-openapi",
}

// plugins are the modules of protoc's plugins, and what generated files say about their versions. No module of upstream's
// requires them: its hack/tools does, which is not released.
var plugins = map[string]*regexp.Regexp{
	"google.golang.org/protobuf":                    regexp.MustCompile(`(?m)^//\s+protoc-gen-go (v\S+)$`),
	"google.golang.org/grpc/cmd/protoc-gen-go-grpc": regexp.MustCompile(`(?m)^// - protoc-gen-go-grpc (v\S+)$`),
}

// moveGenerators moves the code generators to the versions that upstream runs, if the tree has any.
func (p *preparation) moveGenerators(u *upstream) error {
	if _, err := os.Stat(p.file(codegen.Module + "/go.mod")); os.IsNotExist(err) {
		return nil
	}
	want := wanted{Go: u.want.Go, Own: []string{"k8s.io/code-generator"}, Versions: map[string]string{}}
	for _, path := range generators {
		if version := u.want.Versions[path]; version != "" {
			want.Versions[path], want.Indirect = version, append(want.Indirect, path)
		}
	}
	if err := p.require(codegen.Module, want); err != nil {
		return err
	}
	i := slices.IndexFunc(u.staging, func(m fetched) bool { return m.Path == "k8s.io/kubelet" })
	if i < 0 {
		return fmt.Errorf("version %s of Kubernetes has no k8s.io/kubelet, whose generated files name the versions of protoc's plugins",
			u.Version)
	}
	versions, err := pluginVersions(u.staging[i].Dir)
	if err != nil {
		return err
	}
	return p.require(codegen.Bindings, wanted{Go: u.want.Go, Versions: versions, Indirect: slices.Sorted(maps.Keys(versions))})
}

// pluginVersions reads the versions of protoc's plugins, by module path, from the kubelet's generated files.
func pluginVersions(kubelet string) (map[string]string, error) {
	files, err := filepath.Glob(filepath.Join(kubelet, "pkg", "apis", "*", "*", "api*.pb.go"))
	if err != nil {
		return nil, err
	}
	versions := map[string]string{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for path, header := range plugins {
			if m := header.FindSubmatch(data); m != nil {
				versions[path] = string(m[1])
			}
		}
	}
	for path := range plugins {
		if versions[path] == "" {
			return nil, fmt.Errorf("no generated file below %s names the version of %s", filepath.Join(kubelet, "pkg", "apis"), path)
		}
	}
	return versions, nil
}
