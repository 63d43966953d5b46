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
	clientGo = staging + "/k8s.io/client-go"
	plurals  = "--plural-exceptions=Endpoints:Endpoints"
)

// apis lists the packages of k8s.io/api.
func (r *Repository) apis() []string {
	dirs := r.sources.where(func(dir string, f *folder) bool { return f.Types && below(dir, staging+"/k8s.io/api") })
	for i, d := range dirs {
		dirs[i] = importPath(d)
	}
	return dirs
}

// client runs a generator that writes below a folder of client-go, if a package that clients are generated for may have changed. Its
// arguments follow those that all have.
func (r *Repository) client(ctx context.Context, group, tool, folder string, arguments func() ([]string, error)) error {
	changed := r.changed([]string{staging + "/k8s.io/apimachinery/pkg/apis/meta/v1"}) ||
		slices.ContainsFunc(r.apis(), func(pkg string) bool { return r.only[path.Join(staging, pkg)] })
	if !changed {
		return nil
	}
	args, err := arguments()
	if err != nil {
		return err
	}
	if err := r.remove(group, nil); err != nil {
		return err
	}
	return r.Tools.generate(ctx, r.workdir(), tool, slices.Concat([]string{"--output-dir=" + r.path(path.Join(clientGo, folder)),
		"--output-pkg=" + path.Join("k8s.io/client-go", folder)}, args)...)
}

func (r *Repository) applyconfigs(ctx context.Context) error {
	return r.client(ctx, "applyconfigs", "applyconfiguration-gen", "applyconfigurations", func() ([]string, error) {
		schema, err := r.schema(ctx, "k8s.io/kubernetes/pkg/generated/openapi/cmd/models-schema")
		return slices.Concat([]string{"--openapi-schema=" + schema}, r.apis(), []string{"k8s.io/apimachinery/pkg/apis/meta/v1"}), err
	})
}

// schema compiles and runs a program that prints the OpenAPI definitions which were just generated.
func (r *Repository) schema(ctx context.Context, pkg string) (file string, err error) {
	dir, err := os.MkdirTemp(r.tmp, "schema-")
	if err != nil {
		return "", err
	}
	program, err := r.Tools.build(ctx, r.workdir(), dir, pkg)
	if err != nil {
		return "", err
	}
	f, err := os.Create(filepath.Join(dir, "schema.json"))
	if err != nil {
		return "", err
	}
	defer f.Close()
	if err := r.Tools.output(ctx, r.workdir(), f, program); err != nil {
		return "", err
	}
	return f.Name(), f.Close()
}

func (r *Repository) clients(ctx context.Context) error {
	return r.client(ctx, "clients", "client-gen", "", func() ([]string, error) {
		args := []string{"--clientset-name=kubernetes", "--input-base=k8s.io/api", plurals,
			"--apply-configuration-package=k8s.io/client-go/applyconfigurations", "--prefers-protobuf"}
		served, err := r.groupVersions(true)
		for _, dir := range served {
			args = append(args, "--input="+strings.TrimPrefix(dir, staging+"/k8s.io/api/"))
		}
		return args, err
	})
}

func (r *Repository) listers(ctx context.Context) error {
	return r.client(ctx, "listers", "lister-gen", "listers", func() ([]string, error) {
		return append([]string{plurals}, r.apis()...), nil
	})
}

func (r *Repository) informers(ctx context.Context) error {
	return r.client(ctx, "informers", "informer-gen", "informers", func() ([]string, error) {
		return append([]string{"--single-directory", "--versioned-clientset-package=k8s.io/client-go/kubernetes",
			"--listers-package=k8s.io/client-go/listers", plurals}, r.apis()...), nil
	})
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
