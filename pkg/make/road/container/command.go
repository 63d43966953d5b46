package container

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/engine"
)

// A Command is a user's command to run in a build container.
type Command struct {
	Args     []string
	Env      []string // NAME=value, besides the environment of Go commands
	Streams  engine.Streams
	Terminal *engine.Terminal // nil if input and output are no terminal
}

// A CommandError reports a command that failed.
type CommandError struct{ Exit engine.Exit }

func (e *CommandError) Error() string { return e.Exit.Error() }

// Run runs a command in a container, at the top of its copy of the tree. What it writes into _output stays in the engine. The
// error is a *CommandError if the command itself failed. The road must be one for commands, see Road.Work.
func (r *Road) Run(ctx context.Context, cmd Command, rep action.Report) (err error) {
	var later errgroup.Group
	defer func() { err = errors.Join(err, later.Wait()) }()
	s, h, err := r.open(ctx, rep)
	if err != nil {
		return err
	}
	later.Go(h.remove)
	ctx, stop := s.engine.Watch(ctx)
	defer stop()
	// The container itself sleeps, and the command runs as an exec in it. So the end of the container's input means that this
	// process is gone, and the command has an input of its own.
	c, err := s.engine.Start(ctx, s.owner, engine.Spec{
		Role:       roleUser,
		Image:      s.image,
		Command:    []string{attended, "sleep", "infinity"},
		Env:        append(environment("", ownCache), cmd.Env...),
		Dir:        treeFolder,
		Volumes:    volumes(workVolume.at(treeFolder), outputVolume, modulesVolume.reading(), goVolume(s.image).reading(), cacheVolume),
		Scratch:    scratch,
		AutoRemove: true,
	}, engine.Streams{})
	if err != nil {
		return s.cause(ctx, err)
	}
	rep.SetWorker(fmt.Sprintf("container %s of %s", c.Name, s.image))
	defer later.Go(c.Remove)
	// Temporary files of builds do not fit into memory.
	temporary := cacheFolder + "/tmp/" + c.Name
	if _, err := c.Run(ctx, "mkdir", "-p", temporary); err != nil {
		return s.cause(ctx, err)
	}
	defer func() { _, _ = c.Run(ctx, "rm", "-rf", temporary) }()
	err = c.Do(ctx, append([]string{"env", "GOTMPDIR=" + temporary}, cmd.Args...), cmd.Streams, cmd.Terminal)
	var exit engine.Exit
	if errors.As(err, &exit) {
		return &CommandError{exit}
	}
	return s.cause(ctx, err)
}

// Fetch copies folders that commands made in _output into the tree's own _output.
func (r *Road) Fetch(ctx context.Context, folders []string, rep action.Report) (err error) {
	var later errgroup.Group
	defer func() { err = errors.Join(err, later.Wait()) }()
	s, h, err := r.open(ctx, rep)
	if err != nil {
		return err
	}
	ctx, stop := s.engine.Watch(ctx)
	defer stop()
	if h == nil {
		if h, err = s.host(ctx); err != nil {
			return s.cause(ctx, err)
		}
	}
	defer later.Go(h.remove)
	return s.cause(ctx, h.fetchFrom(ctx, rep, "output", "", folders, filepath.Join(r.Root, "_output"), ""))
}
