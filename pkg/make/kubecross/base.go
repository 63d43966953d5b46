package kubecross

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/docker/docker/api/types/image"

	"slipway.build/pkg/mechanism/debian"
	"slipway.build/pkg/mechanism/tail"
	"slipway.build/pkg/tree/catalog"
)

// published is the base that is tried first. It is also the Dockerfile's default.
const published = "debian:bookworm-slim"

// A base is the image that the build starts from.
type base struct {
	name     string
	complete bool // has all packages, so the build needs no network
}

// A BaseError reports that there is no image to start the build from.
type BaseError struct {
	Name string // of the image that is needed
	Err  error
}

func (e *BaseError) Error() string { return fmt.Sprintf("base %s: %v", e.Name, e.Err) }
func (e *BaseError) Unwrap() error { return e.Err }

// findBase returns the base if there is one already, or if the user named one, which the engine pulls by itself. Otherwise it
// returns the base that would be built here, and its hash.
func (b builder) findBase(ctx context.Context, i Image, f folder, names []string) (found bool, at base, sum string, err error) {
	if i.Base != "" {
		return true, base{name: i.Base}, "", nil
	}
	have, err := b.has(ctx, published)
	if have || err != nil {
		return have, base{name: published}, "", err
	}
	settings, err := f.text("dpkg.cfg")
	if err != nil {
		return false, base{}, "", err
	}
	h := sha256.New()
	add(h, "kube-cross-base", b.engine.Platform.String(), settings, strings.Join(names, " "), debian.Cleanse)
	sum = hex.EncodeToString(h.Sum(nil))
	at = base{name: ref(BaseRepository, b.owner, sum), complete: true}
	id, _, err := b.labeled(ctx, BaseRepository, baseLabel, sum)
	return id != "", at, sum, err
}

// base finds, pulls or builds the base.
func (b builder) base(ctx context.Context, i Image, f folder, names []string) (base, error) {
	found, at, sum, err := b.findBase(ctx, i, f, names)
	if err != nil {
		return base{}, err
	}
	if found {
		if !at.complete {
			return at, nil
		}
		if have, err := b.adopt(ctx, BaseRepository, baseLabel, sum); have || err != nil {
			return at, err
		}
	}
	pullErr := b.pull(ctx, published)
	if pullErr == nil {
		return base{name: published}, nil
	}
	if ctx.Err() != nil {
		return base{}, context.Cause(ctx)
	}
	b.progress(fmt.Sprintf("%s cannot be pulled (%v): making a base of Debian packages", published, pullErr))
	if err := b.bootstrap(ctx, i, f, names, at.name, sum); err != nil {
		return base{}, noBase(pullErr, err)
	}
	return at, nil
}

func noBase(pulling, making error) error {
	return &BaseError{published, fmt.Errorf("cannot be pulled (%w), and no base can be made here: %w", pulling, making)}
}

// canMakeBase returns an error if bootstrap would fail for want of something on this machine.
func (b builder) canMakeBase(i Image) error {
	if here := catalog.Host(); here != b.engine.Platform {
		return fmt.Errorf("the engine runs %s and this machine %s", b.engine.Platform, here)
	}
	return debian.System{Mirror: i.Mirror}.Ready()
}

// errStalled is the reason to give up a pull.
var errStalled = errors.New("the registry does not answer")

// patience is how long a registry may be silent.
const patience = 30 * time.Second

// pull has the engine pull an image, and gives up when there is no progress: an engine never reports that a registry does not answer.
func (b builder) pull(ctx context.Context, name string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(patience, func() { cancel(errStalled) })
	defer silence.Stop()
	b.progress("pulling " + name)
	err := func() error {
		body, err := b.engine.Client.ImagePull(ctx, name, image.PullOptions{Platform: b.engine.Platform.String()})
		if err != nil {
			return errors.New(tail.Redact(err.Error()))
		}
		defer func() { _ = body.Close() }()
		return read(body, func(m message) {
			if !strings.HasPrefix(m.Status, "Retrying") {
				silence.Reset(patience)
			}
		})
	}()
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// bootstrap makes a base with all packages, and streams it to the engine while it is packed.
func (b builder) bootstrap(ctx context.Context, i Image, f folder, names []string, ref, sum string) error {
	if err := b.canMakeBase(i); err != nil {
		return err
	}
	settings, err := f.text("dpkg.cfg")
	if err != nil {
		return err
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
	// The Dockerfile copies the settings as a file, for bases that were not built here.
	system.Options = append(system.Options, "--customize-hook="+debian.Cleanse+" && rm -f dpkg/dpkg.cfg.d/99mmdebstrap")
	return system.Pack(ctx, func(tar io.Reader) error { return b.importBase(ctx, tar, ref, sum) })
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
