package kubecross

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/build"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"

	"slipway.build/pkg/build/toolchain"
	"slipway.build/pkg/mechanism/engine"
	"slipway.build/pkg/mechanism/tail"
	"slipway.build/pkg/tree/catalog"
)

// Ensure returns Ref, after building the image if the engine does not have it. An image that was built for another owner is
// only given this owner's name. progress, if not nil, gets short lines of what is going on.
func (i Image) Ensure(ctx context.Context, e *engine.Engine, owner engine.Owner, progress func(string)) (ref string, built bool, err error) {
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

// A builder makes images in an engine for an owner.
type builder struct {
	engine   *engine.Engine
	owner    engine.Owner
	progress func(string)
}

func (b builder) ensure(ctx context.Context, i Image) (name string, built bool, err error) {
	f, err := readFolder(i.Dir)
	if err != nil {
		return "", false, err
	}
	sum, err := i.hash(f, b.engine.Platform)
	if err != nil {
		return "", false, err
	}
	name = ref(Repository, b.owner, sum)
	have, err := b.adopt(ctx, Repository, imageLabel, sum)
	if have || err != nil {
		return name, false, err
	}
	text, err := f.text("packages.txt")
	if err != nil {
		return "", false, err
	}
	names, err := packages(text, b.engine.Platform.Arch)
	if err != nil {
		return "", false, err
	}
	base, err := b.base(ctx, i, f, names)
	if err != nil {
		return "", false, fmt.Errorf("build image: base: %w", err)
	}
	if err := b.build(ctx, i, f, names, base, name, sum); err != nil {
		if there, asked := b.has(ctx, base.name); i.Base != "" && asked == nil && !there {
			err = fmt.Errorf("the engine neither has nor gets it: set KUBE_CROSS_BASE to an image of Debian that it has or can pull, or to nothing: %w", err)
		}
		return "", false, fmt.Errorf("build image %s from %s: %w", name, base.name, err)
	}
	return name, true, nil
}

// adopt looks whether the engine has the image with that label, and names it for the owner. What somebody made from it
// carries the label too, so its name has to be one that we gave.
func (b builder) adopt(ctx context.Context, repository, label, sum string) (bool, error) {
	found, err := b.engine.Client.ImageList(ctx, image.ListOptions{Filters: filters.NewArgs(filters.Arg("label", label+"="+sum))})
	if err != nil {
		return false, fmt.Errorf("look for %s: %w", repository, err)
	}
	name := ref(repository, b.owner, sum)
	for _, img := range found {
		if slices.Contains(img.RepoTags, name) {
			return true, nil
		}
	}
	for _, img := range found {
		if slices.ContainsFunc(img.RepoTags, func(tag string) bool { return tagged(tag, repository, "") }) {
			err := b.engine.Client.ImageTag(ctx, img.ID, name)
			if cerrdefs.IsNotFound(err) { // another tree has just removed it
				return false, nil
			}
			return err == nil, err
		}
	}
	return false, nil
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
	defer func() { _ = body.Close() }() // ends the packing if the engine does not want it all
	go func() {
		_ = w.CloseWithError(buildContext{folder: f, packages: names, goroot: goroot}.write(w))
	}()
	options := build.ImageBuildOptions{
		Version:     build.BuilderV1, // works without a session, and the older engines have no other
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
	if _, err := b.engine.Client.ImageInspect(ctx, name); err != nil { // an engine that is stopped just stops talking
		return output.Explain(fmt.Errorf("the engine did not finish: %w", err))
	}
	return nil
}

// has looks whether the engine has an image for its own platform.
func (b builder) has(ctx context.Context, name string) (bool, error) {
	img, err := b.engine.Client.ImageInspect(ctx, name)
	if cerrdefs.IsNotFound(err) {
		return false, nil
	}
	return err == nil && (catalog.Platform{OS: img.Os, Arch: img.Architecture} == b.engine.Platform), err
}
