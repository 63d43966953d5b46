package kubecross

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/docker/docker/api/types/image"

	"slipway.build/pkg/mechanism/debian"
	"slipway.build/pkg/tree/catalog"
)

// bootstrap makes a base that has all packages, and gives it to the engine while it is being packed.
func (b builder) bootstrap(ctx context.Context, i Image, settings string, names []string, ref, sum string) error {
	if here := catalog.Host(); here != b.engine.Platform {
		return fmt.Errorf("the engine runs %s and this machine %s: have the engine pull %s, or name another image by KUBE_CROSS_BASE",
			b.engine.Platform, here, published)
	}
	system := debian.System{
		Mirror:   i.Mirror,
		Packages: names,
		Progress: func(step string) { b.progress("base: " + step) },
	}
	for line := range strings.Lines(settings) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			system.Options = append(system.Options, "--dpkgopt="+line)
		}
	}
	// The Dockerfile has the settings as a file, for bases that were not made here.
	system.Options = append(system.Options, "--customize-hook="+debian.Cleanse+" && rm -f dpkg/dpkg.cfg.d/99mmdebstrap")
	err := system.Pack(ctx, func(tar io.Reader) error { return b.importBase(ctx, tar, ref, sum) })
	if errors.Is(err, debian.ErrSources) || errors.Is(err, debian.ErrProgram) {
		return fmt.Errorf("%w, or set KUBE_CROSS_BASE to an image that the engine has or can pull", err)
	}
	return err
}

func (b builder) importBase(ctx context.Context, tar io.Reader, ref, sum string) error {
	body, err := b.engine.Client.ImageImport(ctx, image.ImportSource{Source: tar, SourceName: "-"}, ref, image.ImportOptions{
		Message:  "Debian packages for " + Repository,
		Changes:  []string{"LABEL " + baseLabel + "=" + sum},
		Platform: b.engine.Platform.String(),
	})
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	return read(body, func(message) {})
}
