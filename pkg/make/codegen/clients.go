package codegen

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// clientGo is the module of Kubernetes' own clients.
const (
	clientGo     = staging + "/k8s.io/client-go"
	applyconfigs = "k8s.io/client-go/applyconfigurations"
	plurals      = "--plural-exceptions=Endpoints:Endpoints"
)

// apis lists the packages of k8s.io/api.
func (r *Repository) apis() []string {
	dirs := r.sources.where(func(dir string, f *folder) bool { return f.Types && below(dir, staging+"/k8s.io/api") })
	for i, d := range dirs {
		dirs[i] = importPath(d)
	}
	return dirs
}

// apisChanged reports whether a package that clients are made for may have changed.
func (r *Repository) apisChanged() bool {
	return r.only == nil || r.only[staging+"/k8s.io/apimachinery/pkg/apis/meta/v1"] ||
		slices.ContainsFunc(r.apis(), func(pkg string) bool { return r.only[path.Join(staging, pkg)] })
}

func (r *Repository) applyconfigs(ctx context.Context) error {
	if !r.apisChanged() {
		return nil
	}
	schema, err := r.schema(ctx, "k8s.io/kubernetes/pkg/generated/openapi/cmd/models-schema")
	if err != nil {
		return err
	}
	if err := r.remove("applyconfigs", nil); err != nil {
		return err
	}
	args := slices.Concat(headerFlag(r.header()), []string{"--openapi-schema=" + schema, "--output-pkg=" + applyconfigs,
		"--output-dir=" + r.path(path.Join(staging, applyconfigs))}, r.apis(), []string{"k8s.io/apimachinery/pkg/apis/meta/v1"})
	return r.Tools.run(ctx, r.place(), "applyconfiguration-gen", args...)
}

// schema compiles and runs a program that prints the OpenAPI definitions which were just generated.
func (r *Repository) schema(ctx context.Context, pkg string) (file string, err error) {
	dir, err := os.MkdirTemp(r.tmp, "schema-")
	if err != nil {
		return "", err
	}
	program, err := r.Tools.build(ctx, r.place(), dir, pkg)
	if err != nil {
		return "", err
	}
	f, err := os.Create(filepath.Join(dir, "schema.json"))
	if err != nil {
		return "", err
	}
	defer f.Close()
	if err := r.Tools.output(ctx, r.place(), f, program); err != nil {
		return "", err
	}
	return f.Name(), f.Close()
}

func (r *Repository) clients(ctx context.Context) error {
	if !r.apisChanged() {
		return nil
	}
	served, err := r.groupVersions(true)
	if err != nil {
		return err
	}
	var inputs []string
	for _, dir := range served {
		inputs = append(inputs, "--input="+strings.TrimPrefix(dir, staging+"/k8s.io/api/"))
	}
	if err := r.remove("clients", nil); err != nil {
		return err
	}
	args := slices.Concat(headerFlag(r.header()), []string{"--output-dir=" + r.path(clientGo), "--output-pkg=k8s.io/client-go",
		"--clientset-name=kubernetes", "--input-base=k8s.io/api", plurals, "--apply-configuration-package=" + applyconfigs,
		"--prefers-protobuf"}, inputs)
	return r.Tools.run(ctx, r.place(), "client-gen", args...)
}

func (r *Repository) listers(ctx context.Context) error {
	if !r.apisChanged() {
		return nil
	}
	if err := r.remove("listers", nil); err != nil {
		return err
	}
	args := slices.Concat(headerFlag(r.header()), []string{"--output-dir=" + r.path(clientGo+"/listers"),
		"--output-pkg=k8s.io/client-go/listers", plurals}, r.apis())
	return r.Tools.run(ctx, r.place(), "lister-gen", args...)
}

func (r *Repository) informers(ctx context.Context) error {
	if !r.apisChanged() {
		return nil
	}
	if err := r.remove("informers", nil); err != nil {
		return err
	}
	args := slices.Concat(headerFlag(r.header()), []string{"--output-dir=" + r.path(clientGo+"/informers"),
		"--output-pkg=k8s.io/client-go/informers", "--single-directory", "--versioned-clientset-package=k8s.io/client-go/kubernetes",
		"--listers-package=k8s.io/client-go/listers", plurals}, r.apis())
	return r.Tools.run(ctx, r.place(), "informer-gen", args...)
}

// A list of upstream's hack/lib/init.sh: words, one on a line, between quotes.
var (
	available = regexp.MustCompile(`(?s)\nKUBE_AVAILABLE_GROUP_VERSIONS="\$\{KUBE_AVAILABLE_GROUP_VERSIONS:-(.*?)\}"`)
	nonserver = regexp.MustCompile(`(?s)\nKUBE_NONSERVER_GROUP_VERSIONS="(.*?)"`)
)

// groupVersions returns the folders of the group versions that upstream lists, in its order: the preferred version of a group
// comes first. With served, only those that the API server serves.
func (r *Repository) groupVersions(served bool) ([]string, error) {
	const list = "hack/lib/init.sh"
	data, err := os.ReadFile(r.path(list))
	if err != nil {
		return nil, err
	}
	words := func(re *regexp.Regexp) []string {
		m := re.FindSubmatch(data)
		if m == nil {
			return nil
		}
		return strings.Fields(string(bytes.ReplaceAll(m[1], []byte("\\"), []byte(" "))))
	}
	all, without := words(available), words(nonserver)
	if all == nil || without == nil {
		return nil, fmt.Errorf("%s has no list of group versions: upstream has moved it", list)
	}
	byName := map[string]string{}
	for dir, f := range r.sources {
		if !f.Types || !below(dir, staging+"/k8s.io/api") {
			continue
		}
		group, ok := f.value("groupName")
		if !ok {
			group = path.Base(path.Dir(dir))
		}
		byName[strings.TrimPrefix(group+"/"+path.Base(dir), "/")] = dir
	}
	var dirs []string
	for _, gv := range all {
		if served && slices.Contains(without, gv) {
			continue
		}
		dir := byName[gv]
		if dir == "" {
			return nil, fmt.Errorf("%s lists %s, but no package below %s has its group's name and its version", list, gv, staging+"/k8s.io/api")
		}
		dirs = append(dirs, dir)
	}
	return dirs, nil
}
