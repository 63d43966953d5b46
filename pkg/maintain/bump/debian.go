package bump

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"slices"

	"slipway.build/pkg/mechanism/debian"
	"slipway.build/pkg/tree/catalog"
)

// A DebianLock is what Debian's archives have for the packages of an image base now.
type DebianLock struct {
	File string // debian.lock, relative to the root, with slashes
	*debian.Lock
}

// ResolveDebian asks Debian's archives for what every images/NAME/packages.txt wants, for the platforms of the server set.
func ResolveDebian(ctx context.Context, root string, c *catalog.Catalog, from debian.Sources) ([]DebianLock, error) {
	var locks []DebianLock
	var requests []*debian.PackageRequest
	done := map[string]bool{"": true}
	for _, im := range c.Images {
		if done[im.Base] {
			continue
		}
		done[im.Base] = true
		request, err := debian.ReadRequest(filepath.Join(root, "images", im.Base, "packages.txt"))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		requests = append(requests, request)
		locks = append(locks, DebianLock{File: path.Join("images", im.Base, "debian.lock")})
	}
	if len(locks) == 0 {
		return nil, nil
	}
	if err := from.Check(); err != nil {
		return nil, err
	}
	var archs []string
	for _, p := range c.Sets[catalog.Server] {
		archs = append(archs, p.Arch)
	}
	resolved, err := debian.Resolve(ctx, from, requests, archs)
	if err != nil {
		return nil, err
	}
	for i := range locks {
		locks[i].Lock = resolved[i]
	}
	return locks, nil
}

// toDebian refreshes every debian.lock.
func (p *preparation) toDebian(ctx context.Context) error {
	locks, err := ResolveDebian(ctx, copyDir(p.Root), p.catalog, p.Debian)
	if err != nil {
		return err
	}
	for _, l := range locks {
		old, err := debian.ReadLock(p.file(l.File))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if old != nil && slices.Equal(old.Packages, l.Packages) && old.Suite == l.Suite {
			continue
		}
		for _, m := range lockMoves(old, l.Lock) {
			p.move(m.What, m.From, m.To, "in "+l.File+m.Why)
		}
		if err := p.write(l.File, l.Marshal(p.LocksBy)); err != nil {
			return err
		}
	}
	return nil
}

// lockMoves lists the packages whose versions differ, each once for all architectures that have the same two versions. Why of a
// security fix is ", from " and the archive; the caller puts it after the name of a file.
func lockMoves(old, new *debian.Lock) []Move {
	if old == nil {
		old = &debian.Lock{}
	}
	type key struct{ arch, name string }
	before := map[key]string{}
	for _, p := range old.Packages {
		before[key{p.Arch, p.Name}] = p.Version
	}
	var moves []Move
	add := func(m Move) {
		if m.From != m.To && !slices.Contains(moves, m) {
			moves = append(moves, m)
		}
	}
	for _, p := range new.Packages {
		m := Move{What: "Debian " + p.Name, From: before[key{p.Arch, p.Name}], To: p.Version}
		if p.Archive == debian.Security {
			m.Why = ", from " + debian.Security
		}
		add(m)
		delete(before, key{p.Arch, p.Name})
	}
	for _, p := range old.Packages {
		add(Move{What: "Debian " + p.Name, From: before[key{p.Arch, p.Name}]}) // "" if the new lock has it
	}
	return moves
}
