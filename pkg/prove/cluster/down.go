package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"slipway.build/pkg/prove/cluster/machine"
)

// Down removes a cluster and everything that was made for it. Without a cluster it does nothing. It can be repeated after any failure.
func Down(ctx context.Context, dir, name string) error {
	s, err := Load(dir, name)
	if errors.Is(err, ErrNone) {
		// The folder may exist without a state, which is written later and removed earlier.
		where, err := folder(dir, name)
		if err != nil {
			return err
		}
		return os.RemoveAll(where)
	}
	if err != nil {
		return err
	}
	if !s.ControlPlaneOnly && os.Geteuid() != 0 {
		return fmt.Errorf("remove cluster %s: %w", name, ErrNotRoot)
	}
	limit, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := s.change(func() { s.Ready = false }); err != nil {
		return err
	}
	if err := s.endProcesses(limit); err != nil {
		return err
	}
	if !s.ControlPlaneOnly && s.Boot == machine.BootID() {
		if err := s.disconnect(limit); err != nil {
			return err
		}
		groups, err := machine.FindCgroups()
		if err != nil {
			return err
		}
		if err := groups.Remove(limit, s.clusterCgroup()); err != nil {
			return err
		}
		if err := groups.Revoke(s.Controllers); err != nil {
			return err
		}
	}
	return s.removeFolder()
}

// removeFolder removes the folder of a cluster. The state goes last, as it says what else there is.
func (s *State) removeFolder() error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == stateFile {
			continue
		}
		if err := os.RemoveAll(s.path(e.Name())); err != nil {
			return err
		}
	}
	return os.RemoveAll(s.dir)
}
