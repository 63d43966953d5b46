package verify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/mechanism/suggest"
	"slipway.build/pkg/ship/sign"
)

// A layout is an OCI image layout in a folder.
type layout string

func (l layout) String() string { return string(l) }

func (l layout) blob(_ context.Context, d v1.Descriptor) (io.ReadCloser, error) {
	if d.Digest.Algorithm != "sha256" || strings.Trim(d.Digest.Hex, "0123456789abcdef") != "" {
		return nil, fmt.Errorf("%s: %w", d.Digest, fs.ErrNotExist)
	}
	file := filepath.Join(string(l), "blobs", "sha256", d.Digest.Hex)
	if info, err := os.Lstat(file); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, fs.ErrNotExist)
	}
	return os.Open(file)
}

func (l layout) index(ctx context.Context) ([]v1.Descriptor, error) {
	data, err := readSmall(ctx, folder(l), "index.json", maxDescription)
	if err != nil {
		return nil, err
	}
	var index v1.IndexManifest
	if err := json.Unmarshal(data, &index); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(string(l), "index.json"), err)
	}
	return index.Manifests, nil
}

func (l layout) referrers(ctx context.Context, of v1.Descriptor) ([]v1.Descriptor, error) {
	all, err := l.index(ctx)
	if err != nil {
		return nil, err
	}
	var found []v1.Descriptor
	for _, d := range all {
		if d.ArtifactType == "" || d.Size > maxManifest {
			continue
		}
		r, err := l.blob(ctx, d)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		var m v1.Manifest
		err = json.NewDecoder(io.LimitReader(r, maxManifest)).Decode(&m)
		r.Close()
		if err == nil && m.Subject != nil && m.Subject.Digest == of.Digest {
			found = append(found, d)
		}
	}
	return found, nil
}

// Layout checks images in an OCI image layout: that of a name, such as registry.k8s.io/pause:v1, or all that have one.
func Layout(ctx context.Context, dir, named string, want Want) ([]*Report, error) {
	all, err := layout(dir).index(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	var reports []*Report
	for _, d := range all {
		has := d.Annotations[sign.RefName]
		if has == "" || strings.HasPrefix(has, "sha256-") {
			continue
		}
		names = append(names, has)
		if named != "" && named != has {
			continue
		}
		report, err := image(ctx, layout(dir), d, has, want)
		if err != nil {
			return nil, err
		}
		reports = append(reports, report)
	}
	if len(reports) == 0 {
		return nil, badrequest.Mark(fmt.Errorf("%s: %w", dir, suggest.Unknown("image", named, names)))
	}
	return reports, nil
}

// A registry is a repository of a registry.
type registry struct {
	repository name.Repository
	options    []remote.Option
}

func (r registry) String() string { return r.repository.String() }

func (r registry) blob(_ context.Context, d v1.Descriptor) (io.ReadCloser, error) {
	at := r.repository.Digest(d.Digest.String())
	if d.MediaType.IsImage() || d.MediaType.IsIndex() {
		got, err := remote.Get(at, r.options...)
		if err != nil {
			return nil, absent(err)
		}
		return io.NopCloser(strings.NewReader(string(got.Manifest))), nil
	}
	l, err := remote.Layer(at, r.options...)
	if err != nil {
		return nil, absent(err)
	}
	blob, err := l.Compressed()
	return blob, absent(err)
}

func (r registry) referrers(_ context.Context, of v1.Descriptor) ([]v1.Descriptor, error) {
	index, err := remote.Referrers(r.repository.Digest(of.Digest.String()), r.options...)
	if err != nil {
		return nil, err
	}
	m, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	return m.Manifests, nil
}

// absent makes an answer that there is nothing an fs.ErrNotExist.
func absent(err error) error {
	var answer *transport.Error
	if errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound {
		return errors.Join(err, fs.ErrNotExist)
	}
	return err
}

// Image checks an image in a registry, by its name there. Access is that of docker's and podman's configuration.
func Image(ctx context.Context, ref string, want Want) (*Report, error) {
	at, err := name.ParseReference(ref)
	if err != nil {
		return nil, badrequest.Mark(err)
	}
	options := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain), remote.WithUserAgent("slipway")}
	got, err := remote.Get(at, options...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", ref, err)
	}
	return image(ctx, registry{at.Context(), options}, got.Descriptor, ref, want)
}

// VersionsOf returns the versions of releases that an image in a registry is of, as provenances say that Want's trust accepts. An image
// that does not change from release to release has several.
func VersionsOf(ctx context.Context, ref string, want Want, options ...remote.Option) ([]string, error) {
	at, err := name.ParseReference(ref)
	if err != nil {
		return nil, badrequest.Mark(err)
	}
	options = append(slices.Clone(options), remote.WithContext(ctx))
	d, err := remote.Head(at, options...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", ref, err)
	}
	in := registry{at.Context(), options}
	referrers, err := in.referrers(ctx, *d)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", ref, err)
	}
	var versions []string
	for _, r := range referrers[:min(len(referrers), maxReferrers)] {
		c := &imageChecker{store: in, want: want, named: ref, report: &Report{}}
		said, err := c.referrer(ctx, r, *d)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", ref, err)
		}
		if said.problem == "" && c.report.Version != "" {
			versions = append(versions, c.report.Version)
		}
	}
	return versions, nil
}
