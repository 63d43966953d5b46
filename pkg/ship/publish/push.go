package publish

import (
	"context"
	"fmt"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/sync/errgroup"
)

// Send sends what the target does not have: images, then what refers to them, then tags. After an error, or if the process is killed, the
// target has some of it, and no tag names what is not there; the same publication again sends the rest.
func (p *Images) Send(ctx context.Context) error {
	defer func() { p.Sent = p.registry.network.sent.Load() }()
	if err := p.sendImages(ctx); err != nil {
		return err
	}
	if err := p.sendReferrers(ctx); err != nil {
		return err
	}
	for i := range p.Tags {
		if t := &p.Tags[i]; t.State == ToSend {
			if err := p.sendTag(ctx, t); err != nil {
				return err
			}
			t.State = Sent
		}
	}
	return nil
}

// sendImages sends images, one after another: layers that one repository has are not sent to the next.
func (p *Images) sendImages(ctx context.Context) error {
	layers := map[v1.Hash]name.Reference{} // that the registry has, and where
	for i := range p.Manifests {
		m := &p.Manifests[i]
		if m.Of != "" {
			continue
		}
		if m.State == ToSend {
			top, err := p.from.top(m.image.Artifact)
			if err == nil {
				err = p.registry.pusher.Push(ctx, m.at, mounting{m.at, layers}.wrap(top))
			}
			if err != nil {
				return fmt.Errorf("push %s@%s: %w", m.Name, m.Digest, err)
			}
			m.State = Sent
		}
		for _, a := range m.image.Parts() {
			manifest, err := p.from.manifest(hashOf(a))
			if err != nil {
				return err
			}
			for _, l := range manifest.Layers { // an index has none
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
	image, err := p.from.image(m.hash, types.OCIManifestSchema1)
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
func (p *Images) sendTag(ctx context.Context, t *Tag) error {
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
	top, err := p.from.top(t.image.Artifact)
	if err != nil {
		return err
	}
	if err := p.registry.pusher.Put(ctx, t.at, top); err != nil {
		// Somebody else may have set the same tag meanwhile, in a registry that lets nobody set a tag again.
		if now, _ := p.head(ctx, t.at); now == nil || now.Digest.String() != t.Is {
			return fmt.Errorf("tag %s: %w", t.Name, err)
		}
	}
	return nil
}

// A mounting has layers that are not sent if another repository of the registry has them.
type mounting struct {
	at     name.Digest
	layers map[v1.Hash]name.Reference
}

// wrap returns an image or index whose layers are mounted.
func (m mounting) wrap(top pushable) remote.Taggable {
	switch top := top.(type) {
	case v1.Image:
		return mountedImage{top, m}
	case v1.ImageIndex:
		return mountedIndex{top, m}
	}
	return top
}

// index is embedded under a name that is none of its methods.
type index = v1.ImageIndex

type mountedIndex struct {
	index
	by mounting
}

func (m mountedIndex) Image(digest v1.Hash) (v1.Image, error) {
	image, err := m.index.Image(digest)
	return mountedImage{image, m.by}, err
}

type mountedImage struct {
	v1.Image
	by mounting
}

func (m mountedImage) Layers() ([]v1.Layer, error) {
	layers, err := m.Image.Layers()
	if err != nil {
		return nil, err
	}
	for i, l := range layers {
		digest, err := l.Digest()
		if err != nil {
			return nil, err
		}
		if at := m.by.layers[digest]; at != nil && at.Context() != m.by.at.Context() {
			layers[i] = &remote.MountableLayer{Layer: l, Reference: at}
		}
	}
	return layers, nil
}
