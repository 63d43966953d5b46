// Command protoc stands in for Google's compiler of protocol buffers, of which the Go module proxy has none. It understands the
// command lines with which Kubernetes' generators call it:
//
//	protoc -I DIR… --NAME_out=DIR [--NAME_opt=OPTIONS] FILE
//
// It compiles one file with protocompile and hands the descriptors to the plugins protoc-gen-NAME, which are on PATH. As in the
// original, a file is known by its path below the first -I that its path literally begins with, and plugins see the version
// of the compiler, which some of them write down.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/linker"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

// version is that of the compiler whose output Kubernetes checks in: release 23.4 of protocol buffers.
var version = &pluginpb.Version{Major: proto.Int32(4), Minor: proto.Int32(23), Patch: proto.Int32(4), Suffix: proto.String("")}

func main() {
	r, err := parse(os.Args[1:])
	if err == nil {
		err = r.run(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "protoc:", err)
		os.Exit(1)
	}
}

// A request is a command line.
type request struct {
	imports []string
	plugins []*plugin
	file    string
}

// A plugin makes files from descriptors.
type plugin struct{ name, options, out string }

func parse(args []string) (*request, error) {
	r := &request{}
	for i := 0; i < len(args); i++ {
		flag, value, _ := strings.Cut(args[i], "=")
		switch {
		case flag == "-I":
			if i++; i == len(args) {
				return nil, errors.New("-I needs a folder")
			}
			r.imports = append(r.imports, args[i])
		case flag == "--proto_path":
			r.imports = append(r.imports, value)
		case strings.HasPrefix(flag, "--") && strings.HasSuffix(flag, "_out"):
			r.plugin(flag, "_out").out = value
		case strings.HasPrefix(flag, "--") && strings.HasSuffix(flag, "_opt"):
			r.plugin(flag, "_opt").options = value
		case strings.HasPrefix(flag, "-"):
			return nil, fmt.Errorf("flag %s is not known", flag)
		case r.file != "":
			return nil, fmt.Errorf("two files, %s and %s: only one is compiled at a time", r.file, args[i])
		default:
			r.file = args[i]
		}
	}
	if r.file == "" || len(r.plugins) == 0 {
		return nil, errors.New("usage: protoc -I DIR… --NAME_out=DIR FILE")
	}
	return r, nil
}

// plugin returns the plugin that a flag speaks of.
func (r *request) plugin(flag, suffix string) *plugin {
	name := strings.TrimSuffix(strings.TrimPrefix(flag, "--"), suffix)
	for _, p := range r.plugins {
		if p.name == name {
			return p
		}
	}
	r.plugins = append(r.plugins, &plugin{name: name})
	return r.plugins[len(r.plugins)-1]
}

// name returns the file's name for imports.
func (r *request) name() (string, error) {
	for _, dir := range r.imports {
		if rest, ok := strings.CutPrefix(r.file, strings.TrimSuffix(dir, "/")+"/"); ok {
			return rest, nil
		}
	}
	if !filepath.IsAbs(r.file) {
		return filepath.ToSlash(filepath.Clean(r.file)), nil
	}
	return "", fmt.Errorf("%s is below none of the folders of -I", r.file)
}

func (r *request) run(ctx context.Context) error {
	name, err := r.name()
	if err != nil {
		return err
	}
	compiler := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: r.imports}),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	files, err := compiler.Compile(ctx, name)
	if err != nil {
		return err
	}
	all := descriptors(files)
	for _, p := range r.plugins {
		if err := p.run(ctx, name, all); err != nil {
			return fmt.Errorf("protoc-gen-%s: %s: %w", p.name, name, err)
		}
	}
	return nil
}

// descriptors returns the files and all that they import, each after its imports.
func descriptors(files linker.Files) []*descriptorpb.FileDescriptorProto {
	var all []*descriptorpb.FileDescriptorProto
	seen := map[string]bool{}
	var add func(f protoreflect.FileDescriptor)
	add = func(f protoreflect.FileDescriptor) {
		if seen[f.Path()] {
			return
		}
		seen[f.Path()] = true
		imports := f.Imports()
		for i := range imports.Len() {
			add(imports.Get(i).FileDescriptor)
		}
		all = append(all, protoutil.ProtoFromFileDescriptor(f))
	}
	for _, f := range files {
		add(f)
	}
	return all
}

func (p *plugin) run(ctx context.Context, name string, files []*descriptorpb.FileDescriptorProto) error {
	request := &pluginpb.CodeGeneratorRequest{FileToGenerate: []string{name}, ProtoFile: files, CompilerVersion: version}
	if p.options != "" {
		request.Parameter = &p.options
	}
	in, err := proto.Marshal(request)
	if err != nil {
		return err
	}
	var out, stderr bytes.Buffer
	c := exec.CommandContext(ctx, "protoc-gen-"+p.name)
	c.Stdin, c.Stdout, c.Stderr = bytes.NewReader(in), &out, &stderr
	if err := c.Run(); err != nil {
		return fmt.Errorf("%w: %s", err, bytes.TrimSpace(stderr.Bytes()))
	}
	var response pluginpb.CodeGeneratorResponse
	if err := proto.Unmarshal(out.Bytes(), &response); err != nil {
		return err
	}
	if response.Error != nil {
		return errors.New(response.GetError())
	}
	for _, f := range response.File {
		file := filepath.Join(p.out, filepath.FromSlash(f.GetName()))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(f.GetContent()), 0o644); err != nil {
			return err
		}
	}
	return nil
}
