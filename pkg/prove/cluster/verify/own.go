package verify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"slipway.build/pkg/mechanism/child"
)

// own is the group of the checks that a distribution adds.
const own = "own"

// skipped is the exit code of a program that cannot decide anything here, as in Automake's tests.
const skipped = 77

// Own returns the checks of a distribution: the programs in a folder, which may not exist, by their names without extensions. Documents
// there (.md) are none. The error names a file that cannot run.
//
// Each program gets the variables KUBECONFIG, NAMESPACE (of its own, removed afterwards) and PATH, which begins with the release's kubectl.
// It passes if it exits with 0, and is skipped with 77. What it prints explains the result.
func Own(dir string) ([]Check, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var checks []Check
	for _, entry := range entries {
		file := filepath.Join(dir, entry.Name())
		if path.Ext(file) == ".md" {
			continue
		}
		info, err := os.Stat(file)
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
			return nil, fmt.Errorf("%s is no program that can run: make it executable, or move it elsewhere", file)
		}
		if file, err = filepath.Abs(file); err != nil {
			return nil, err
		}
		name := strings.TrimSuffix(entry.Name(), filepath.Ext(entry.Name()))
		checks = append(checks, Check{Name: name, Skips: true, run: func(e *env) { e.runOwn(file) }})
	}
	return group(own, nil, checks...), nil
}

// runOwn runs a program of a distribution.
func (e *env) runOwn(file string) {
	var out bytes.Buffer
	c := exec.CommandContext(e.ctx, file)
	c.Dir, c.Stdout, c.Stderr, c.WaitDelay = filepath.Dir(file), &out, &out, time.Second
	c.Env = []string{"PATH=" + filepath.Dir(e.target.kubectl) + ":" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "LANG=C.UTF-8",
		"KUBECONFIG=" + e.Kubeconfig(), "NAMESPACE=" + e.namespace}
	child.Group(c) // it must not get the Ctrl-C that is meant for slipway
	err := child.Run(c, syscall.SIGKILL, nil)
	e.message = strings.TrimSpace(out.String())
	exit, ended := errors.AsType[*exec.ExitError](err)
	switch {
	case e.ctx.Err() != nil:
		err = context.Cause(e.ctx)
	case ended && exit.ExitCode() == skipped:
		noError(skip(e.message))
	}
	if err != nil {
		noError(fmt.Errorf("%s: %w: %s", filepath.Base(file), err, e.message))
	}
}
