package verify

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"slipway.build/pkg/mechanism/checksum"
	"slipway.build/pkg/mechanism/ctxio"
	"slipway.build/pkg/mechanism/platform"
	"slipway.build/pkg/mechanism/signature"
	"slipway.build/pkg/release/provenance"
	"slipway.build/pkg/ship/sign"
)

// A store has images: a layout, or a registry.
type store interface {
	fmt.Stringer

	// blob opens a blob or manifest. The error is fs.ErrNotExist if there is none.
	blob(ctx context.Context, d v1.Descriptor) (io.ReadCloser, error)

	// referrers describes the manifests whose subject is a manifest.
	referrers(ctx context.Context, of v1.Descriptor) ([]v1.Descriptor, error)
}

// maxManifest is the size of the largest manifest that is read, in bytes. Registries have the same limit.
const maxManifest = 4 << 20

// image checks an image or index and everything below it, by its descriptor. Named is the name that it was asked for by.
func image(ctx context.Context, in store, top v1.Descriptor, named string, want Want) (*Report, error) {
	if want.rebuilt() {
		return nil, errPart
	}
	if err := want.check(); err != nil {
		return nil, err
	}
	c := &imageChecker{store: in, want: want, named: named, report: &Report{Folder: named, Signature: Unsigned, Image: true},
		signed: map[string]int{}}
	if want.Trust != nil {
		c.report.Signature = Good
	}
	if err := c.manifest(ctx, top, ""); err != nil {
		return nil, err
	}
	for _, hint := range slices.Sorted(maps.Keys(c.signed)) {
		if want.Trust != nil && c.signed[hint] == c.signatureFiles {
			c.report.Keys = append(c.report.Keys, hint)
		}
	}
	if t := want.Trust; t != nil && len(c.report.Keys) < t.Threshold {
		c.report.Signature = NotConvinced
		if t.Threshold > 1 || !c.report.bad() {
			c.report.problem(tooFew(len(c.report.Keys), t))
		}
	}
	if c.report.Version == "" && (want.Version != "" || want.AtLeast != "") {
		c.report.Problem = "nothing that is known says which version it is"
	} else if err := c.report.compare(want); err != nil {
		return nil, err
	}
	c.report.finish()
	return c.report, nil
}

type imageChecker struct {
	store
	want   Want
	named  string
	report *Report

	signatureFiles int            // signatures and provenances that are wanted
	signed         map[string]int // how many of them the owner of a key has signed, by its hint
}

func (c *imageChecker) add(path string, status Status, detail string) {
	c.report.Files = append(c.report.Files, File{path, status, detail})
	if (status == BadSigned || status == Missing) && strings.Contains(path, " ") {
		c.report.Signature = NotConvinced
	}
}

// manifest checks a manifest and all that it names. On is its platform, in an index.
func (c *imageChecker) manifest(ctx context.Context, d v1.Descriptor, on string) error {
	name := d.Digest.String()
	if on != "" {
		name = on + "/" + name
	}
	data, status, err := c.read(ctx, d, maxManifest)
	if err != nil {
		return err
	}
	c.add(name, status, "")
	if status != OK {
		return nil
	}
	if err := c.signatures(ctx, d, name); err != nil {
		return err
	}
	var m struct {
		v1.Manifest
		Manifests []v1.Descriptor `json:"manifests"`
	}
	if err := json.Unmarshal(data, &m); err != nil {
		c.add(name, Changed, "it is no manifest: "+err.Error())
		return nil
	}
	switch d.MediaType {
	case types.OCIImageIndex, types.DockerManifestList:
		for _, of := range m.Manifests {
			if of.Platform == nil || of.MediaType.IsIndex() {
				c.add(name, Changed, "it names "+of.Digest.String()+", which is no image of a platform")
				continue
			}
			if err := c.manifest(ctx, of, of.Platform.String()); err != nil {
				return err
			}
		}
	case types.OCIManifestSchema1, types.DockerManifestSchema2:
		if m.Config.Digest == (v1.Hash{}) {
			c.add(name, Changed, "it has no configuration")
			return nil
		}
		for _, blob := range append([]v1.Descriptor{m.Config}, m.Layers...) {
			if err := c.content(ctx, blob, path.Join(on, blob.Digest.String())); err != nil {
				return err
			}
		}
	default:
		c.add(name, Changed, "it is of the type "+string(d.MediaType))
	}
	return nil
}

// read reads a small blob.
func (c *imageChecker) read(ctx context.Context, d v1.Descriptor, limit int64) ([]byte, Status, error) {
	r, err := c.blob(ctx, d)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, Missing, nil
	}
	if err != nil {
		return nil, "", err
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(ctxio.Reader(ctx, r), limit+1))
	if err != nil {
		return nil, "", err
	}
	if int64(len(data)) > limit || d.Digest.String() != fmt.Sprintf("sha256:%x", sha256.Sum256(data)) {
		return nil, Changed, nil
	}
	return data, OK, nil
}

// content compares a blob with its digest and size.
func (c *imageChecker) content(ctx context.Context, d v1.Descriptor, name string) error {
	r, err := c.blob(ctx, d)
	if errors.Is(err, fs.ErrNotExist) {
		c.add(name, Missing, "")
		return nil
	}
	if err != nil {
		return err
	}
	defer r.Close()
	sum, n, err := checksum.SHA256(io.LimitReader(ctxio.Reader(ctx, r), d.Size+1))
	if err != nil {
		return fmt.Errorf("read %s of %s: %w", d.Digest, c, err)
	}
	switch {
	case n < d.Size:
		c.add(name, Short, fmt.Sprintf("has %d bytes of %d", n, d.Size))
	case n > d.Size || d.Digest.String() != "sha256:"+sum:
		c.add(name, Changed, "")
	default:
		c.add(name, OK, "")
	}
	return nil
}

// maxReferrers bounds how many referrers of a manifest are read.
const maxReferrers = 100

// signatures checks what the referrers of a manifest say about it. With a key, they must have its signature and its provenance.
func (c *imageChecker) signatures(ctx context.Context, of v1.Descriptor, name string) error {
	referrers, err := c.referrers(ctx, of)
	if err != nil {
		return err
	}
	if len(referrers) > maxReferrers {
		referrers = referrers[:maxReferrers]
	}
	good := map[string]map[string]bool{} // hints of keys, by types of predicates
	problems := map[string]string{}
	for _, d := range referrers { // whatever their type is called: registries differ in that
		kind, err := c.referrer(ctx, d, of)
		if err != nil {
			return err
		}
		if kind.problem == "" {
			if good[kind.predicate] == nil {
				good[kind.predicate] = map[string]bool{}
			}
			good[kind.predicate][kind.hint] = true
		} else if kind.predicate != "" {
			problems[kind.predicate] = kind.problem
		}
	}
	for _, wanted := range []struct{ what, predicate string }{{"signature", sign.ImageSignature}, {"provenance", provenance.PredicateType}} {
		file := name + " " + wanted.what
		problem, bad := problems[wanted.predicate]
		keys := good[wanted.predicate]
		c.signatureFiles++
		for hint := range keys {
			c.signed[hint]++
		}
		switch t := c.want.Trust; {
		case t != nil && len(keys) >= t.Threshold:
			c.add(file, OK, "")
		case t == nil && len(keys) > 0:
			c.add(file, Unchecked, "")
			if c.report.Signature == Unsigned {
				c.report.Signature = NotChecked
			}
		case bad: // another one's signature is no harm if there is a good one
			c.add(file, BadSigned, problem)
		case t != nil && len(keys) > 0:
			c.add(file, Missing, tooFew(len(keys), t))
		case t != nil:
			c.add(file, Missing, "")
		}
	}
	return nil
}

// A said is what a referrer says of an image.
type said struct{ predicate, hint, problem string }

// referrer reads a referrer's bundle, and checks it.
func (c *imageChecker) referrer(ctx context.Context, d, of v1.Descriptor) (said, error) {
	data, status, err := c.read(ctx, d, maxManifest)
	if err != nil || status != OK {
		return said{}, err
	}
	var m v1.Manifest
	if err := json.Unmarshal(data, &m); err != nil || m.Subject == nil || m.Subject.Digest != of.Digest || len(m.Layers) != 1 {
		return said{}, nil
	}
	bundle, status, err := c.read(ctx, m.Layers[0], signature.MaxBundle)
	if err != nil || status != OK {
		return said{}, err
	}
	b, err := signature.Unmarshal(bundle)
	if err != nil || b.Statement() == nil {
		return said{}, nil // which is nobody's claim
	}
	var statement struct {
		PredicateType string               `json:"predicateType"`
		Subject       []provenance.Subject `json:"subject"`
	}
	if err := json.Unmarshal(b.Statement(), &statement); err != nil {
		return said{}, nil
	}
	return said{statement.PredicateType, b.Hint(), c.claim(b, statement.PredicateType, statement.Subject, of)}, nil
}

// claim returns what is wrong with a statement about an image.
func (c *imageChecker) claim(b *signature.Bundle, predicate string, subjects []provenance.Subject, of v1.Descriptor) string {
	if c.want.Trust != nil {
		if _, err := c.want.Trust.VerifyAny(b, b.Statement()); err != nil {
			return err.Error()
		}
	}
	if len(subjects) != 1 || subjects[0].Digest["sha256"] != of.Digest.Hex {
		return "it is about something else"
	}
	if is, asked := repository(subjects[0].Name), repository(c.named); is != asked && !ofArch(is, asked) {
		return fmt.Sprintf("it is about the image %s", subjects[0].Name)
	}
	if predicate != provenance.PredicateType {
		return ""
	}
	s, err := provenance.Unmarshal(b.Statement())
	if err == nil {
		err = s.Check()
	}
	if err != nil {
		return err.Error()
	}
	switch version := s.Predicate.Definition.Parameters.Version; c.report.Version {
	case "", version:
		c.report.Version, c.report.Commit = version, s.Predicate.Definition.Parameters.Commit
	default:
		return fmt.Sprintf("it is of %s, and another part of the image of %s", version, c.report.Version)
	}
	return ""
}

// repository returns the last part of an image's name, without tag and digest.
func repository(name string) string {
	name, _, _ = strings.Cut(name, "@")
	base := path.Base(name)
	base, _, _ = strings.Cut(base, ":")
	return base
}

// ofArch reports whether a name is that of an image for one processor, of an index.
func ofArch(name, index string) bool {
	arch, ok := strings.CutPrefix(name, index+"-")
	return ok && slices.ContainsFunc(platform.All(), func(p platform.Platform) bool { return p.Arch == arch })
}
