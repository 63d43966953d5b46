package conformance

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"slipway.build/pkg/mechanism/child"
)

// grace is how long a suite that was interrupted has to end the spec that runs, and to remove what that has made.
const grace = time.Minute

// start runs a program to its end, and says in the log what it says. When ctx ends, it and all that it started are interrupted, as by
// Ctrl-C, and killed after a while. Nothing of them outlives it.
func (r runner) start(ctx context.Context, log *os.File, program string, args ...string) error {
	c := exec.CommandContext(ctx, program, args...)
	c.Dir, c.Stdout, c.Stderr = r.dir, log, log
	child.Group(c)
	// Nothing of this process's environment, which may have a proxy, or other registries for the images.
	c.Env = []string{"PATH=" + filepath.Dir(r.kubectl) + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"HOME=" + r.dir, "TMPDIR=" + r.dir, "LANG=C.UTF-8"}
	c.Cancel = func() error { return child.SignalGroup(c, syscall.SIGINT) }
	c.WaitDelay = grace
	if err := c.Start(); err != nil {
		return err
	}
	err := c.Wait()
	_ = child.SignalGroup(c, syscall.SIGKILL) // there may be none left
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("%s: %w: see %s", filepath.Base(program), err, log.Name())
	}
	return nil
}

// cleanUp removes the namespaces that specs have made and not removed, without waiting until they are gone.
func (r runner) cleanUp(ctx context.Context) error {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	c := exec.CommandContext(limited, r.kubectl, "--kubeconfig="+r.kubeconfig, "--cache-dir="+filepath.Join(r.dir, "kubectl"),
		"delete", "namespaces", "--selector=e2e-run", "--wait=false", "--ignore-not-found")
	c.Env, c.WaitDelay = []string{"PATH=/usr/bin:/bin", "HOME=" + r.dir}, time.Second
	child.Group(c)
	if said, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("namespaces of specs may be left: kubectl delete namespaces: %w: %s", err, said)
	}
	return nil
}
