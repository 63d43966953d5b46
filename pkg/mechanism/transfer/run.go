package transfer

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"slipway.build/pkg/mechanism/child"
)

// A transfer is one run of the host's rsync.
type transfer struct {
	module string
	dir    string // the local folder
	send   bool
	flags  []string // besides always
	input  string   // for --files-from=- or --filter=merge -
}

// run runs rsync through a tunnel.
func (r *Remote) run(parent context.Context, t transfer) (counts, error) {
	program, err := Client(parent)
	if err != nil {
		return counts{}, err
	}
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	f, err := r.reach(ctx, cancel)
	if err != nil {
		return counts{}, err
	}
	tunnel, err := open(ctx, cancel, f, r.Patience)
	if err != nil {
		_ = f.Close()
		return counts{}, err
	}

	var out, problem bounded
	cmd := exec.CommandContext(ctx, program, r.args(t, tunnel.port())...)
	// rsync runs in the folder, since an argument like a:b would name a host.
	cmd.Dir, cmd.Env = t.dir, environment(r.Password)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(t.input), &out, &problem
	child.Group(cmd)                                                             // Ctrl-C is for this process, which then ends rsync
	cmd.Cancel = func() error { return child.SignalGroup(cmd, syscall.SIGTERM) } // it removes its temporary files
	cmd.WaitDelay = 3 * time.Second
	err = child.Run(cmd, syscall.SIGKILL, nil)
	complaint := tunnel.finish()

	if err == nil {
		return parseStats(out.String())
	}
	if cause := context.Cause(ctx); cause != nil {
		return counts{}, cause
	}
	text := ""
	if complaint != nil {
		text = complaint.Error()
	}
	e := newFailure(err, r.hidden(problem.String()), r.hidden(text), cmp.Or(r.Patience, idlePatience))
	return counts{}, e
}

func (r *Remote) args(t transfer, port int) []string {
	seconds := int64((cmp.Or(r.Patience, idlePatience) + time.Second - 1) / time.Second)
	whole := "--no-whole-file"
	if r.Whole {
		whole = "--whole-file"
	}
	args := append(always[:len(always):len(always)], whole, fmt.Sprintf("--timeout=%d", seconds))
	args = append(args, t.flags...)
	url := fmt.Sprintf("rsync://%s@127.0.0.1:%d/%s/", User, port, t.module)
	if t.send {
		return append(args, "./", url)
	}
	return append(args, url, "./")
}

// hidden returns text without the password, which the remote end may have repeated.
func (r *Remote) hidden(text string) string {
	if r.Password == "" {
		return text
	}
	return strings.ReplaceAll(text, r.Password, "…")
}

// A bounded buffer keeps the beginning of a process's output and drops the rest.
type bounded struct{ bytes.Buffer }

const bound = 64 << 10 // bytes

func (b *bounded) Write(p []byte) (int, error) {
	if room := bound - b.Len(); room > 0 {
		b.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}
