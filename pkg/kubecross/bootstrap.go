package kubecross

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/docker/docker/api/types/image"

	"slipway.build/pkg/catalog"
)

// cleanse takes out of the base what mmdebstrap copied from this machine: where packages come from, how they are reached, and
// the machine's own name and name servers.
const cleanse = `cd "$1/etc" && rm -f apt/sources.list apt/sources.list.d/* apt/apt.conf.d/99mmdebstrap && : >hostname && : >resolv.conf`

// bootstrap makes a base that has all packages, and gives it to the engine while it is being packed.
func (b builder) bootstrap(ctx context.Context, i Image, settings string, names []string, ref, sum string) error {
	if here := catalog.Host(); here != b.engine.Platform {
		return fmt.Errorf("the engine runs %s and this machine %s: have the engine pull %s, or name another image by KUBE_CROSS_BASE",
			b.engine.Platform, here, published)
	}
	debian, err := findDebian(i.Mirror, "/")
	if err != nil {
		return err
	}
	program, err := exec.LookPath("mmdebstrap")
	if err != nil {
		return errors.New("mmdebstrap is not on PATH: install the package mmdebstrap, or name an image by KUBE_CROSS_BASE")
	}
	output := &lines{each: func(line string) {
		if text, ok := strings.CutPrefix(line, "I: "); ok && strings.HasSuffix(text, "...") { // its steps
			b.progress("base: " + strings.TrimSuffix(text, "..."))
		}
	}}
	args := []string{
		"--variant=essential", "--format=tar", "--include=" + strings.Join(names, ","),
		"--aptopt=Acquire::Check-Valid-Until \"false\"",
		"--dpkgopt=force-unsafe-io", // the folder is packed and removed: it need not outlast a power cut
	}
	for line := range strings.Lines(settings) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			args = append(args, "--dpkgopt="+line)
		}
	}
	// The Dockerfile has the settings as a file, for bases that were not made here.
	args = append(args, "--customize-hook="+cleanse+" && rm -f dpkg/dpkg.cfg.d/99mmdebstrap", debian.suite, "-", "-")

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := exec.CommandContext(ctx, program, args...)
	c.Env = append(os.Environ(), "LC_ALL=C")
	c.Env = append(c.Env, debian.proxies...)
	c.Stdin = strings.NewReader(debian.sources)
	c.Stderr = output
	ownGroup(c)
	c.Cancel = func() error { return endGroup(c) } // it removes what it has unpacked, once those it waits for have ended
	c.WaitDelay = 30 * time.Second
	stdout, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	tar := &commandOutput{Reader: stdout, wait: sync.OnceValue(func() error {
		err := c.Wait()
		if err != nil {
			killGroup(c)
		}
		return err
	})}
	err = b.importBase(ctx, tar, ref, sum)
	failure := tar.failure.Load()
	cancel()
	_ = tar.wait() // it was ended where the engine did not want all of it
	if failure != nil {
		return output.explain(fmt.Errorf("mmdebstrap: %w", *failure))
	}
	return err
}

// A commandOutput ends as the command does: with its error, if it failed, so that nobody takes half of it for all.
type commandOutput struct {
	io.Reader
	wait    func() error
	failure atomic.Pointer[error]
}

func (o *commandOutput) Read(p []byte) (int, error) {
	n, err := o.Reader.Read(p)
	if !errors.Is(err, io.EOF) {
		return n, err
	}
	if err := o.wait(); err != nil {
		o.failure.Store(&err)
		return n, err
	}
	return n, io.EOF
}

func (b builder) importBase(ctx context.Context, tar io.Reader, ref, sum string) error {
	body, err := b.engine.Client.ImageImport(ctx, image.ImportSource{Source: tar, SourceName: "-"}, ref, image.ImportOptions{
		Message:  "Debian packages for " + Repository,
		Changes:  []string{"LABEL " + baseLabel + "=" + sum},
		Platform: b.engine.Platform.String(),
	})
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	return read(body, func(message) {})
}
