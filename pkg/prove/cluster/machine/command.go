package machine

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"slipway.build/pkg/mechanism/child"
	"slipway.build/pkg/mechanism/tail"
)

// Path is where the system's programs are looked for.
const Path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// environment is that of all commands. It has nothing of this process's environment: kubeadm, for example, would write a proxy into its
// manifests.
var environment = []string{"PATH=" + Path, "HOME=/root", "LANG=C.UTF-8"}

// Output runs a command and returns its output. The error has the last lines that it wrote. The command does not outlive this process:
// a kubectl that waits would, long after its cluster was removed.
func Output(ctx context.Context, stdin string, command ...string) (string, error) {
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	c.Env, c.Stdin, c.WaitDelay = environment, strings.NewReader(stdin), time.Second
	c.SysProcAttr = detached(0) // ctx ends it, and not Ctrl-C a moment before
	var out bytes.Buffer
	var errs tail.Lines
	c.Stdout, c.Stderr = &out, &errs
	if err := child.Run(c, syscall.SIGKILL, nil); err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return out.String(), errs.Explain(fmt.Errorf("%s: %w", filepath.Base(command[0]), err))
	}
	return out.String(), nil
}

// waitForGo is a script that waits until its process is recorded, and ends if the process that started it dies before.
const waitForGo = `read -r go && exec "$@" </dev/null`

// Start starts a command that outlives this process, in new namespaces and with its output in a file. The command does nothing before
// record has returned without an error.
func Start(dir, log string, namespaces uintptr, record func(Process) error, command ...string) error {
	if err := os.MkdirAll(filepath.Dir(log), 0o755); err != nil {
		return err
	}
	out, err := os.Create(log)
	if err != nil {
		return err
	}
	defer out.Close()
	c := exec.Command("/bin/sh", append([]string{"-c", waitForGo, "sh"}, command...)...)
	c.Dir, c.Env, c.Stdout, c.Stderr, c.SysProcAttr = dir, environment, out, out, detached(namespaces)
	stdin, err := c.StdinPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	go func() { _ = c.Wait() }() // it must not remain as a zombie while this process lives
	defer stdin.Close()
	p := Process{PID: c.Process.Pid}
	if p.Start, err = startTime(p.PID); err != nil {
		return err
	}
	if err := record(p); err != nil {
		return err
	}
	_, err = stdin.Write([]byte("go\n"))
	return err
}

// Retry calls try again after each pause, until it returns no error, or one that [Stop] has marked. When the time of ctx is over, the error
// is the cause that it has for this case, with the last error of try.
func Retry(ctx context.Context, pause time.Duration, try func() error) error {
	var last error
	for {
		err := try()
		if stop := new(stopError); err == nil || errors.As(err, stop) {
			return stop.error
		}
		if ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return ctx.Err()
			}
			return fmt.Errorf("%w: %w", context.Cause(ctx), cmp.Or(last, err))
		case <-time.After(pause):
		}
	}
}

// Stop marks an error after which [Retry] does not try again.
func Stop(err error) error { return stopError{err} }

type stopError struct{ error }
