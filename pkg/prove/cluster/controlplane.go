package cluster

import (
	"context"
	"errors"
	"fmt"

	"slipway.build/pkg/prove/cluster/controlplane"
	"slipway.build/pkg/prove/cluster/kubeadm"
	"slipway.build/pkg/prove/cluster/machine"
)

// controlPlane returns the steps to a control plane without nodes: programs on free ports of loopback.
func (s *State) controlPlane() []step {
	programs := map[string]controlplane.Program{}
	steps := []step{{"certificates", []string{"settings"}, func(context.Context) error {
		all, err := controlplane.Prepare(s.dir, s.Name, s.Kubeconfig(), kubeadm.ServiceNetwork)
		folder := s.path("settings")
		for _, p := range all {
			p.Flags = append(p.Flags, s.Settings.Flags(p.Name, folder)...)
			if _, ok := s.Settings.Documents[kubeadm.AuditKind]; ok && p.Name == apiServer {
				p.Flags = append(p.Flags, "--audit-log-path="+s.path("log", "audit.log"))
			}
			programs[p.Name] = p
		}
		return errors.Join(err, s.Settings.WriteFiles(folder, s.path("pki", "kube-scheduler.conf")))
	}}}
	for _, p := range []struct{ name, after string }{
		{"etcd", "certificates"}, {apiServer, "etcd"}, {"kube-controller-manager", apiServer}, {"kube-scheduler", apiServer},
	} {
		steps = append(steps, step{p.name, []string{p.after}, func(ctx context.Context) error {
			program, err := s.fileOf(p.name, s.current(p.name))
			if err != nil {
				return err
			}
			return s.startProgram(ctx, program, Process{Name: p.name, Address: programs[p.name].Address, Flags: programs[p.name].Flags})
		}})
	}
	return steps
}

// startProgram starts a program of a control plane without nodes, and waits until it is ready. It does not wait for etcd, for which the
// API server waits.
func (s *State) startProgram(ctx context.Context, program string, p Process) error {
	if err := s.start(p, 0, s.dir, append([]string{program}, p.Flags...)...); err != nil || p.Name == "etcd" {
		return err
	}
	args := []string{"get", "--raw=" + readyPath(p.Name)}
	if p.Name != apiServer {
		args = append(args, "--server="+p.Address, "--insecure-skip-tls-verify") // the program made its certificate itself
	}
	p, _ = s.process(p.Name)
	err := s.retry(ctx, shortPause, func(ctx context.Context) error {
		_, err := s.kubectl(ctx, args...)
		if ended := s.checkProcess(p); err != nil && ended != nil {
			return machine.Stop(ended)
		}
		return err
	})
	if err != nil && ctx.Err() == nil && p.Alive() {
		return fmt.Errorf("%w; see %s", err, s.log(p.Name))
	}
	return err
}

// readyPath is where a program of a control plane says whether it is ready.
func readyPath(name string) string {
	if name == "kube-controller-manager" {
		return "/healthz" // it has no other
	}
	return "/readyz"
}
