package conformance

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"slipway.build/pkg/mechanism/child"
)

// grace is how long an interrupted suite may take to end the running spec and to clean up after it.
const grace = time.Minute

// start runs a program to its end. When ctx ends, the program and its children are interrupted, as by Ctrl-C, and killed after a while. No
// child outlives the program.
func (r runner) start(ctx context.Context, output io.Writer, program string, args ...string) error {
	line := slices.Concat(r.suite.enter, []string{program}, args)
	c := exec.CommandContext(ctx, line[0], line[1:]...)
	c.Dir, c.Stdout, c.Stderr = r.dir, output, output
	child.Group(c)
	// The environment of this process may name a proxy, or other registries for the images.
	c.Env = []string{"PATH=" + filepath.Dir(r.kubectl) + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"HOME=" + r.suite.dir, "TMPDIR=" + r.suite.dir, "LANG=C.UTF-8"}
	c.Cancel = func() error { return child.SignalGroup(c, syscall.SIGINT) }
	c.WaitDelay = grace
	err := child.Run(c, syscall.SIGINT, nil)
	_ = child.SignalGroup(c, syscall.SIGKILL) // there may be none left
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("%s: %w: see %s", filepath.Base(program), err, r.log)
	}
	return nil
}

// cleanUp deletes the namespaces that specs have left, without waiting until they are gone.
func (r runner) cleanUp(ctx context.Context) error {
	if r.kubectl == "" {
		return nil
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	c := exec.CommandContext(limited, r.kubectl, "--kubeconfig="+r.kubeconfig, "--cache-dir="+filepath.Join(r.dir, "kubectl"),
		"delete", "namespaces", "--selector=e2e-run", "--wait=false", "--ignore-not-found")
	c.Env, c.WaitDelay = []string{"PATH=/usr/bin:/bin", "HOME=" + r.dir}, time.Second
	child.Group(c)
	var said bytes.Buffer
	c.Stdout, c.Stderr = &said, &said
	if err := child.Run(c, syscall.SIGKILL, nil); err != nil {
		return fmt.Errorf("namespaces of specs may remain: kubectl delete namespaces: %w: %s", err, said.String())
	}
	return nil
}
