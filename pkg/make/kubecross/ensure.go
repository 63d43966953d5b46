package kubecross

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/build"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"

	"slipway.build/pkg/make/toolchain"
	"slipway.build/pkg/mechanism/engine"
	"slipway.build/pkg/mechanism/tail"
	"slipway.build/pkg/tree/catalog"
)

// Ensure builds the image if the engine does not have it, and returns its Ref. An image that was built for another owner only gets
// a tag for this one. Ensure calls progress, unless it is nil, with short lines.
func (i Image) Ensure(ctx context.Context, e *engine.Engine, owner engine.Owner,
	progress func(string)) (ref string, built bool, err error) {
	if progress == nil {
		progress = func(string) {}
	}
	b := builder{engine: e, owner: owner, progress: progress}
	ref, built, err = b.ensure(ctx, i)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("build image: %w", context.Cause(ctx))
	}
	return ref, built, err
}

// Ready checks that the engine has the image or that it could be built. If no base can be built on this machine, it pulls one: only
// that shows whether the registry has it.
func (i Image) Ready(ctx context.Context, e *engine.Engine, owner engine.Owner) error {
	b := builder{engine: e, owner: owner, progress: func(string) {}}
	f, sum, err := i.read(e.Platform)
	if err != nil {
		return err
	}
	if id, _, err := b.labeled(ctx, Repository, imageLabel, sum); id != "" || err != nil {
		return err
	}
	names, err := f.packages(e.Platform.Arch)
	if err != nil {
		return err
	}
	found, _, _, err := b.findBase(ctx, i, f, names)
	if found || err != nil {
		return err
	}
	missing := b.canMakeBase(i)
	if missing == nil {
		return nil
	}
	if err := b.pull(ctx, published); err != nil {
		return fmt.Errorf("build image: %w", noBase(err, missing))
	}
	return nil
}

// A builder makes images in an engine for an owner.
type builder struct {
	engine   *engine.Engine
	owner    engine.Owner
	progress func(string)
}

func (b builder) ensure(ctx context.Context, i Image) (name string, built bool, err error) {
	f, sum, err := i.read(b.engine.Platform)
	if err != nil {
		return "", false, err
	}
	name = ref(Repository, b.owner, sum)
	have, err := b.adopt(ctx, Repository, imageLabel, sum)
	if have || err != nil {
		return name, false, err
	}
	names, err := f.packages(b.engine.Platform.Arch)
	if err != nil {
		return "", false, err
	}
	base, err := b.base(ctx, i, f, names)
	if err != nil {
		return "", false, fmt.Errorf("build image: %w", err)
	}
	if err := b.build(ctx, i, f, names, base, name, sum); err != nil {
		if there, asked := b.has(ctx, base.name); i.Base != "" && asked == nil && !there {
			err = &BaseError{i.Base, fmt.Errorf("the engine neither has it nor can pull it: %w", err)}
		}
		return "", false, fmt.Errorf("build image %s from %s: %w", name, base.name, err)
	}
	return name, true, nil
}

// labeled finds the image with a label, and reports whether it has the owner's tag. Images that users build from it inherit the
// label, so one of its tags must be ours.
func (b builder) labeled(ctx context.Context, repository, label, sum string) (id string, ours bool, err error) {
	found, err := b.engine.Client.ImageList(ctx, image.ListOptions{Filters: filters.NewArgs(filters.Arg("label", label+"="+sum))})
	if err != nil {
		return "", false, fmt.Errorf("look for %s: %w", repository, err)
	}
	for _, img := range found {
		if slices.Contains(img.RepoTags, ref(repository, b.owner, sum)) {
			return img.ID, true, nil
		}
		if slices.ContainsFunc(img.RepoTags, func(tag string) bool { return tagged(tag, repository, "") }) {
			id = img.ID
		}
	}
	return id, false, nil
}

// adopt gives the image with a label the owner's tag, and reports whether the engine has that image.
func (b builder) adopt(ctx context.Context, repository, label, sum string) (bool, error) {
	id, ours, err := b.labeled(ctx, repository, label, sum)
	if id == "" || ours || err != nil {
		return ours, err
	}
	err = b.engine.Client.ImageTag(ctx, id, ref(repository, b.owner, sum))
	if cerrdefs.IsNotFound(err) { // another tree has just removed it
		return false, nil
	}
	return err == nil, err
}

func (b builder) build(ctx context.Context, i Image, f folder, names []string, base base, name, sum string) error {
	dir, err := toolchain.Download(ctx, i.Pin, b.engine.Platform.Dash(), b.progress)
	if err != nil {
		return err
	}
	goroot, err := toolchain.Files(dir, b.engine.Platform.Dash())
	if err != nil {
		return err
	}
	body, w := io.Pipe()
	defer func() { _ = body.Close() }() // ends the packing if the engine stops reading
	go func() {
		_ = w.CloseWithError(buildContext{folder: f, packages: names, goroot: goroot}.write(w))
	}()
	options := build.ImageBuildOptions{
		Version:     build.BuilderV1, // needs no session, and older engines have no other
		Tags:        []string{name},
		Labels:      map[string]string{imageLabel: sum},
		BuildArgs:   map[string]*string{"BASE": &base.name},
		Remove:      true,
		ForceRemove: true,
	}
	if base.complete {
		options.NetworkMode = "none"
	}
	response, err := b.engine.Client.ImageBuild(ctx, body, options)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	output := &tail.Lines{Each: func(line string) {
		if strings.HasPrefix(line, "Step ") {
			b.progress(line)
		}
	}}
	err = read(response.Body, func(m message) { _, _ = output.Write([]byte(m.Stream)) })
	if err != nil {
		return output.Explain(err)
	}
	if _, err := b.engine.Client.ImageInspect(ctx, name); err != nil { // the stream of an engine that is stopped just ends
		return output.Explain(fmt.Errorf("the engine did not finish: %w", err))
	}
	return nil
}

// has reports whether the engine has an image for its own platform.
func (b builder) has(ctx context.Context, name string) (bool, error) {
	img, err := b.engine.Client.ImageInspect(ctx, name)
	if cerrdefs.IsNotFound(err) {
		return false, nil
	}
	return err == nil && (catalog.Platform{OS: img.Os, Arch: img.Architecture} == b.engine.Platform), err
}

// A message is a part of an engine's answer to a build, a pull or an import.
type message struct {
	Stream      string `json:"stream"` // of a build: output, in pieces
	Status      string `json:"status"` // of a pull or an import
	Error       string `json:"error"`
	ErrorDetail struct {
		Message string `json:"message"`
	} `json:"errorDetail"`
}

// read calls each with all of an engine's messages. It returns the error that one of them reports, without earlier output.
func read(r io.Reader, each func(message)) error {
	d := json.NewDecoder(r)
	for {
		var m message
		err := d.Decode(&m)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("the engine's answer: %w", err)
		case m.ErrorDetail.Message != "":
			return errors.New(tail.Redact(m.ErrorDetail.Message))
		case m.Error != "":
			return errors.New(tail.Redact(m.Error))
		}
		each(m)
	}
}
