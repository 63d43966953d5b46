package publish

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"golang.org/x/sync/errgroup"

	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/mechanism/suggest"
	"slipway.build/pkg/release"
	"slipway.build/pkg/ship/bundle"
	"slipway.build/pkg/ship/sign"
	"slipway.build/pkg/ship/site"
	"slipway.build/pkg/ship/verify"
	"slipway.build/pkg/tree/stamp"
)

// Images is what a repository of a registry gets of a release, and what it has of that.
type Images struct {
	Repository string     `json:"repository"` // below which all images are
	Version    string     `json:"version"`    // of the release
	Manifests  []Manifest `json:"manifests"`  // in the order of sending
	Tags       []Tag      `json:"tags"`
	Sent       int64      `json:"sent"` // bytes of requests

	want     verify.Want
	from     *store
	registry registry
}

// A Manifest is an image over all platforms, with its images, or for that of a bundle, or says something of one of those.
type Manifest struct {
	Name   string `json:"name"` // its repository
	Digest string `json:"digest"`
	Of     string `json:"of,omitempty"` // digest of the manifest that it is about; "" if it is an image
	State  State  `json:"state"`

	at    name.Digest
	hash  v1.Hash
	image bundle.Image // that it is of
}

// A Tag names an image over all platforms, or for that of a bundle. The tag of a release never moves. Those that other projects
// have chosen, such as etcd:3.7.0-0, do: their images change with the Go that compiles them, and with their base.
type Tag struct {
	Name  string `json:"name"`
	Was   string `json:"was,omitempty"` // digest of what it names at the target
	Is    string `json:"is"`            // digest of what it should name
	Note  string `json:"note,omitempty"`
	State State  `json:"state"`

	at    name.Tag
	image bundle.Image
	fixed bool // it is not the tag of a release
}

// A registry has what the requests of a publication share.
type registry struct {
	options []remote.Option
	network *patient
	puller  *remote.Puller
	pusher  *remote.Pusher
}

func newRegistry() (r registry, err error) {
	r.network = &patient{to: remote.DefaultTransport}
	r.options = []remote.Option{
		remote.WithAuthFromKeychain(authn.DefaultKeychain), remote.WithUserAgent("slipway"), remote.WithTransport(r.network),
		remote.WithRetryStatusCodes(), // the transport sees to that
	}
	if r.puller, err = remote.NewPuller(r.options...); err != nil {
		return r, err
	}
	r.pusher, err = remote.NewPusher(r.options...)
	return r, err
}

// PlanImages returns what a repository of a registry, such as registry.example.com/k8s, gets of the release: its images over all platforms,
// or those of a bundle, with signatures, provenance and bills of materials. The images of a folder's release are in an OCI image layout. It
// sends nothing. A tag that others have chosen may move away from what cannot be told to be older if its image is in move, such as "etcd".
// The error is a [*TagError] if a tag may not move.
//
// Access is that of Docker's configuration and its helpers.
func (r *Release) PlanImages(ctx context.Context, repository, layoutDir string, move []string) (_ *Images, err error) {
	p := &Images{Repository: repository, Version: r.described.Version, want: r.want}
	if p.from, err = r.store(layoutDir); err != nil {
		return nil, err
	}
	if p.registry, err = newRegistry(); err != nil {
		return nil, err
	}
	if err := p.compute(r.described, move); err != nil {
		return nil, err
	}
	if p.registry.network.sizes, err = p.from.sizes(); err != nil {
		return nil, err
	}
	return p, p.look(ctx, move)
}

// store returns the images of the release, with what was verified, and nothing else, as referrers.
func (r *Release) store(layoutDir string) (*store, error) {
	if b := r.bundle; b != nil {
		referrers, err := b.Referrers()
		return &store{b.Images, referrers, b.Blob}, err
	}
	if err := sign.HasImages(r.dir, layoutDir); err != nil {
		return nil, fmt.Errorf("%s: %w", layoutDir, err)
	}
	in := os.DirFS(r.dir)
	description, err := fs.ReadFile(in, release.File)
	if err != nil {
		return nil, err
	}
	statements, err := sign.Statements(r.described, description, func(name string) ([]byte, error) { return fs.ReadFile(in, name) })
	if err != nil {
		return nil, err
	}
	referrers, err := sign.Referrers(r.described, in, statements)
	blob := func(hash v1.Hash) (io.ReadCloser, error) { return os.DirFS(layoutDir).Open(blobName(hash)) }
	return &store{bundle.Images(r.described), referrers, blob}, err
}

// compute lists manifests and tags of a release.
func (p *Images) compute(r *release.Release, move []string) error {
	own := []string{strings.ReplaceAll(r.Version, "+", "_"), r.Variables["KUBE_DOCKER_IMAGE_TAG"]}
	listed := map[string]site.Image{} // by the name of its index
	for _, i := range site.ImagesOf(r, p.Repository) {
		listed[i.Name] = i
	}
	refer := map[v1.Hash][]v1.Descriptor{}
	for _, made := range p.from.referrers {
		refer[made.Subject] = append(refer[made.Subject], made.Descriptor)
	}
	var images []string
	for _, i := range p.from.images {
		l := listed[i.Index.Name]
		images = append(images, path.Base(l.Repository))
		for _, repository := range l.Repositories() {
			at, err := name.NewTag(repository+":"+l.Tag, name.StrictValidation)
			if err != nil {
				return badrequest.Mark(err)
			}
			hash := hashOf(i.Artifact)
			p.Tags = append(p.Tags, Tag{Name: at.String(), Is: hash.String(), at: at, image: i, fixed: !slices.Contains(own, l.Tag)})
			add := func(of, about v1.Hash) {
				m := Manifest{Name: at.Context().String(), Digest: of.String(), at: at.Context().Digest(of.String()), hash: of, image: i}
				if about != (v1.Hash{}) {
					m.Of = about.String()
				}
				p.Manifests = append(p.Manifests, m)
			}
			add(hash, v1.Hash{})
			for _, about := range i.Parts() {
				for _, d := range refer[hashOf(about)] {
					add(d.Digest, hashOf(about))
				}
			}
		}
	}
	for _, image := range move {
		if !slices.Contains(images, image) {
			return suggest.Unknown("image", image, images)
		}
	}
	return nil
}

// look finds out what the target has.
func (p *Images) look(ctx context.Context, move []string) error {
	g, within := errgroup.WithContext(ctx)
	g.SetLimit(requests)
	var mu sync.Mutex
	there := map[string]bool{} // repositories that have the image
	for i := range p.Manifests {
		m := &p.Manifests[i]
		if m.State = ToSend; m.Of != "" {
			continue
		}
		g.Go(func() error {
			d, err := p.head(within, m.at)
			if d != nil {
				mu.Lock()
				m.State, there[m.Name] = There, true
				mu.Unlock()
			}
			return err
		})
	}
	for i := range p.Tags {
		g.Go(func() error { return p.lookTag(within, &p.Tags[i], move) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	refused := &TagError{Version: p.Version}
	for _, t := range p.Tags {
		if t.State == "" {
			refused.Tags = append(refused.Tags, t)
		}
	}
	if len(refused.Tags) > 0 {
		return refused
	}
	about := map[name.Digest][]*Manifest{}
	for i := range p.Manifests {
		if m := &p.Manifests[i]; m.Of != "" && there[m.Name] {
			subject := m.at.Context().Digest(m.Of)
			about[subject] = append(about[subject], m)
		}
	}
	g, within = errgroup.WithContext(ctx)
	g.SetLimit(requests)
	for subject, all := range about {
		g.Go(func() error {
			listed, err := p.referrers(within, subject)
			for _, m := range all {
				if listed[m.hash] {
					m.State = There
				}
			}
			return err
		})
	}
	return g.Wait()
}

// requests is how many requests are made at a time. Registries count them.
const requests = 8

// lookTag compares a tag with the target's. It has no state if it may not move.
func (p *Images) lookTag(ctx context.Context, t *Tag, move []string) error {
	d, err := p.head(ctx, t.at)
	if err != nil {
		return err
	}
	if d != nil {
		t.Was = d.Digest.String()
	}
	part := d != nil && slices.ContainsFunc(t.image.Of, func(a release.Artifact) bool { return d.Digest == hashOf(a) })
	switch {
	case d == nil:
		t.State = ToSend
	case d.Digest.String() == t.Is:
		t.State = There
	case d.Digest == hashOf(t.image.Index):
		t.State, t.Is, t.Note = There, t.Was, "it stays at the image over all platforms, which has this one"
	case part && t.image.Artifact.Kind == release.Index:
		t.State, t.Note = ToSend, "it had the image of one platform, and gets that over all"
	case part && !(t.fixed && slices.Contains(move, path.Base(t.at.RepositoryStr()))):
		t.Note = "it has the image of another platform: publish that over all platforms"
	case !t.fixed:
		t.Note = "it is the tag of a release, which never moves, and has another image: publish a new version"
	case slices.Contains(move, path.Base(t.at.RepositoryStr())):
		t.State, t.Note = ToSend, "it has another image, and was to move"
	default:
		return p.forward(ctx, t)
	}
	return nil
}

// forward lets a tag move from an image of an older release, and stay at one of a newer one.
func (p *Images) forward(ctx context.Context, t *Tag) error {
	versions, err := verify.VersionsOf(ctx, t.Name, p.want, p.registry.options...)
	if err != nil {
		return err
	}
	if len(versions) == 0 {
		t.Note = "it has another image, and nothing that is trusted says of which release"
		return nil
	}
	switch of := slices.MaxFunc(versions, stamp.Compare); {
	case stamp.Compare(of, p.Version) <= 0:
		t.State, t.Note = ToSend, "it moves from the image of "+of
	default:
		t.State, t.Is, t.Note = There, t.Was, "it stays at the image of "+of+", which is newer"
	}
	return nil
}

// A TagError says that tags may not move to the images of a release.
type TagError struct {
	Version string
	Tags    []Tag
}

func (e *TagError) Error() string {
	var text []string
	for _, t := range e.Tags {
		text = append(text, t.Name+": "+t.Note)
	}
	return fmt.Sprintf("%s is not pushed:\n\t%s", e.Version, strings.Join(text, "\n\t"))
}

// Fixed returns the images of tags that would move if that was asked for.
func (e *TagError) Fixed() []string {
	var images []string
	for _, t := range e.Tags {
		if !t.fixed {
			return nil // publish a new version
		}
		images = append(images, path.Base(t.at.RepositoryStr()))
	}
	return slices.Compact(images)
}

// head describes a manifest of the target, or returns nil if there is none.
func (p *Images) head(ctx context.Context, at name.Reference) (*v1.Descriptor, error) {
	d, err := p.registry.puller.Head(ctx, at)
	if absent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	return d, nil
}

// absent reports whether an answer is that there is no such thing. Some registries hide from strangers what there is not.
func absent(err error) bool {
	answer, ok := errors.AsType[*transport.Error](err)
	return ok && answer.StatusCode == http.StatusNotFound
}

// referrers returns the digests of what the target says of a manifest.
func (p *Images) referrers(ctx context.Context, of name.Digest) (map[v1.Hash]bool, error) {
	options := append(slices.Clone(p.registry.options), remote.WithContext(ctx), remote.Reuse(p.registry.puller))
	index, err := remote.Referrers(of, options...)
	if err != nil {
		return nil, fmt.Errorf("what refers to %s: %w", of, err)
	}
	m, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	listed := map[v1.Hash]bool{}
	for _, d := range m.Manifests {
		listed[d.Digest] = true
	}
	return listed, nil
}
