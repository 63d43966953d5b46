// Package reapi runs a server of the Remote Execution API on loopback, for tests and measurements. It is Debian's buildbox-casd, which
// is a cache and executes actions, in a root of Debian packages.
package reapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"slipway.build/pkg/mechanism/debian"
)

// A Server is buildbox-casd, with a proxy that makes it usable for Bazel.
type Server struct {
	Address string // HOST:PORT of loopback, also after a restart
	Direct  string // without the proxy

	root  string
	cmd   *exec.Cmd
	front *http.Server
	delay atomic.Int64 // nanoseconds
}

// Start starts a server whose root is dir. If dir does not exist, it is made with mmdebstrap, as root, in a minute. The server's data
// is in it, too.
func Start(ctx context.Context, dir string) (*Server, error) {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		if err := makeRoot(ctx, dir); err != nil {
			return nil, fmt.Errorf("root with buildbox-casd: %w", err)
		}
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	s := &Server{root: dir, Direct: "127.0.0.1:" + port}
	if err := s.Restart(ctx); err != nil {
		return nil, err
	}
	s.Address, s.front, err = startFront(s.Direct, &s.delay)
	if err != nil {
		s.Kill()
	}
	return s, err
}

func makeRoot(ctx context.Context, dir string) error {
	system := debian.System{
		Mirror:   os.Getenv("SLIPWAY_DEBIAN_MIRROR"),
		Suite:    "forky",
		Packages: []string{"buildbox", "gcc", "libc6-dev"},
		Options:  []string{`--aptopt=APT::Install-Recommends "false"`, "--customize-hook=" + debian.Cleanse},
		Progress: func(string) {},
	}
	tmp := dir + ".tmp"
	if err := os.MkdirAll(tmp, 0o755); err != nil {
		return err
	}
	defer os.RemoveAll(tmp) // renamed already if all went well
	err := system.Pack(ctx, func(tar io.Reader) error {
		cmd := exec.CommandContext(ctx, "tar", "-x", "-p", "--numeric-owner", "-C", tmp, "--exclude=./dev/*")
		cmd.Stdin, cmd.Stderr = tar, os.Stderr
		return cmd.Run()
	})
	if err != nil {
		return err
	}
	return os.Rename(tmp, dir)
}

// inside runs in its own namespaces, which end with it.
const inside = `set -e
mount --rbind /dev "$1/dev"
mount -t proc proc "$1/proc"
mkdir -p "$1/cas"
exec chroot "$1" buildbox-casd --bind="$2" --quota-high=60G --jobs=2 --buildbox-run=/usr/bin/buildbox-run-hosttools /cas`

// Restart starts buildbox-casd again after Kill, at the same address and with the same data.
func (s *Server) Restart(ctx context.Context) error {
	log, err := os.OpenFile(filepath.Join(s.root, "casd.log"), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o666)
	if err != nil {
		return err
	}
	defer log.Close()
	s.cmd = exec.Command("unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", inside, "sh", s.root, s.Direct)
	// Its workers hand their environment on to actions, which must have nothing of this machine's, such as GOFLAGS.
	s.cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"}
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := s.cmd.Start(); err != nil {
		return err
	}
	deadline := time.Now().Add(30 * time.Second)
	for ; ctx.Err() == nil && time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if c, err := net.Dial("tcp", s.Direct); err == nil {
			return c.Close()
		}
	}
	s.Kill()
	return fmt.Errorf("buildbox-casd does not start:\n%s", s.Log())
}

// Kill ends buildbox-casd at once, as if its machine had failed.
func (s *Server) Kill() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait() // it was killed
	s.cmd = nil
}

// Delay makes each request wait, from now on.
func (s *Server) Delay(d time.Duration) { s.delay.Store(int64(d)) }

// Stop ends the server and its proxy.
func (s *Server) Stop() {
	s.Kill()
	if s.front != nil {
		_ = s.front.Close()
	}
}

// Log returns the output of buildbox-casd since its last start.
func (s *Server) Log() string {
	data, _ := os.ReadFile(filepath.Join(s.root, "casd.log"))
	return string(data)
}

// Lose removes the contents with these SHA-256 sums from the cache, and returns how many it had.
func (s *Server) Lose(sums ...string) (int, error) {
	files, err := s.Files(sums...)
	if err != nil {
		return 0, err
	}
	lost := 0
	for _, names := range files {
		for _, name := range names {
			if err := os.Remove(name); err != nil {
				return lost, err
			}
			lost++
		}
	}
	return lost, nil
}

// Files returns the files in which the cache has contents, by those of these SHA-256 sums that it has.
func (s *Server) Files(sums ...string) (map[string][]string, error) {
	files := map[string][]string{}
	err := filepath.WalkDir(filepath.Join(s.root, "cas"), func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		// Objects are files named by their digests. The first two digits may be the folder's name.
		digest := filepath.Base(filepath.Dir(name)) + d.Name()
		for _, sum := range sums {
			if strings.Contains(digest, sum) {
				files[sum] = append(files[sum], name)
			}
		}
		return nil
	})
	return files, err
}

func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}
