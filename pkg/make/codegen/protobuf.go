package codegen

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// protobuf makes generated.proto from Go types, and generated.pb.go from that. It also writes the numbers of new fields into
// the types' tags.
func (r *Repository) protobuf(ctx context.Context) error {
	dirs := r.sources.marked("k8s:protobuf-gen=package", func(dir string) bool {
		return below(dir, "cmd") || below(dir, "pkg") || below(dir, "staging")
	})
	if !r.changed(dirs) {
		return nil
	}
	var packages []string
	for _, d := range dirs {
		pkg := importPath(d)
		if r.only != nil && !r.only[d] {
			pkg = "-" + pkg // it is read, and not written
		}
		packages = append(packages, pkg)
	}
	if r.only == nil {
		if err := r.remove("protobuf", nil); err != nil {
			return err
		}
	}
	args := slices.Concat([]string{"--output-dir=" + r.path(staging), "--packages=" + strings.Join(packages, ",")},
		each("--proto-import", []string{r.path(staging), filepath.Join(r.Tools.Dir, "include"), r.path("third_party/protobuf")}))
	return r.Tools.generate(ctx, r.workdir(), "go-to-protobuf", args...)
}

// protoFile is the name of files with messages that people write.
const protoFile = "api.proto"

// protobindings makes Go code from the api.proto files that people write: gRPC services of the kubelet and of the API server.
func (r *Repository) protobindings(ctx context.Context) error {
	dirs := r.sources.where(func(dir string, _ *folder) bool {
		_, err := os.Stat(r.path(path.Join(dir, protoFile)))
		return err == nil && (r.only == nil || r.only[dir])
	})
	if r.only == nil {
		if err := r.remove("protobindings", nil); err != nil {
			return err
		}
	}
	license, err := os.ReadFile(r.workdir().header)
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		if err := r.bindings(ctx, dir, license); err != nil {
			return err
		}
	}
	return nil
}

// bindings generates the Go code of the api.proto in one folder, in workdir of the earlier one.
func (r *Repository) bindings(ctx context.Context, dir string, license []byte) error {
	out, err := os.MkdirTemp(r.tmp, "bindings-")
	if err != nil {
		return err
	}
	err = r.Tools.run(ctx, r.workdir(), "protoc", "--proto_path="+r.Dir, "--proto_path="+r.path(staging),
		"--go_out="+out, "--go_opt=paths=source_relative", "--go-grpc_out="+out, "--go-grpc_opt=paths=source_relative", path.Join(dir, protoFile))
	if err != nil {
		return err
	}
	if err := r.remove("protobindings", func(file string) bool { return path.Dir(file) == dir }); err != nil {
		return err
	}
	generated, err := filepath.Glob(filepath.Join(out, filepath.FromSlash(dir), "*.go"))
	if err != nil {
		return err
	}
	for _, f := range generated {
		data, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		formatted, err := r.Tools.gofmt(ctx, r.workdir(), slices.Concat(license, data))
		if err != nil {
			return fmt.Errorf("%s/%s: %w", dir, filepath.Base(f), err)
		}
		if err := os.WriteFile(r.path(path.Join(dir, filepath.Base(f))), formatted, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// gofmt formats and simplifies Go code.
func (t *Tools) gofmt(ctx context.Context, in workdir, code []byte) ([]byte, error) {
	var out bytes.Buffer
	c := t.command(ctx, in, filepath.Join(t.Go.Root, "bin", "gofmt"), "-s")
	c.Stdin, c.Stdout = bytes.NewReader(code), &out
	if err := runChild(c); err != nil {
		return nil, fmt.Errorf("gofmt: %w", err)
	}
	return out.Bytes(), nil
}
