package image_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"time"

	"slipway.build/pkg/make/image"
)

// This makes a docker archive of a program on the base static.
func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "kube-scheduler")
	if err := os.WriteFile(program, []byte("an executable"), 0o755); err != nil {
		log.Fatal(err)
	}

	base, err := image.Base("../../../images", "static", "")
	if err != nil {
		log.Fatal(err)
	}
	contents := image.Component(base, image.Program{
		Binaries: []image.Binary{{Name: "kube-scheduler", File: program}},
		Title:    "Kubernetes scheduler",
		OS:       "linux",
		Arch:     "amd64",
		Version:  "v1.36.0",
		Created:  time.Unix(1_700_000_000, 0),
	})
	img, err := image.Build(contents)
	if err != nil {
		log.Fatal(err)
	}
	tags := image.Tags("registry.k8s.io", "kube-scheduler", "amd64", "v1.36.0")
	if _, _, err := img.Save(context.Background(), io.Discard, tags); err != nil {
		log.Fatal(err)
	}
	fmt.Println(contents.Entrypoint, tags)
	// Output: [/usr/local/bin/kube-scheduler] [registry.k8s.io/kube-scheduler-amd64:v1.36.0 registry.k8s.io/kube-scheduler:v1.36.0]
}
