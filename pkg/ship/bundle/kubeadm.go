package bundle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"slipway.build/pkg/mechanism/child"
	"slipway.build/pkg/mechanism/platform"
	"slipway.build/pkg/mechanism/tail"
	"slipway.build/pkg/mechanism/unpack"
	"slipway.build/pkg/release"
)

// kubeadm is the program, and images the short names of those that every version of it asks for.
const kubeadm = "kubeadm"

var kubeadmImages = []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "etcd", "coredns", "pause"}

// An IncompleteError says that kubeadm asks for images that a bundle would not have.
type IncompleteError struct {
	Version string
	Images  []string
}

func (e *IncompleteError) Error() string {
	return fmt.Sprintf("kubeadm of release %s asks for images that are not among the wanted ones: %s", e.Version,
		strings.Join(e.Images, ", "))
}

// Complete returns an [*IncompleteError] unless a bundle has all images that the release's kubeadm asks for, by their names there. It runs
// the kubeadm of this machine's platform, which asks for the same images as that of any other, if the release in the folder has it.
func (q Request) Complete(ctx context.Context, dir string, r *release.Release) error {
	tarball, member := holder(r)
	if err := q.complete(r); err != nil || member == "" {
		return err
	}
	var names []string
	registry := ""
	for _, i := range q.images(r) {
		names = append(names, i.Names...)
		if i.isCalled(kubeadmImages[0]) {
			registry = path.Dir(i.Names[0])
		}
	}
	asked, err := ask(ctx, filepath.Join(dir, filepath.FromSlash(tarball)), member, r.Version, registry)
	if err != nil {
		return fmt.Errorf("ask the release's kubeadm for its images: %w", err)
	}
	lacks := slices.DeleteFunc(asked, func(name string) bool { return slices.Contains(names, name) })
	if len(lacks) > 0 {
		return &IncompleteError{r.Version, lacks}
	}
	return nil
}

// complete is like Complete, by the short names of images. A release without kubeadm needs none.
func (q Request) complete(r *release.Release) error {
	has := func(p platform.Platform) bool {
		a, ok := r.Artifact(p.String() + "/" + kubeadm)
		return ok && a.Kind == release.Binary
	}
	if !slices.ContainsFunc(r.Platforms, has) {
		return nil
	}
	images := q.images(r)
	lacks := slices.DeleteFunc(slices.Clone(kubeadmImages), func(short string) bool {
		return slices.ContainsFunc(images, func(i Image) bool { return i.isCalled(short) })
	})
	if len(lacks) > 0 {
		return &IncompleteError{r.Version, lacks}
	}
	return nil
}

// isCalled reports whether an image has a short name.
func (i Image) isCalled(short string) bool {
	return slices.ContainsFunc(i.Names, func(name string) bool { return strings.HasPrefix(path.Base(name), short+":") })
}

// holder returns the path and the member of the smallest tarball with the kubeadm for this machine.
func holder(r *release.Release) (tarball, member string) {
	size := int64(0)
	for _, a := range r.Select(release.Tarball, platform.Host()) {
		for _, m := range a.Members {
			if m.Artifact == platform.Host().String()+"/"+kubeadm && (member == "" || a.Size < size) {
				tarball, member, size = a.Path, path.Clean(m.Path), a.Size
			}
		}
	}
	return tarball, member
}

// ask runs the kubeadm in a tarball, and returns the names of the images that it asks a registry for.
func ask(ctx context.Context, tarball, member, version, registry string) ([]string, error) {
	tmp, err := os.MkdirTemp("", "slipway-kubeadm-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	program := filepath.Join(tmp, kubeadm)
	if err := extract(ctx, tarball, member, program); err != nil {
		return nil, err
	}
	c := exec.CommandContext(ctx, program, "config", "images", "list", "--kubernetes-version="+version, "--image-repository="+registry)
	c.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + tmp} // nobody's configuration
	var out bytes.Buffer
	var errs tail.Lines
	c.Stdout, c.Stderr = &out, &errs
	if err := child.Run(c, syscall.SIGKILL, nil); err != nil {
		return nil, errors.Join(ctx.Err(), errs.Explain(err))
	}
	names := strings.Fields(out.String())
	if len(names) == 0 {
		return nil, errors.New("it names none")
	}
	return names, nil
}

// extract writes a member of a tarball, a program, to a file.
func extract(ctx context.Context, tarball, member, to string) error {
	for m, err := range unpack.MembersOf(ctx, tarball) {
		if err != nil {
			return err
		}
		if m.Name == member {
			return child.WithoutStarts(func() error { // since it is run at once
				f, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
				if err != nil {
					return err
				}
				_, err = io.Copy(f, m)
				return errors.Join(err, f.Close())
			})
		}
	}
	return fmt.Errorf("%s has no %s, which %s names", tarball, member, release.File)
}
