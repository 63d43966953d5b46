package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/mechanism/suggest"
	"slipway.build/pkg/mechanism/tail"
	"slipway.build/pkg/prove/cluster/logs"
	"slipway.build/pkg/prove/cluster/machine"
)

// ReplaceOptions say which programs of a cluster to replace, and by what.
type ReplaceOptions struct {
	Components []string
	Dir        string             // the folder with the programs
	Back       bool               // instead, go back to the programs that the cluster was made with
	Wait       time.Duration      // for each component to become ready; zero means DefaultWait
	Events     func(action.Event) // receives what happens; not nil
}

// ErrReplaced says that a cluster does not run a release's programs alone.
var ErrReplaced = errors.New("runs programs that are not of its release")

// components returns the names of the programs of a cluster that can be replaced while the cluster runs.
func (s *State) components() []string {
	if s.ControlPlaneOnly {
		return staticPods
	}
	return slices.Concat([]string{"kubelet", "containerd"}, staticPods, slices.Sorted(maps.Keys(workloads)))
}

// install has the cluster run a program in the place of a component, or the release's program if it is nil. It returns when that is ready.
func (s *State) install(ctx context.Context, component string, p *Program) error {
	switch {
	case s.ControlPlaneOnly:
		return s.installProcess(ctx, component, p)
	case slices.Contains(staticPods, component):
		return s.installStaticPod(ctx, component, p)
	case workloads[component] != "":
		return s.installWorkload(ctx, component, p)
	}
	return s.installNodeProgram(ctx, component, p)
}

// Replace replaces programs of a cluster that runs, one after the other, on all nodes. If one does not become ready in time, it puts the
// earlier one back, and the error has the last lines of the new one's log. The caller makes sure that nothing else changes the cluster.
func (s *State) Replace(ctx context.Context, o ReplaceOptions) error {
	var chosen []string
	for _, name := range o.Components {
		switch {
		case name == "etcd":
			return badrequest.Mark(errors.New(
				"etcd cannot be replaced: another version may write data that the first one cannot read, so there would be no way back"))
		case !slices.Contains(s.components(), name):
			return suggest.Unknown("component", name, s.components())
		case !slices.Contains(chosen, name):
			chosen = append(chosen, name)
		}
	}
	switch {
	case s.RuntimeOnly:
		return s.RequireNodes()
	case !s.Ready || s.Boot != machine.BootID():
		return s.wrap(ErrUnfinished)
	case s.Upgrade != nil:
		return fmt.Errorf("%w, %s", s.wrap(ErrUpgrading), s.Upgrade.Version)
	case !s.ControlPlaneOnly:
		if err := requireMachine(); err != nil {
			return err
		}
		if err := s.checkAlive(); err != nil {
			return err
		}
	}
	s.patience = cmp.Or(o.Wait, DefaultWait)
	var steps []step
	for _, name := range chosen {
		steps = append(steps, step{name, nil, func(ctx context.Context) error {
			next := s.original(name)
			if !o.Back {
				p, err := s.store(ctx, o.Dir, name)
				if err != nil {
					return err
				}
				next = &p
			}
			return s.replace(ctx, name, next)
		}})
	}
	return errors.Join(runSteps(ctx, inOrder(steps), o.Events), s.sweepPrograms())
}

// replace makes a cluster run a program, or that of its release if it is nil.
func (s *State) replace(ctx context.Context, component string, next *Program) error {
	before := s.current(component)
	if same(before, next) && !slices.Contains(s.Unsettled, component) {
		return nil
	}
	if err := s.change(func() { s.Unsettled = append(withoutName(s.Unsettled, component), component) }); err != nil {
		return err
	}
	if next != nil {
		next.Since = time.Now().Round(time.Second)
	}
	if err := s.install(ctx, component, next); err != nil {
		return s.restore(ctx, component, before, err)
	}
	return s.change(func() {
		s.Unsettled = withoutName(s.Unsettled, component)
		s.Replaced = without(s.Replaced, component)
		if next != nil && !same(find(s.Programs, component), next) {
			s.Replaced = append(s.Replaced, *next)
		}
	})
}

// restore puts the earlier program back, and returns the error of the one that failed with the last lines of its log.
func (s *State) restore(ctx context.Context, component string, before *Program, failed error) error {
	if ctx.Err() == nil && !s.ControlPlaneOnly { // there, the error has the lines
		var lines tail.Lines
		_ = s.Logs(ctx, component, LogOptions{Options: logs.Options{Last: 10}}, func(from, line string) error { // it may have none
			_, err := fmt.Fprintln(&lines, strings.TrimSpace(from+" "+line))
			return err
		})
		failed = lines.Explain(failed)
	}
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*s.patience)
	defer cancel()
	if err := s.install(limit, component, before); err != nil {
		return fmt.Errorf("%w\nthe earlier one could not be put back: %w", failed, err)
	}
	if err := s.change(func() { s.Unsettled = withoutName(s.Unsettled, component) }); err != nil {
		return err
	}
	return fmt.Errorf("the earlier one was put back: %w", failed)
}
