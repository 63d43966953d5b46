package publish

import (
	"context"
	"fmt"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"golang.org/x/sync/errgroup"
)

// Send sends what the target does not have: images, then what refers to them, then tags. After an error, or if the process is killed, the
// target has some of it, and no tag names what is not there; the same publication again sends the rest.
func (p *Images) Send(ctx context.Context) error {
	defer func() { p.Sent = p.registry.network.sent.Load() }()
	all, err := p.from.ImageIndex()
	if err != nil {
		return err
	}
	if err := p.sendImages(ctx, all); err != nil {
		return err
	}
	if err := p.sendReferrers(ctx); err != nil {
		return err
	}
	for i := range p.Tags {
		if t := &p.Tags[i]; t.State == ToSend {
			if err := p.sendTag(ctx, all, t); err != nil {
				return err
			}
			t.State = Sent
		}
	}
	return nil
}

// sendImages sends images, one after another: layers that one repository has are not sent to the next.
func (p *Images) sendImages(ctx context.Context, all v1.ImageIndex) error {
	layers := map[v1.Hash]name.Reference{} // that the registry has, and where
	for i := range p.Manifests {
		m := &p.Manifests[i]
		if m.Of != "" {
			continue
		}
		if m.State == ToSend {
			index, err := all.ImageIndex(m.hash)
			if err == nil {
				err = p.registry.pusher.Push(ctx, m.at, mountable{index, m.at, layers})
			}
			if err != nil {
				return fmt.Errorf("push %s@%s: %w", m.Name, m.Digest, err)
			}
			m.State = Sent
		}
		for _, hash := range p.below[m.hash] {
			image, err := p.manifest(hash)
			if err != nil {
				return err
			}
			for _, l := range image.Layers {
				layers[l.Digest] = m.at
			}
		}
	}
	return nil
}

// sendReferrers sends what refers to images. Those of one repository are sent one after another: some registries have a list of them under
// a tag, which each of them changes. Another publisher may change it at the same time, so it is read again.
func (p *Images) sendReferrers(ctx context.Context) error {
	by := map[string][]*Manifest{} // by repository
	for i := range p.Manifests {
		if m := &p.Manifests[i]; m.Of != "" && m.State == ToSend {
			by[m.Name] = append(by[m.Name], m)
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(requests)
	for _, missing := range by {
		g.Go(func() error {
			for range 5 {
				for _, m := range missing {
					if err := p.refersTo(ctx, m); err != nil {
						return fmt.Errorf("push %s@%s: %w", m.Name, m.Digest, err)
					}
				}
				var err error
				if missing, err = p.unlisted(ctx, missing); err != nil || len(missing) == 0 {
					return err
				}
			}
			return fmt.Errorf("%s does not list %s among what refers to %s", missing[0].Name, missing[0].Digest, missing[0].Of)
		})
	}
	return g.Wait()
}

// unlisted returns the manifests of a repository that it does not list as referrers. The others are sent.
func (p *Images) unlisted(ctx context.Context, all []*Manifest) (missing []*Manifest, err error) {
	lists := map[string]map[v1.Hash]bool{}
	for _, m := range all {
		if lists[m.Of] == nil {
			if lists[m.Of], err = p.referrers(ctx, m.at.Context().Digest(m.Of)); err != nil {
				return nil, err
			}
		}
		if m.State = Sent; !lists[m.Of][m.hash] {
			m.State = ToSend
			missing = append(missing, m)
		}
	}
	return missing, nil
}

// refersTo sends a referrer, even if its manifest is there already: after a kill, it may not be listed.
func (p *Images) refersTo(ctx context.Context, m *Manifest) error {
	image, err := p.from.Image(m.hash)
	if err != nil {
		return err
	}
	blobs, err := image.Layers()
	if err != nil {
		return err
	}
	config, err := partial.ConfigLayer(image)
	if err != nil {
		return err
	}
	for _, blob := range append(blobs, config) {
		if err := p.registry.pusher.Upload(ctx, m.at.Context(), blob); err != nil {
			return err
		}
	}
	return p.registry.pusher.Put(ctx, m.at, image)
}

// sendTag tags an image that is there, unless somebody else has moved the tag.
func (p *Images) sendTag(ctx context.Context, all v1.ImageIndex, t *Tag) error {
	now, err := p.head(ctx, t.at)
	if err != nil {
		return err
	}
	was := ""
	if now != nil {
		was = now.Digest.String()
	}
	switch was {
	case t.Is:
		return nil
	case t.Was:
	default:
		return fmt.Errorf("tag %s: %w", t.Name, ErrChanged)
	}
	index, err := all.ImageIndex(t.hash)
	if err != nil {
		return err
	}
	if err := p.registry.pusher.Put(ctx, t.at, index); err != nil {
		return fmt.Errorf("tag %s: %w", t.Name, err)
	}
	return nil
}

// index is embedded under a name that is none of its methods.
type index = v1.ImageIndex

var _ v1.ImageIndex = mountable{}

// A mountable index has layers that are not sent if another repository of the registry has them.
type mountable struct {
	index
	at     name.Digest
	layers map[v1.Hash]name.Reference
}

func (m mountable) Image(digest v1.Hash) (v1.Image, error) {
	image, err := m.index.Image(digest)
	return mountableImage{image, m}, err
}

type mountableImage struct {
	v1.Image
	of mountable
}

func (m mountableImage) Layers() ([]v1.Layer, error) {
	layers, err := m.Image.Layers()
	if err != nil {
		return nil, err
	}
	for i, l := range layers {
		digest, err := l.Digest()
		if err != nil {
			return nil, err
		}
		if at := m.of.layers[digest]; at != nil && at.Context() != m.of.at.Context() {
			layers[i] = &remote.MountableLayer{Layer: l, Reference: at}
		}
	}
	return layers, nil
}
