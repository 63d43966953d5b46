package container

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"slipway.build/pkg/build/road"
	"slipway.build/pkg/mechanism/engine"
)

// A Command is one of somebody's own, to be run in a build container.
type Command struct {
	Args     []string
	Env      []string // NAME=value, besides that of Go commands
	Streams  engine.Streams
	Terminal *engine.Terminal // nil: input and output are none
}

// A CommandError is how a command ended otherwise than with success.
type CommandError struct{ Exit engine.Exit }

func (e *CommandError) Error() string { return e.Exit.Error() }

// Run runs a command in a container that has the tree, at its top. What it writes into _output stays in the engine. The error
// is a *CommandError if it is the command's own. The road has to be one for commands, see Road.Work.
func (r *Road) Run(ctx context.Context, cmd Command, rep road.Report) (err error) {
	var later chores
	defer func() { err = errors.Join(err, later.wait()) }()
	s, h, err := r.open(ctx, rep)
	if err != nil {
		return err
	}
	later.do(h.remove)
	ctx, stop := s.engine.Watch(ctx)
	defer stop()
	// The container idles, and the command runs beside: so the container's own input can tell it that we are gone, and the
	// command has one for itself.
	c, err := s.engine.Start(ctx, s.owner, engine.Spec{
		Role:    roleUser,
		Image:   s.image,
		Command: []string{attended, "sleep", "infinity"},
		Env:     append(environment(""), cmd.Env...),
		Dir:     treeFolder,
		Volumes: volumes(workVolume.at(treeFolder), outputVolume, modulesVolume.reading(), goVolume(s.image).reading(), cacheVolume),
		Scratch: scratch,
		Passing: true,
	}, engine.Streams{})
	if err != nil {
		return s.said(ctx, err)
	}
	rep.By(fmt.Sprintf("container %s of %s", c.Name, s.image))
	defer later.do(c.Remove)
	// What a build is made of does not fit into memory. It goes with the container, or with `make clean`.
	temporary := cacheFolder + "/tmp/" + c.Name
	if _, err := c.Run(ctx, "mkdir", "-p", temporary); err != nil {
		return s.said(ctx, err)
	}
	defer func() { _, _ = c.Run(ctx, "rm", "-rf", temporary) }()
	err = c.Do(ctx, append([]string{"env", "GOTMPDIR=" + temporary}, cmd.Args...), cmd.Streams, cmd.Terminal)
	var exit engine.Exit
	if errors.As(err, &exit) {
		return &CommandError{exit}
	}
	return s.said(ctx, err)
}

// Fetch gets folders of what commands have made in _output into the tree's own.
func (r *Road) Fetch(ctx context.Context, folders []string, rep road.Report) (err error) {
	var later chores
	defer func() { err = errors.Join(err, later.wait()) }()
	s, h, err := r.open(ctx, rep)
	if err != nil {
		return err
	}
	ctx, stop := s.engine.Watch(ctx)
	defer stop()
	if h == nil {
		if h, err = s.host(ctx); err != nil {
			return s.said(ctx, err)
		}
	}
	defer later.do(h.remove)
	return s.said(ctx, h.fetchFrom(ctx, rep, "output", "", folders, filepath.Join(r.Root, "_output"), ""))
}
