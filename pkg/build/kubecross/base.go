package kubecross

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/docker/docker/api/types/image"

	"slipway.build/pkg/mechanism/debian"
	"slipway.build/pkg/mechanism/tail"
)

// published is the base that is tried first. It is the Dockerfile's default, too.
const published = "debian:bookworm-slim"

// A base is the image that the build starts from.
type base struct {
	name     string
	complete bool // it has all packages, so the build needs no network
}

// base finds the base, or makes it. What the user names is taken as it is: the engine pulls it where it does not have it.
func (b builder) base(ctx context.Context, i Image, f folder, names []string) (base, error) {
	if i.Base != "" {
		return base{name: i.Base}, nil
	}
	have, err := b.has(ctx, published)
	if err != nil {
		return base{}, err
	}
	if have {
		return base{name: published}, nil
	}
	settings, err := f.text("dpkg.cfg")
	if err != nil {
		return base{}, err
	}
	h := sha256.New()
	add(h, "kube-cross-base", b.engine.Platform.String(), settings, strings.Join(names, " "), debian.Cleanse)
	sum := hex.EncodeToString(h.Sum(nil))
	made := base{name: ref(BaseRepository, b.owner, sum), complete: true}
	if have, err := b.adopt(ctx, BaseRepository, baseLabel, sum); have || err != nil {
		return made, err
	}
	pullErr := b.pull(ctx, published)
	if pullErr == nil {
		return base{name: published}, nil
	}
	if ctx.Err() != nil {
		return base{}, context.Cause(ctx)
	}
	b.progress(fmt.Sprintf("%s cannot be pulled (%v): making a base of Debian packages", published, pullErr))
	if err := b.bootstrap(ctx, i, settings, names, made.name, sum); err != nil {
		return base{}, fmt.Errorf("%s cannot be pulled (%w), and none can be made here: %w", published, pullErr, err)
	}
	return made, nil
}

// errStalled is why a pull is given up.
var errStalled = errors.New("the registry does not answer")

// patience is how long a registry may keep silent.
const patience = 30 * time.Second

// pull has the engine pull an image, and gives up where nothing moves any more. Some registries are not reached and never say so.
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
