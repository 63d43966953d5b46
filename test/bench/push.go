package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"slipway.build/pkg/make/project"
	"slipway.build/test/registry"
)

// pushed measures slipway publish of a signed release's images to an empty registry, with what refers to them, and skopeo copy --all of the
// same images, of which skopeo does not copy what refers to them.
func pushed(ctx context.Context, b *bench, row *Row) error {
	for _, program := range []string{"docker-registry", "skopeo"} {
		if _, err := exec.LookPath(program); err != nil {
			return &missing{err}
		}
	}
	s, err := b.warmed(ctx)
	if err != nil {
		return err
	}
	dir := filepath.Join(b.dir, row.Name)
	if err := s.signedCopy(ctx, dir); err != nil {
		return err
	}
	names, err := imageNames(filepath.Join(dir, "oci", "index.json"))
	if err != nil {
		return err
	}
	registries := [2]*registry.Registry{}
	stop := func() error {
		var errs []error
		for i, r := range registries {
			errs = append(errs, r.Stop())
			registries[i] = nil
		}
		return errors.Join(errs...)
	}
	defer func() { _ = stop() }()
	c := contest{servers: true}
	c.before = func() (err error) {
		for i := range registries {
			if registries[i], err = registry.Start(ctx, filepath.Join(dir, fmt.Sprint("registry-", i))); err != nil {
				return err
			}
		}
		return nil
	}
	c.ours = func() (Sample, error) {
		cmd := exec.CommandContext(ctx, filepath.Join(s.ours, project.Output, "bin", "slipway"), "publish", "release-tars",
			"--layout=oci", "--key=release.pub", "--registry="+registries[0].At+"/k8s")
		cmd.Dir, cmd.Env = dir, s.env
		return b.command(ctx, "slipway publish", cmd)
	}
	c.theirs = func() (Sample, error) {
		cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", `to=$1; shift; for image; do
			skopeo copy --quiet --all --dest-tls-verify=false "oci:oci:$image" "docker://$to/k8s/${image##*/}" || exit; done`, "sh",
			registries[1].At}, names...)...)
		cmd.Dir, cmd.Env = dir, s.env
		return b.command(ctx, "skopeo copy --all", cmd)
	}
	c.after = stop
	return c.warmly(b.n, row)
}

// signedCopy makes a folder with a signed copy of the release.
func (s *sides) signedCopy(ctx context.Context, dir string) error {
	if err := execute(ctx, s.make(ctx, "slipway"), nil); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	sign := exec.CommandContext(ctx, "sh", "-ec", `
		cp -al "$tree/`+project.Tars+`" release-tars
		cp -al "$tree/`+project.Layout+`" oci
		"$tree/`+project.Output+`/bin/slipway" keys new "$PWD/release"
		"$tree/`+project.Output+`/bin/slipway" sign release-tars --layout oci --key release.key`)
	sign.Dir, sign.Env = dir, append(s.env[:len(s.env):len(s.env)], "COSIGN_PASSWORD=", "tree="+s.ours)
	return execute(ctx, sign, nil)
}

// imageNames returns the names of images in an OCI image layout.
func imageNames(file string) ([]string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var index v1.IndexManifest
	if err := json.Unmarshal(data, &index); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var names []string
	for _, m := range index.Manifests {
		if name := m.Annotations["org.opencontainers.image.ref.name"]; name != "" {
			names = append(names, name)
		}
	}
	return names, nil
}
