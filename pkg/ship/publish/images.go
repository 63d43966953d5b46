package publish

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"golang.org/x/sync/errgroup"

	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/mechanism/suggest"
	"slipway.build/pkg/release"
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
	from     layout.Path
	tmp      string                      // has from
	named    map[string]v1.Hash          // images over all platforms, by name
	below    map[v1.Hash][]v1.Hash       // an index, and its images
	refer    map[v1.Hash][]v1.Descriptor // referrers, by what they are about
	registry registry
}

// A Manifest is an image over all platforms, with its images, or says something of one of those.
type Manifest struct {
	Name   string `json:"name"` // its repository
	Digest string `json:"digest"`
	Of     string `json:"of,omitempty"` // digest of the manifest that it is about; "" if it is an image
	State  State  `json:"state"`

	at   name.Digest
	hash v1.Hash
}

// A Tag is a name of an image over all platforms. The tag of a release never moves. Those that other projects have chosen, such as
// etcd:3.7.0-0, do: their images change with the Go that compiles them, and with their base.
type Tag struct {
	Name  string `json:"name"`
	Was   string `json:"was,omitempty"` // digest of what it names at the target
	Is    string `json:"is"`            // digest of what it should name
	Note  string `json:"note,omitempty"`
	State State  `json:"state"`

	at    name.Tag
	hash  v1.Hash
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

// PlanImages returns what a repository of a registry, such as registry.example.com/k8s, gets of the release: its images over all platforms
// with signatures, provenance and bills of materials. They are in an OCI image layout. It sends nothing. A tag that others have chosen may
// move away from what cannot be told to be older if its image is in move, such as "etcd". The error is a [*TagError] if a tag may not move.
//
// Access is that of Docker's configuration and its helpers. The caller closes the publication.
func (r *Release) PlanImages(ctx context.Context, repository, layoutDir string, move []string) (_ *Images, err error) {
	p := &Images{Repository: repository, Version: r.described.Version, want: r.want}
	if err := sign.HasImages(r.dir, layoutDir); err != nil {
		return nil, fmt.Errorf("%s: %w", layoutDir, err)
	}
	if p.registry, err = newRegistry(); err != nil {
		return nil, err
	}
	// What was verified, and nothing else, becomes the referrers.
	if p.tmp, err = os.MkdirTemp(filepath.Dir(filepath.Clean(layoutDir)), ".publishing-"); err != nil { // where links can be made
		p.tmp, err = os.MkdirTemp("", "slipway-publishing-")
	}
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			p.Close()
		}
	}()
	_, had, err := manifests(layoutDir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", layoutDir, err)
	}
	to := filepath.Join(p.tmp, "oci")
	if err := sign.Layout(r.dir, layoutDir, to); err != nil {
		return nil, err
	}
	if err := p.read(to, len(had.Manifests)); err != nil {
		return nil, fmt.Errorf("%s: %w", layoutDir, err)
	}
	if err := p.compute(r.described, move); err != nil {
		return nil, err
	}
	return p, p.look(ctx, move)
}

// Close removes what the publication has on this machine.
func (p *Images) Close() { _ = os.RemoveAll(p.tmp) }

// manifests returns what a layout has.
func manifests(dir string) (from layout.Path, index *v1.IndexManifest, err error) {
	if from, err = layout.FromPath(dir); err != nil {
		return "", nil, err
	}
	all, err := from.ImageIndex()
	if err != nil {
		return "", nil, err
	}
	index, err = all.IndexManifest()
	return from, index, err
}

// read reads the names and relations of a layout's manifests. Those from had on are what refers to them: one that was there before was not
// verified.
func (p *Images) read(dir string, had int) (err error) {
	var index *v1.IndexManifest
	if p.from, index, err = manifests(dir); err != nil {
		return err
	}
	all, err := p.from.ImageIndex()
	if err != nil {
		return err
	}
	p.named, p.below, p.refer = map[string]v1.Hash{}, map[v1.Hash][]v1.Hash{}, map[v1.Hash][]v1.Descriptor{}
	for i, d := range index.Manifests {
		switch named := d.Annotations[sign.RefName]; {
		case strings.HasPrefix(named, "sha256-"): // for registries without an interface for referrers
		case named != "" && d.MediaType.IsIndex():
			p.named[named] = d.Digest
			of, err := all.ImageIndex(d.Digest)
			if err != nil {
				return err
			}
			m, err := of.IndexManifest()
			if err != nil {
				return err
			}
			for _, image := range m.Manifests {
				p.below[d.Digest] = append(p.below[d.Digest], image.Digest)
			}
		case d.ArtifactType != "" && i >= had:
			m, err := p.manifest(d.Digest)
			if err == nil && m.Subject == nil {
				err = fmt.Errorf("%s is about nothing", d.Digest)
			}
			if err != nil {
				return err
			}
			p.refer[m.Subject.Digest] = append(p.refer[m.Subject.Digest], d)
		}
	}
	return nil
}

func (p *Images) manifest(hash v1.Hash) (m v1.Manifest, err error) {
	data, err := p.from.Bytes(hash)
	if err == nil {
		err = json.Unmarshal(data, &m)
	}
	return m, err
}

// compute lists manifests and tags of a release.
func (p *Images) compute(r *release.Release, move []string) error {
	own := []string{strings.ReplaceAll(r.Version, "+", "_"), r.Variables["KUBE_DOCKER_IMAGE_TAG"]}
	var images []string
	for _, i := range site.ImagesOf(r, p.Repository) {
		hash, ok := p.named[i.Name]
		if !ok || hash.Hex != i.SHA256 {
			return fmt.Errorf("the layout has no %s, sha256:%s", i.Name, i.SHA256)
		}
		images = append(images, path.Base(i.Repository))
		for _, repository := range repositories(i.Repository) {
			at, err := name.NewTag(repository+":"+i.Tag, name.StrictValidation)
			if err != nil {
				return badrequest.Mark(err)
			}
			p.Tags = append(p.Tags, Tag{Name: at.String(), Is: hash.String(), at: at, hash: hash, fixed: !slices.Contains(own, i.Tag)})
			add := func(of, about v1.Hash) {
				m := Manifest{Name: at.Context().String(), Digest: of.String(), at: at.Context().Digest(of.String()), hash: of}
				if about != (v1.Hash{}) {
					m.Of = about.String()
				}
				p.Manifests = append(p.Manifests, m)
			}
			add(hash, v1.Hash{})
			for _, about := range append([]v1.Hash{hash}, p.below[hash]...) {
				for _, d := range p.refer[about] {
					add(d.Digest, about)
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

// repositories returns those of an image. kubeadm asks for coredns/coredns in upstream's registry alone, and for coredns in others.
func repositories(repository string) []string {
	if dir, ok := strings.CutSuffix(repository, "/coredns/coredns"); ok {
		return []string{repository, dir + "/coredns"}
	}
	return []string{repository}
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
	switch {
	case d == nil:
		t.State = ToSend
	case d.Digest == t.hash:
		t.State = There
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
