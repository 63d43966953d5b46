package image_test

import (
	"context"
	"io"
	"time"

	"slipway.build/pkg/build/image"
)

// This writes a docker archive of a program on the base of the repository in the current folder.
func Example() {
	save := func(ctx context.Context, w io.Writer) error {
		base, err := image.Base("images", "static", "")
		if err != nil {
			return err
		}
		img, err := image.Build(image.Component(base, image.Program{
			Binaries: []image.Binary{{Name: "kube-scheduler", File: "_output/bin/kube-scheduler"}},
			Title:    "Kubernetes scheduler",
			OS:       "linux",
			Arch:     "amd64",
			Version:  "v1.36.0",
			Created:  time.Unix(1_700_000_000, 0),
		}))
		if err != nil {
			return err
		}
		return image.Save(ctx, w, img, image.Tags("registry.k8s.io", "kube-scheduler", "amd64", "v1.36.0"))
	}
	_ = save
}
