package publish

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"runtime"

	"golang.org/x/sync/errgroup"

	"slipway.build/pkg/mechanism/ctxio"
	"slipway.build/pkg/mechanism/unpack"
	"slipway.build/pkg/release"
	"slipway.build/pkg/ship/site"
)

// A State says where an object, page or marker is in its publication.
type State string

// The states.
const (
	There  State = "there"   // as it should be
	ToSend State = "to send" // it will be put or replaced
	Sent   State = "sent"
)

// A Publication is what a target gets, and what it has of that.
type Publication struct {
	Target    string   `json:"target"`              // for people
	Version   string   `json:"version"`             // of the release
	URLPath   string   `json:"urlPath"`             // of its folder, below the site's address
	Withdrawn string   `json:"withdrawn,omitempty"` // why it is withdrawn
	Packages  string   `json:"packages,omitempty"`  // the folder of the repositories that have its packages
	ForUsers  []string `json:"forUsers,omitempty"`  // files with which apt and dnf find these
	OtherKey  []string `json:"otherKey,omitempty"`  // its rpms with the signature of a key that is in no keyring any more
	Objects   []Object `json:"objects"`             // in the order of sending, release.json last
	Pages     []Page   `json:"pages"`               // the same
	Markers   []Marker `json:"markers"`

	channel Channel
	sign    func(ctx context.Context) error           // signs objects that are not at the target; may be nil
	pages   func(ctx context.Context) ([]Page, error) // computes them of what is at the target
	release *release.Release
}

// An Object is a file that never changes.
type Object struct {
	Path   string `json:"path"`   // at the target
	Size   int64  `json:"size"`   // bytes
	SHA256 string `json:"sha256"` // in hex
	State  State  `json:"state"`

	open            func() (io.ReadCloser, error) // nil: it is in a tarball
	tarball, member string
}

// A Page is a small file that says something of objects.
type Page struct {
	Path  string `json:"path"`
	Size  int64  `json:"size"` // bytes
	State State  `json:"state"`

	old, content []byte
	together     bool // with the next one
}

// A ConflictError says that the target has other objects than the publication, under the same names.
type ConflictError struct {
	Target  string
	Version string
	Objects []string
}

func (e *ConflictError) Error() string {
	text := fmt.Sprintf("%s has another content in %s", e.Target, e.Objects[0])
	if n := len(e.Objects) - 1; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("%s: what is published as %s does not change; publish a new version", text, e.Version)
}

// Done reports whether there is nothing to send.
func (p *Publication) Done() bool {
	for _, o := range p.Objects {
		if o.State == ToSend {
			return false
		}
	}
	for _, page := range p.Pages {
		if page.State == ToSend {
			return false
		}
	}
	for _, m := range p.Markers {
		if m.State == ToSend {
			return false
		}
	}
	return true
}

// look compares the publication with what is at the target. Objects that were found before are not read again.
func (p *Publication) look(ctx context.Context) error {
	if p.sign != nil {
		if err := p.sign(ctx); err != nil {
			return err
		}
	}
	differ := make([]bool, len(p.Objects))
	g, within := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range p.Objects {
		o := &p.Objects[i]
		if o.State == There {
			continue
		}
		g.Go(func() error {
			if err := within.Err(); err != nil {
				return err
			}
			same, err := p.channel.Head(within, o.Path, o.Size, o.SHA256)
			switch {
			case errors.Is(err, fs.ErrNotExist):
				o.State = ToSend
				return nil
			case err != nil:
				return err
			}
			o.State, differ[i] = There, !same
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	conflict := &ConflictError{Target: p.Target, Version: p.Version}
	for i, o := range p.Objects {
		if differ[i] {
			conflict.Objects = append(conflict.Objects, o.Path)
		}
	}
	if len(conflict.Objects) > 0 {
		if _, err := p.pages(ctx); err != nil { // it may say why, as of a repository that another key has signed
			return err
		}
		return conflict
	}
	var err error
	if p.Pages, err = p.pages(ctx); err != nil {
		return err
	}
	p.Markers, err = markers(ctx, p.channel, p.release.Version, p.Withdrawn)
	return err
}

// page compares a page with what is at the target.
func page(ctx context.Context, c Channel, name string, content []byte) (Page, error) {
	if content == nil {
		content = []byte{} // an empty file; nil is none
	}
	p := Page{Path: name, Size: int64(len(content)), State: ToSend, content: content}
	old, err := c.Read(ctx, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return Page{}, err
	default:
		p.old = append([]byte{}, old...) // which is not nil
		if string(old) == string(content) {
			p.State = There
		}
	}
	return p, nil
}

// Send sends what the target does not have. It calls waiting if somebody else is sending to it. After an error, or if the process is
// killed, the target has some of it, each file whole; the same publication again sends the rest.
func (p *Publication) Send(ctx context.Context, waiting func()) error {
	if p.Done() {
		return nil
	}
	return p.channel.Locked(ctx, waiting, func() error {
		if err := p.look(ctx); err != nil { // again: somebody else may have sent it
			return err
		}
		if err := p.sendObjects(ctx); err != nil {
			return err
		}
		if err := p.sendPages(ctx); err != nil {
			return err
		}
		for i := range p.Markers {
			if m := &p.Markers[i]; m.State == ToSend {
				if err := p.channel.Replace(ctx, Change{m.Path, text(m.Was), text(m.Is)}); err != nil {
					return err
				}
				m.State = Sent
			}
		}
		return nil
	})
}

// sendPages replaces pages, those together that readers need together.
func (p *Publication) sendPages(ctx context.Context) error {
	var changes []Change
	for _, page := range p.Pages {
		if page.State == ToSend {
			changes = append(changes, Change{page.Path, page.old, page.content})
		}
		if page.together || len(changes) == 0 {
			continue
		}
		if err := p.channel.Replace(ctx, changes...); err != nil {
			return err
		}
		changes = nil
	}
	for i := range p.Pages {
		if p.Pages[i].State == ToSend {
			p.Pages[i].State = Sent
		}
	}
	return nil
}

// sendObjects sends all objects, and release.json when all others are there.
func (p *Publication) sendObjects(ctx context.Context) error {
	g, within := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	members := map[string]map[string]*Object{} // by tarball
	var last *Object
	for i := range p.Objects {
		o := &p.Objects[i]
		switch {
		case o.State != ToSend:
		case o.open == nil:
			if members[o.tarball] == nil {
				members[o.tarball] = map[string]*Object{}
			}
			members[o.tarball][o.member] = o
		case path.Base(o.Path) == release.File:
			last = o
		default:
			g.Go(func() error { return p.sendFile(within, o) })
		}
	}
	for tarball, wanted := range members {
		g.Go(func() error { return p.sendMembers(within, tarball, wanted) })
	}
	if err := g.Wait(); err != nil || last == nil {
		return err
	}
	return p.sendFile(ctx, last)
}

func (p *Publication) sendFile(ctx context.Context, o *Object) error {
	r, err := o.open()
	if err != nil {
		return err
	}
	defer r.Close()
	return p.put(ctx, o, r)
}

// sendMembers sends members of a tarball, in one pass over it.
func (p *Publication) sendMembers(ctx context.Context, tarball string, wanted map[string]*Object) error {
	left := len(wanted)
	for m, err := range unpack.MembersOf(ctx, tarball) {
		if err != nil {
			return err
		}
		if o := wanted[m.Name]; o != nil && o.State == ToSend {
			if err := p.put(ctx, o, m); err != nil {
				return err
			}
			if left--; left == 0 {
				return nil
			}
		}
	}
	for name, o := range wanted {
		if o.State == ToSend {
			return fmt.Errorf("%s has no %s, which %s names", tarball, name, release.File)
		}
	}
	return nil
}

// put sends an object, unless its content is not that of the publication.
func (p *Publication) put(ctx context.Context, o *Object, from io.Reader) error {
	err := p.channel.Put(ctx, o.Path, func(w io.Writer) error {
		sum := sha256.New()
		n, err := io.CopyBuffer(io.MultiWriter(w, sum), io.LimitReader(ctxio.Reader(ctx, from), o.Size+1), make([]byte, 256<<10))
		switch {
		case err != nil:
			return err
		case n != o.Size || hex.EncodeToString(sum.Sum(nil)) != o.SHA256:
			return fmt.Errorf("its source is not what %s says: it has changed since it was verified", release.File)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("publish %s: %w", o.Path, err)
	}
	o.State = Sent
	return nil
}

// text returns a marker's content. No version is no file.
func text(version string) []byte {
	if version == "" {
		return nil
	}
	return []byte(version)
}

// published reads the description of a version at a target. The error is fs.ErrNotExist if there is none.
func published(ctx context.Context, c Channel, version string) (*release.Release, error) {
	name := path.Join(site.Folder(version), release.File)
	data, err := c.Read(ctx, name)
	if err != nil {
		return nil, err
	}
	r, err := release.Unmarshal(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return r, nil
}
