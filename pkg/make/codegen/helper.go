package codegen

import (
	"context"
	"path/filepath"
	"slices"
)

// A helper is a generator that writes one file into each package that a marker names.
type helper struct {
	group  string // upstream's name for it
	tool   string
	marker string   // of the packages that it gets
	output string   // the file's name
	args   []string // besides those that all have
	known  []string // flags that it gets if this version knows them
	all    bool     // it must get all packages, even if one has changed, since it calls what it generates in them
}

// lint makes a generator refuse markers that it does not know. Since 1.37.
const lint = "--lint-rules=known-tags-only,require-explicit-disablement"

var (
	deepcopy = helper{group: "deepcopy", tool: "deepcopy-gen", marker: "k8s:deepcopy-gen=", output: "zz_generated.deepcopy.go",
		// Until 1.35.
		known: []string{lint, "--bounding-dirs=k8s.io/kubernetes,k8s.io/api"}}
	prerelease = helper{group: "prerelease", tool: "prerelease-lifecycle-gen", marker: "k8s:prerelease-lifecycle-gen=true",
		output: "zz_generated.prerelease-lifecycle.go", known: []string{lint}}
	defaults = helper{group: "defaults", tool: "defaulter-gen", marker: "k8s:defaulter-gen=", output: "zz_generated.defaults.go",
		known: []string{lint}, all: true}
	validation = helper{group: "validation", tool: "validation-gen", marker: "k8s:validation-gen=", output: "zz_generated.validations.go",
		known: []string{lint}, all: true}
	conversions = helper{group: "conversions", tool: "conversion-gen", marker: "k8s:conversion-gen=", output: "zz_generated.conversion.go",
		known: []string{lint}, all: true}
	register = helper{group: "register", tool: "register-gen", marker: "k8s:register-gen=", output: "zz_generated.register.go",
		known: []string{lint}}
)

// run gives packages to the generator.
func (h helper) run(ctx context.Context, t *Tools, in workdir, packages []string) error {
	if len(packages) == 0 {
		return nil
	}
	known, err := t.known(ctx, h.tool, h.known...)
	if err != nil {
		return err
	}
	return t.generate(ctx, in, h.tool, slices.Concat([]string{"--output-file=" + h.output}, known, h.args, packages)...)
}

// asGroup returns the group of upstream's repository that the generator is.
func (h helper) asGroup() group {
	return group{h.group, func(r *Repository, ctx context.Context) error { return r.helper(ctx, h) }, named(h.output)}
}

// with returns the helper with more arguments.
func (h helper) with(args ...string) helper {
	h.args = slices.Concat(h.args, args)
	return h
}

// readOnly lists packages whose types and validations are used, but which get no files.
var readOnly = []string{
	"k8s.io/apimachinery/pkg/apis/meta/v1",
	"k8s.io/apimachinery/pkg/api/resource",
	"k8s.io/apimachinery/pkg/runtime",
	"k8s.io/apimachinery/pkg/types",
	"k8s.io/apimachinery/pkg/util/intstr",
	"k8s.io/apimachinery/pkg/version",
	"time",
}

// each returns a flag for each value.
func each(flag string, values []string) []string {
	var args []string
	for _, v := range values {
		args = append(args, flag+"="+v)
	}
	return args
}

// openapi runs openapi-gen for packages. It returns the file with the API rules that types break.
func (t *Tools) openapi(ctx context.Context, in workdir, tmp, dir, pkg string, packages []string) (violations string, err error) {
	violations = filepath.Join(tmp, "api_violations.report")
	return violations, t.generate(ctx, in, "openapi-gen", slices.Concat([]string{"--output-file=" + openapiFile, "--output-dir=" + dir,
		"--output-pkg=" + pkg, "--report-filename=" + violations, "--output-model-name-file=" + modelNameFile}, packages)...)
}

// projectOpenAPI does so for the packages of a project, whose types hold Kubernetes'.
func (t *Tools) projectOpenAPI(ctx context.Context, in workdir, tmp, dir, pkg string, packages []string) (violations string, err error) {
	known, err := t.known(ctx, "openapi-gen", each("--readonly-pkg", readOnly)...)
	if err != nil {
		return "", err
	}
	return t.openapi(ctx, in, tmp, dir, pkg, slices.Concat(known, openAPIBase, packages))
}

// openAPIBase lists the packages whose types all API groups use.
var openAPIBase = []string{"k8s.io/apimachinery/pkg/apis/meta/v1", "k8s.io/apimachinery/pkg/runtime",
	"k8s.io/apimachinery/pkg/version", "k8s.io/apimachinery/pkg/api/resource"}
