package road

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/tail"
)

// A GoOutput receives the output of `go build -v`, and separates package names, which are progress, from messages for the user.
// Only one goroutine at a time may write to it.
type GoOutput struct {
	Report action.Report

	lines    tail.Lines
	packages atomic.Int64 // compiled so far
	total    atomic.Int64 // estimate of how many there are to compile; 0 if unknown
}

func (o *GoOutput) Write(p []byte) (int, error) {
	o.lines.Each = o.sort
	return o.lines.Write(p)
}

// Flush handles a last line that has no end, after the writer has ended.
func (o *GoOutput) Flush() { o.lines.Flush() }

// sort handles one line. A line that is nothing but an import path means that the package was compiled.
func (o *GoOutput) sort(text string) {
	switch {
	case strings.HasPrefix(text, "go: downloading "):
		o.Report.Count(action.Packages, o.packages.Load(), 0, strings.TrimPrefix(text, "go: "))
	case !strings.ContainsAny(text, " \t:#") && !strings.HasPrefix(text, "-"):
		done := o.packages.Add(1)
		total := o.total.Load()
		if total > 0 {
			total = max(total, done) // the total is an estimate: packages were being compiled while it was counted
		}
		o.Report.Count(action.Packages, done, total, text)
	default:
		o.Report.Output(text)
	}
}

// The packages still to compile are counted once a compile has taken this long and compiled so many packages. Counting keeps
// the Go command busy for a few seconds on one processor, which short compiles, such as links after a new commit, should not pay.
const (
	longCompile  = 10 * time.Second
	manyPackages = 20
)

// WatchTotal counts the packages of a compile that takes long, so that progress from then on has a total. It calls list, which
// runs the Go command with arguments and returns its output. The function that it returns stops the watch.
func (o *GoOutput) WatchTotal(ctx context.Context, c Compilation, targets []Target,
	list func(ctx context.Context, args []string) ([]byte, error)) (stop func()) {
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
			// The total is for progress only, so errors do not matter: the compile reports its own.
			if stale := bytes.Count(out, []byte("x")); err == nil && stale > 0 {
				o.total.Store(before + int64(stale))
			}
			return
		}
	})
	return func() { cancel(); watching.Wait() }
}

// listStale returns arguments by which the Go command writes an x for every package that targets need and that is not in its
// build cache. It returns nil for tests: packages that only a test imports would not be counted.
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
