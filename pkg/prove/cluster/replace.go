package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"slipway.build/pkg/mechanism/action"
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

// A component is a program of a cluster that can be replaced while the cluster runs.
type component struct {
	name string
	put  func(s *State, ctx context.Context, name string, p *Program) error // returns when p runs, or the release's program if it is nil
}

// components are those of a cluster with nodes.
var components = []component{
	{"kubelet", (*State).putNodeProgram},
	{"containerd", (*State).putNodeProgram},
	{apiServer, (*State).putStaticPod},
	{"kube-controller-manager", (*State).putStaticPod},
	{"kube-scheduler", (*State).putStaticPod},
	{"kube-proxy", (*State).putWorkload},
	{"coredns", (*State).putWorkload},
	{"metrics-server", (*State).putWorkload},
	{"cloud-controller-manager", (*State).putWorkload},
	{"traefik", (*State).putWorkload},
}

// processes are the components of a control plane without nodes.
var processes = []component{
	{apiServer, (*State).putProcess},
	{"kube-controller-manager", (*State).putProcess},
	{"kube-scheduler", (*State).putProcess},
}

// ErrReplaced says that a cluster does not run a release's programs alone.
var ErrReplaced = errors.New("runs programs that are not of its release")

// Replaceable returns the names of the components that can be replaced.
func (s *State) Replaceable() []string {
	var names []string
	for _, c := range s.components() {
		names = append(names, c.name)
	}
	return names
}

func (s *State) components() []component {
	if s.ControlPlaneOnly {
		return processes
	}
	return components
}

// A NotReplaceableError is a component that cannot be replaced.
type NotReplaceableError struct {
	Name   string
	Reason string // may be empty
	Known  []string
}

func (e NotReplaceableError) Error() string {
	if e.Reason != "" {
		return fmt.Sprintf("%s cannot be replaced: %s", e.Name, e.Reason)
	}
	return fmt.Sprintf("unknown component %q%s; those that can be replaced are %s",
		e.Name, suggest.DidYouMean(suggest.Near(e.Name, e.Known)), suggest.Enumerate(e.Known, "and"))
}

// BadRequest marks the error as the request's fault.
func (NotReplaceableError) BadRequest() {}

// component returns a component by its name.
func (s *State) component(name string) (component, error) {
	all := s.components()
	if i := slices.IndexFunc(all, func(c component) bool { return c.name == name }); i >= 0 {
		return all[i], nil
	}
	e := NotReplaceableError{Name: name, Known: s.Replaceable()}
	if name == "etcd" {
		e.Reason = "another version may write data that the first one cannot read, so there would be no way back"
	}
	return component{}, e
}

// Replace replaces programs of a cluster that runs, one after the other, on all nodes. If one does not become ready in time, it puts the
// earlier one back, and the error has the last lines of the new one's log. The caller makes sure that nothing else changes the cluster.
func (s *State) Replace(ctx context.Context, o ReplaceOptions) error {
	var chosen []component
	for _, name := range o.Components {
		c, err := s.component(name)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(chosen, func(other component) bool { return other.name == name }) {
			chosen = append(chosen, c)
		}
	}
	switch {
	case s.RuntimeOnly:
		return s.RequireNodes()
	case !s.Ready || s.Boot != machine.BootID():
		return s.because(ErrUnfinished)
	case s.Upgrade != nil:
		return fmt.Errorf("%w, %s", s.because(ErrUpgrading), s.Upgrade.Version)
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
	for _, c := range chosen {
		steps = append(steps, step{c.name, nil, func(ctx context.Context) error {
			next := s.first(c.name)
			if !o.Back {
				p, err := s.store(ctx, o.Dir, c.name)
				if err != nil {
					return err
				}
				next = &p
			}
			return s.replace(ctx, c, next)
		}})
	}
	return errors.Join(take(ctx, inOrder(steps), o.Events), s.sweepPrograms())
}

// replace makes a cluster run a program, or that of its release if it is nil.
func (s *State) replace(ctx context.Context, c component, next *Program) error {
	before := s.current(c.name)
	if same(before, next) && !slices.Contains(s.Unsettled, c.name) {
		return nil
	}
	if err := s.change(func() { s.Unsettled = append(removed(s.Unsettled, c.name), c.name) }); err != nil {
		return err
	}
	if next != nil {
		next.Since = time.Now().Round(time.Second)
	}
	if err := c.put(s, ctx, c.name, next); err != nil {
		return s.restore(ctx, c, before, err)
	}
	return s.change(func() {
		s.Unsettled = removed(s.Unsettled, c.name)
		s.Replaced = without(s.Replaced, c.name)
		if next != nil && !same(find(s.Programs, c.name), next) {
			s.Replaced = append(s.Replaced, *next)
		}
	})
}

// restore puts the earlier program back, and returns the error of the one that failed with the last lines of its log.
func (s *State) restore(ctx context.Context, c component, before *Program, failed error) error {
	if ctx.Err() == nil && !s.ControlPlaneOnly { // there, the error has the lines
		var said tail.Lines
		_ = s.Logs(ctx, c.name, LogOptions{Options: logs.Options{Last: 10}}, func(from, line string) error { // it may have none
			_, err := fmt.Fprintln(&said, strings.TrimSpace(from+" "+line))
			return err
		})
		failed = said.Explain(failed)
	}
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*s.patience)
	defer cancel()
	if err := c.put(s, limit, c.name, before); err != nil {
		return fmt.Errorf("%w\nthe earlier one could not be put back: %w", failed, err)
	}
	if err := s.change(func() { s.Unsettled = removed(s.Unsettled, c.name) }); err != nil {
		return err
	}
	return fmt.Errorf("the earlier one was put back: %w", failed)
}

// same reports whether two programs are the same, or both the release's.
func same(a, b *Program) bool {
	return a == nil && b == nil || a != nil && b != nil && a.SHA256 == b.SHA256
}

// removed returns names without one of them.
func removed(names []string, name string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(other string) bool { return other == name })
}
