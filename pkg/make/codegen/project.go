package codegen

import (
	"cmp"
	"context"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
)

// A Project has API groups below pkg/apis, clients for them, and perhaps OpenAPI definitions of its own.
type Project struct {
	Dir      string // relative to the repository
	Register bool   // all packages with a group's name get a zz_generated.register.go

	OpenAPI    bool     // it has OpenAPI definitions, in openAPIFolder
	Models     bool     // it has a program that prints them, in modelsFolder
	Extra      []string // packages besides the API groups' that OpenAPI definitions cover
	Exceptions string   // upstream's list of API rules that the types break

	Client                  string // the folder of clients
	Clientset, Versioned    string // names of folders; empty: "clientset", "versioned"
	Watch, ApplyConfigs     bool   // listers and informers; apply configurations
	PrefersProtobuf, Linted bool
}

// Folders of a project.
const (
	apisFolder    = "pkg/apis"
	openAPIFolder = "pkg/generated/openapi"
	modelsFolder  = openAPIFolder + "/cmd/models-schema"
)

// projects are those in upstream's repository.
var projects = []*Project{
	{Dir: staging + "/k8s.io/kube-aggregator", OpenAPI: true, Exceptions: "aggregator_violation_exceptions.list",
		Client: "pkg/client", Clientset: "clientset_generated", Versioned: "clientset", Watch: true, ApplyConfigs: true, PrefersProtobuf: true},
	{Dir: staging + "/k8s.io/sample-apiserver", OpenAPI: true, Exceptions: "sample_apiserver_violation_exceptions.list",
		Client: "pkg/generated", Watch: true, ApplyConfigs: true},
	{Dir: staging + "/k8s.io/sample-controller", Register: true, OpenAPI: true, Exceptions: "sample_controller_violation_exceptions.list",
		Client: "pkg/generated", Watch: true, ApplyConfigs: true, Linted: true},
	{Dir: staging + "/k8s.io/metrics", Client: "pkg/client", PrefersProtobuf: true, Linted: true},
	{Dir: staging + "/k8s.io/apiextensions-apiserver", OpenAPI: true, Extra: []string{"k8s.io/api/autoscaling/v1"},
		Exceptions: "apiextensions_violation_exceptions.list",
		Client:     "pkg/client", Versioned: "clientset", Watch: true, ApplyConfigs: true, PrefersProtobuf: true, Linted: true},
	{Dir: staging + "/k8s.io/apiextensions-apiserver/examples/client-go", Client: "pkg/client", Watch: true, ApplyConfigs: true, Linted: true},
}

// project returns the project that a folder or file is in: of two, one of which is in the other, the inner one.
func (r *Repository) project(name string) *Project {
	var found *Project
	for _, p := range projects {
		if below(name, p.Dir) && (found == nil || len(p.Dir) > len(found.Dir)) {
			found = p
		}
	}
	return found
}

func (p *Project) hasAPI(dir string) bool { return below(dir, path.Join(p.Dir, apisFolder)) }

// version matches the names of folders that hold a version of an API group.
var version = regexp.MustCompile(`^v[0-9]+((alpha|beta)[0-9]+)?$`)

// in returns a project as it is in a repository: not all versions of Kubernetes have OpenAPI definitions, apply configurations and
// programs that print definitions in all of them. Where a folder is not there, upstream makes nothing for it.
func (p Project) in(has func(dir string) bool) Project {
	p.Models = p.OpenAPI && has(path.Join(p.Dir, modelsFolder))
	p.OpenAPI = p.OpenAPI && has(path.Join(p.Dir, openAPIFolder))
	p.ApplyConfigs = p.ApplyConfigs && has(path.Join(p.Dir, p.Client, "applyconfiguration"))
	return p
}

// subprojects makes what the projects in the repository have besides the files that the other groups make.
func (r *Repository) subprojects(ctx context.Context) error {
	has := func(dir string) bool {
		info, err := os.Stat(r.path(dir))
		return err == nil && info.IsDir()
	}
	for _, all := range projects {
		if !has(all.Dir) {
			continue
		}
		p := all.in(has)
		// Kubernetes' own types are in the OpenAPI definitions of all projects.
		openapi := r.sources.marked("k8s:openapi", p.hasAPI)
		var types []string
		for _, e := range slices.Concat(openAPIBase, p.Extra) {
			types = append(types, path.Join(staging, e))
		}
		if !r.changed(slices.Concat(r.sources.marked("genclient", p.hasAPI), openapi, types)) {
			continue
		}
		if err := r.remove("subprojects", func(file string) bool { return r.project(file) == all }); err != nil {
			return err
		}
		if err := r.projectOpenAPI(ctx, p, openapi); err != nil {
			return err
		}
		if err := r.projectClients(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

func (r *Repository) projectOpenAPI(ctx context.Context, p Project, dirs []string) error {
	if !p.OpenAPI || len(dirs) == 0 {
		return nil
	}
	packages := slices.Clone(p.Extra)
	for _, d := range dirs {
		packages = append(packages, importPath(d))
	}
	report, err := r.Tools.projectOpenAPI(ctx, r.workdirOf(p), r.tmp, r.path(path.Join(p.Dir, openAPIFolder)),
		path.Join(importPath(p.Dir), openAPIFolder), packages)
	if err != nil {
		return err
	}
	return r.violations(report, p.Exceptions)
}

// workdirOf is where generators of a project run: it has a header of its own.
func (r *Repository) workdirOf(p Project) workdir {
	at := r.workdir()
	at.header = r.path(p.Dir + "/hack/boilerplate.go.txt")
	return at
}

func (r *Repository) projectClients(ctx context.Context, p Project) error {
	var inputs []string
	for _, dir := range r.sources.marked("genclient", p.hasAPI) {
		if version.MatchString(path.Base(dir)) {
			inputs = append(inputs, importPath(dir))
		}
	}
	schema := ""
	if p.ApplyConfigs && p.Models {
		var err error
		if schema, err = r.schema(ctx, path.Join(importPath(p.Dir), modelsFolder)); err != nil {
			return err
		}
	}
	c := clientset{Project: p, tools: r.Tools, workdir: r.workdirOf(p), schema: schema,
		dir: r.path(path.Join(p.Dir, p.Client)), pkg: path.Join(importPath(p.Dir), p.Client), base: path.Join(importPath(p.Dir), apisFolder)}
	return c.run(ctx, inputs)
}

// A clientset makes clients and what belongs to them for the API groups of a project.
type clientset struct {
	Project  // what its clients are like
	tools    *Tools
	workdir  workdir
	schema   string // the file with the OpenAPI definitions, for apply configurations
	dir, pkg string // where clients go
	base     string // import path that the groups' packages lie below
}

// run makes clients for packages, given by import path, which are BASE/GROUP/VERSION.
func (c clientset) run(ctx context.Context, packages []string) error {
	if len(packages) == 0 {
		return nil
	}
	name, versioned := cmp.Or(c.Clientset, "clientset"), cmp.Or(c.Versioned, "versioned")
	configs := ""
	if c.ApplyConfigs {
		configs = c.pkg + "/applyconfiguration"
		if err := c.generate(ctx, "applyconfiguration-gen", c.dir+"/applyconfiguration", configs,
			slices.Concat([]string{"--openapi-schema=" + c.schema}, packages)); err != nil {
			return err
		}
	}
	args := []string{"--clientset-name=" + versioned, "--apply-configuration-package=" + configs, "--input-base=" + c.base,
		"--plural-exceptions="}
	if c.PrefersProtobuf {
		args = append(args, "--prefers-protobuf")
	}
	for _, p := range packages {
		args = append(args, "--input="+strings.TrimPrefix(p, c.base+"/"))
	}
	if err := c.generate(ctx, "client-gen", c.dir+"/"+name, c.pkg+"/"+name, args); err != nil || !c.Watch {
		return err
	}
	if err := c.generate(ctx, "lister-gen", c.dir+"/listers", c.pkg+"/listers", packages); err != nil {
		return err
	}
	return c.generate(ctx, "informer-gen", c.dir+"/informers", c.pkg+"/informers", slices.Concat([]string{
		"--versioned-clientset-package=" + c.pkg + "/" + name + "/" + versioned, "--listers-package=" + c.pkg + "/listers"}, packages))
}

func (c clientset) generate(ctx context.Context, tool, dir, pkg string, args []string) error {
	var lints []string
	if c.Linted {
		lints = []string{lint}
	}
	known, err := c.tools.known(ctx, tool, lints...)
	if err != nil {
		return err
	}
	return c.tools.generate(ctx, c.workdir, tool, slices.Concat(known, []string{"--output-dir=" + dir, "--output-pkg=" + pkg}, args)...)
}
