// Package registry runs Debian's docker-registry, for tests and measurements: a registry that many people have, of another make than the
// one that a release has.
//
// What must never be in here: what is pushed to it.
package registry

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// Program is what must be installed, and the name of its package.
const Program = "docker-registry"

// A Registry is a process that keeps images in a folder.
type Registry struct {
	At string // its address on loopback, HOST:PORT

	dir string
	cmd *exec.Cmd
}

// Start starts an empty one, and returns when it answers. It ends with the context, at the latest.
func Start(ctx context.Context, dir string) (*Registry, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &Registry{At: l.Addr().String(), dir: dir}
	if err := errors.Join(l.Close(), os.MkdirAll(dir, 0o777)); err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "config.yml")
	text := fmt.Sprintf("version: 0.1\nlog: {level: error}\nstorage: {filesystem: {rootdirectory: %s}}\nhttp: {addr: %s}\n", dir, r.At)
	if err := os.WriteFile(config, []byte(text), 0o666); err != nil {
		return nil, err
	}
	r.cmd = exec.CommandContext(ctx, Program, "serve", config)
	if err := r.cmd.Start(); err != nil {
		return nil, err
	}
	for range 200 {
		if answer, err := http.Get("http://" + r.At + "/v2/"); err == nil {
			return r, answer.Body.Close()
		}
		time.Sleep(50 * time.Millisecond)
	}
	return nil, errors.Join(fmt.Errorf("%s on %s does not answer", Program, r.At), r.Stop())
}

// Stop ends it, and removes what it has. A registry that is nil has ended.
func (r *Registry) Stop() error {
	if r == nil {
		return nil
	}
	err := r.cmd.Process.Signal(syscall.SIGTERM)
	_ = r.cmd.Wait() // by the signal
	return errors.Join(err, os.RemoveAll(r.dir))
}
