package clusters

import (
	"context"
	"errors"
	"fmt"
	"time"

	"slipway.build/pkg/prove/cluster"
)

// foreground stays until Ctrl-C, and then removes the cluster, or until another command has removed it.
func (o commands) foreground(ctx context.Context, name string) error {
	first, err := o.cluster(name)
	if err != nil {
		return err
	}
	if !o.JSON {
		fmt.Fprintf(o.Out, "\nCtrl-C removes it, too. Until then, in another terminal:\n\n  %s\n  %s\n  %s\n  %s\n",
			commandFor("kubectl", name)+" get pods --all-namespaces", commandFor("logs kube-scheduler --follow", name),
			commandFor("replace kube-scheduler", name), commandFor("status", name))
	}
	said := false
	for {
		select {
		case <-ctx.Done():
			return o.leave(ctx, name)
		case <-time.After(time.Second):
		}
		s, err := o.cluster(name)
		if errors.Is(err, cluster.ErrNone) || err == nil && !s.Made.Equal(first.Made) {
			o.Say("cluster " + name + " was removed by another command")
			return nil
		}
		if err != nil {
			return err
		}
		ended := s.Ended()
		if ended != nil && !said {
			o.Say(ended.Error())
		}
		said = ended != nil
	}
}

// leave removes the cluster that this command has made.
func (o commands) leave(ctx context.Context, name string) error {
	o.Say("removing cluster " + name)
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Minute) // another command may be at work
	defer cancel()
	return o.withClusters(limit, o.SayWaiting, func(dir string) error {
		if err := cluster.Down(limit, dir, name); err != nil {
			return clusterError(err)
		}
		o.Say("nothing of cluster " + name + " is left")
		return nil
	})
}
