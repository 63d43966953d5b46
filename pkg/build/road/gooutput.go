package road

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A GoOutput takes what `go build -v` writes, and tells its package names from what is meant for the user. It may be written
// to from one goroutine at a time.
type GoOutput struct {
	Report Report

	line     []byte       // that is not ended yet
	packages atomic.Int64 // compiled so far
	total    atomic.Int64 // about as many are to be compiled; 0 if nobody knows
}

// longest is how much of a line is kept, in bytes.
const longest = 1 << 20

func (o *GoOutput) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		part, after, ended := bytes.Cut(rest, []byte("\n"))
		o.line = append(o.line, part[:min(len(part), longest-len(o.line))]...)
		if ended {
			o.Flush()
		}
		rest = after
	}
	return len(p), nil
}

// Flush takes the line that is not ended for a whole one: what writes has ended.
func (o *GoOutput) Flush() {
	if len(o.line) > 0 {
		o.sort(strings.TrimSuffix(string(o.line), "\r"))
	}
	o.line = o.line[:0]
}

// sort judges one line: one that is nothing but an import path says that the package was compiled.
func (o *GoOutput) sort(text string) {
	switch {
	case strings.HasPrefix(text, "go: downloading "):
		o.Report.Progress(o.packages.Load(), 0, strings.TrimPrefix(text, "go: "))
	case text != "" && !strings.ContainsAny(text, " \t:#") && !strings.HasPrefix(text, "-"):
		done := o.packages.Add(1)
		total := o.total.Load()
		if total > 0 {
			total = max(total, done) // packages that were on their way when they were counted may count twice or not
		}
		o.Report.Progress(done, total, text)
	default:
		o.Report.Output(text)
	}
}

// A compile that has gone on for this long is asked how much there is to do, once it has compiled so many packages.
// Asking costs the Go tool a few seconds of one processor: links alone (after a new commit, say) are better off without.
const (
	longCompile  = 10 * time.Second
	manyPackages = 20
)

// WatchTotal finds out, if the compile goes on for long, of how many packages it is, and tells it in every progress from then
// on. It asks list, which runs the Go command with arguments and returns what that wrote. The function it returns ends that.
func (o *GoOutput) WatchTotal(ctx context.Context, c Compilation, targets []Target, list func(ctx context.Context, args []string) ([]byte, error)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		tick := time.NewTicker(longCompile)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			before := o.packages.Load()
			if before < manyPackages {
				continue
			}
			args := listStale(c, targets)
			if args == nil {
				return
			}
			out, err := list(ctx, args)
			// It is only for the progress shown; what is wrong, the compile says itself.
			if stale := bytes.Count(out, []byte("x")); err == nil && stale > 0 {
				o.total.Store(before + int64(stale))
			}
			return
		}
	})
	return func() { cancel(); watching.Wait() }
}

// listStale are the arguments by which the Go command writes an x for every package that targets need and that is not in its
// build cache. There are none for tests: the packages that only a test imports would need another question.
func listStale(c Compilation, targets []Target) []string {
	args := append([]string{"list", "-deps", "-f", "{{if .Stale}}x{{end}}"}, c.BuildFlags()...)
	for _, t := range targets {
		if t.Test {
			return nil
		}
		args = append(args, t.Package)
	}
	return args
}
