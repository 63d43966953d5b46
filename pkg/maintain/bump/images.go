package bump

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"

	"slipway.build/pkg/tree/catalog"
)

// setImages gives the images of a project a version, with the time and the commit of a module's version.
func (p *preparation) setImages(pr project, version string, from info, why string) error {
	to := catalog.Image{Version: version, Created: from.Time}
	if from.Origin.VCS == "git" {
		to.Revision = from.Origin.Hash
	}
	for _, im := range pr.images {
		if im.Version == version {
			continue
		}
		at := slices.IndexFunc(p.catalog.Images, func(is catalog.Image) bool { return is.Name == im.Name && is.Version == im.Version })
		if err := p.draft.SetImage(at, to); err != nil {
			return err
		}
		p.docs[im.Name+":"+im.Version] = im.Name + ":" + version
		p.move(pr.name, im.Version, version, why)
	}
	return nil
}

// renamed has IDs of test images that upstream has renamed, in both directions.
var renamed = map[string]string{"JessieDnsutils": "GlibcDnsTesting", "GlibcDnsTesting": "JessieDnsutils"}

// moveTestImages gives the images for tests the names and versions that the tests of another version use.
func (p *preparation) moveTestImages(ctx context.Context, u *upstream) error {
	if !slices.ContainsFunc(p.catalog.Images, func(im catalog.Image) bool { return im.In(catalog.Test) }) {
		return nil
	}
	from := p.catalog.Kubernetes
	now, err := p.proxy.fetch(ctx, requirement{Path: kubernetes, Version: from})
	if err != nil {
		return fmt.Errorf("which images the tests of %s use: %w", from, err)
	}
	before, err := testImages(now[0].Dir)
	if err != nil {
		return err
	}
	after, err := testImages(u.Dir)
	if err != nil {
		return err
	}
	for at, im := range p.catalog.Images {
		if !im.In(catalog.Test) || !im.Versioned() {
			continue
		}
		old := testImage{im.Name, im.Version}
		new, ok := successor(old, before, after)
		if !ok {
			p.note("image %s:%s stays: the tests of %s do not name it, or nothing in its place", im.Name, im.Version, u.Version)
			continue
		}
		to := catalog.Image{Version: new.Version, Revision: im.Revision}
		if b, _ := p.catalog.Binary(im.Binary); im.Created.Equal(now[0].info.Time) && p.catalog.IsComponent(b) {
			to.Created = u.info.Time
		}
		display := new.Version
		if new.Name != im.Name {
			to.Name, display = new.Name, path.Base(new.Name)+" "+new.Version
		}
		if new == old && to.Created.IsZero() {
			continue
		}
		if err := p.draft.SetImage(at, to); err != nil {
			return err
		}
		p.docs[im.Name+":"+im.Version] = new.Name + ":" + new.Version
		p.move("image "+path.Base(im.Name), im.Version, display, "the tests name it")
	}
	return nil
}

// successor returns the image that tests use now under the ID of an image that they used before, if there is one.
func successor(old testImage, before, after map[string]testImage) (testImage, bool) {
	for _, id := range slices.Sorted(maps.Keys(before)) {
		if before[id] != old {
			continue
		}
		for _, name := range []string{id, renamed[id]} {
			if new, ok := after[name]; ok {
				return new, true
			}
		}
	}
	return testImage{}, false
}
