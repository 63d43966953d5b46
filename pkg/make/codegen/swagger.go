package codegen

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
)

// The lines between which types_swagger_doc_generated.go holds what is generated.
var (
	swaggerBegin  = []byte("// AUTO-GENERATED FUNCTIONS START HERE. DO NOT EDIT.\n")
	swaggerEnd    = []byte("// AUTO-GENERATED FUNCTIONS END HERE\n")
	packageClause = regexp.MustCompile(`(?m)^package \w+$`)
)

// swaggerTemplate is the package whose file shows what comes before the generated lines.
const swaggerTemplate = staging + "/k8s.io/apimachinery/pkg/apis/meta/v1"

// swagger makes methods that return the comments of types.
func (r *Repository) swagger(ctx context.Context) error {
	dirs, err := r.groupVersions(false)
	if err != nil {
		return err
	}
	dirs = append([]string{swaggerTemplate, staging + "/k8s.io/apimachinery/pkg/apis/meta/v1beta1"}, dirs...)
	if !r.changed(dirs) {
		return nil
	}
	template, err := r.swaggerHead()
	if err != nil {
		return err
	}
	if r.only == nil {
		if err := r.remove("swagger", nil); err != nil {
			return err
		}
	}
	program, err := r.Tools.build(ctx, r.workdir(), r.tmp, "k8s.io/kubernetes/cmd/genswaggertypedocs")
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		if r.only != nil && !r.only[dir] {
			continue
		}
		var out bytes.Buffer
		out.Write(packageClause.ReplaceAll(template, []byte("package "+path.Base(dir))))
		if err := r.Tools.output(ctx, r.workdir(), &out, program, "-s", r.path(dir+"/types.go"), "-f", "-"); err != nil {
			return err
		}
		out.Write(swaggerEnd)
		formatted, err := r.Tools.gofmt(ctx, r.workdir(), out.Bytes())
		if err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
		if err := os.WriteFile(r.path(path.Join(dir, swaggerFile)), formatted, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// swaggerHead returns what such files begin with: a license, the package clause and a comment.
func (r *Repository) swaggerHead() ([]byte, error) {
	name := path.Join(swaggerTemplate, swaggerFile)
	data, err := os.ReadFile(r.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is not there: the first lines of all files of its kind are taken from it", name)
	}
	if err != nil {
		return nil, err
	}
	begin, _, ok := bytes.Cut(data, swaggerBegin)
	if !ok {
		return nil, fmt.Errorf("%s has no line %q", name, bytes.TrimSpace(swaggerBegin))
	}
	return slices.Concat(begin, swaggerBegin), nil
}
