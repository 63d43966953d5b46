package debian

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"slipway.build/pkg/mechanism/child"
	"slipway.build/pkg/mechanism/tail"
)

// A System describes a root file system.
type System struct {
	Mirror   string   // SLIPWAY_DEBIAN_MIRROR: where packages come from; "" is the mirror of this machine's apt
	Suite    string   // "" is the machine's own, or bookworm from a mirror
	Packages []string // besides Debian's essential ones and their dependencies
	Options  []string // for mmdebstrap: settings of dpkg, hooks
	Progress func(string)
}

const program = "mmdebstrap"

// Ready returns the error with which Pack would fail on this machine for want of mmdebstrap or of a mirror.
func (s System) Ready() error {
	if _, err := findArchive(s.Mirror, s.Suite, "/"); err != nil {
		return err
	}
	if _, err := exec.LookPath(program); err != nil {
		return ErrProgram
	}
	return nil
}

// ErrProgram says that this machine has no mmdebstrap.
var ErrProgram = errors.New("mmdebstrap is not on PATH: install the package mmdebstrap")

// Cleanse is a customize hook that removes what mmdebstrap copied from this machine: where packages come from, how they are
// reached, and the machine's own name and name servers.
const Cleanse = `cd "$1/etc" && rm -f apt/sources.list apt/sources.list.d/* apt/apt.conf.d/99mmdebstrap && : >hostname && : >resolv.conf`

// Pack makes the system for this machine's architecture, and passes its tar to take while it is made. If mmdebstrap fails,
// the tar ends in an error, so that half of it is not mistaken for all of it.
func (s System) Pack(ctx context.Context, take func(tar io.Reader) error) error {
	a, err := findArchive(s.Mirror, s.Suite, "/")
	if err != nil {
		return err
	}
	program, err := exec.LookPath(program)
	if err != nil {
		return ErrProgram
	}
	output := &tail.Lines{Each: func(line string) {
		if text, ok := strings.CutPrefix(line, "I: "); ok && strings.HasSuffix(text, "...") && s.Progress != nil { // its steps
			s.Progress(strings.TrimSuffix(text, "..."))
		}
	}}
	args := []string{
		"--variant=essential", "--format=tar", "--include=" + strings.Join(s.Packages, ","),
		"--aptopt=Acquire::Check-Valid-Until \"false\"",
		"--dpkgopt=force-unsafe-io", // the folder is packed and removed: a power cut may destroy it
	}
	args = append(append(args, s.Options...), a.suite, "-", "-")

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := exec.CommandContext(ctx, program, args...)
	c.Env = append(os.Environ(), "LC_ALL=C")
	c.Env = append(c.Env, a.proxies...)
	c.Stdin = strings.NewReader(a.sources)
	c.Stderr = output
	child.Group(c)
	c.Cancel = func() error { return child.SignalGroup(c, syscall.SIGTERM) } // it removes what it has unpacked, once its children have ended
	c.WaitDelay = 30 * time.Second
	reader, writer := io.Pipe()
	c.Stdout = writer
	var failure error // of mmdebstrap by itself, without being stopped
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err := child.Run(c, syscall.SIGTERM, nil)
		if err != nil {
			_ = child.SignalGroup(c, syscall.SIGKILL) // there may be none left
		}
		if err != nil && ctx.Err() == nil {
			failure = err
		}
		writer.CloseWithError(err) // nil ends the tar
	}()
	err = take(reader)
	cancel() // it is stopped if take did not read all of it
	_ = reader.Close()
	<-ended
	if failure != nil {
		return output.Explain(fmt.Errorf("mmdebstrap: %w", failure))
	}
	return err
}
