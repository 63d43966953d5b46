package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"time"

	"slipway.build/pkg/mechanism/action"
)

// Options say which cluster is wanted.
type Options struct {
	Dir              string // where clusters have their folders
	Name             string
	Tarballs         string // the folder with the server tarball and SHA256SUMS
	Nodes            int
	ControlPlaneOnly bool
	Wait             time.Duration      // for each thing that has to happen before the next; 0 is DefaultWait
	Events           func(action.Event) // is told what happens; not nil
}

// DefaultWait is long for what takes seconds on a machine that is not slow.
const DefaultWait = 2 * time.Minute

// ErrOther is the error for a cluster that is up already, and is not what was asked for.
var ErrOther = errors.New("is up already, from another release or with other nodes")

// Up makes a cluster, and returns when it is ready. What an Up that did not come to its end has left is removed first. If the
// cluster is there already, nothing is done. Whoever calls it sees to it that one Up or Down runs at a time in a folder.
//
// When it fails, what was made stays, to be looked at; Down removes it. The state is nil if nothing was made.
func Up(ctx context.Context, o Options) (*State, error) {
	if err := o.Require(); err != nil {
		return nil, err
	}
	sums, err := sumsOf(o.Tarballs)
	if err != nil {
		return nil, err
	}
	switch s, err := Load(o.Dir, o.Name); {
	case errors.Is(err, ErrNone):
	case err != nil:
		return nil, err
	case s.running():
		if s.Release != sums || s.ControlPlaneOnly != o.ControlPlaneOnly || !o.ControlPlaneOnly && len(s.Nodes()) != o.Nodes {
			return nil, fmt.Errorf("cluster %s %w", o.Name, ErrOther)
		}
		return s, nil
	}
	if err := verifyTarball(o.Tarballs); err != nil {
		return nil, err
	}
	if err := Down(ctx, o.Dir, o.Name); err != nil {
		return nil, err
	}
	s, err := newState(o.Dir, o.Name, sums, o.ControlPlaneOnly)
	if err != nil {
		return nil, err
	}
	s.patience = cmp.Or(o.Wait, DefaultWait)
	tarballs, err := filepath.Abs(o.Tarballs)
	if err == nil {
		err = s.change(func() { s.Tarballs = tarballs })
	}
	if err != nil {
		return s, err
	}
	plan := s.nodes
	if o.ControlPlaneOnly {
		plan = s.controlPlane
	}
	if err := take(ctx, plan(o), o.Events); err != nil {
		return s, err
	}
	return s, s.change(func() { s.Ready = true })
}

// Require says what keeps this machine, or this user, from having such a cluster. Up asks it first, too.
func (o Options) Require() error {
	if _, err := folder(o.Dir, o.Name); err != nil {
		return err
	}
	if !o.ControlPlaneOnly {
		return requireMachine()
	}
	if runtime.GOOS != "linux" {
		return errNotLinux
	}
	return nil
}

// unpackStep unpacks the release into r.
func (s *State) unpackStep(o Options, r **release) step {
	return step{name: "unpack", run: func(ctx context.Context) (err error) {
		if *r, err = unpackRelease(ctx, o.Tarballs, s.path("release"), o.ControlPlaneOnly); err != nil {
			return err
		}
		return s.change(func() { s.Version = (*r).version })
	}}
}
