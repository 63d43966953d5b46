package verify

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"slipway.build/pkg/prove/cluster"
)

// Options say what is wanted of a run.
type Options struct {
	Checks []Check
	Limit  time.Duration // for each check, instead of its own; 0 keeps that
	Each   func(Row)     // is told each row when it is there, one at a time; may be nil
}

// sideBySide is how many checks run at once: they mostly wait, for one another's containers among others.
const sideBySide = 4

// Run makes checks of a cluster. Its error is that of ctx, if it ended before all were made; that rows failed is none.
func Run(ctx context.Context, s *cluster.State, o Options) (Report, error) {
	c, err := open(s)
	if err != nil {
		return Report{}, err
	}
	r, err := run(ctx, o, func(ctx context.Context, check Check) (string, error) { return c.make(ctx, check) })
	r.Cluster, r.Version = s.Name, s.Version
	return r, err
}

// run makes checks by a function that says why one failed, and what explains it.
func run(ctx context.Context, o Options, try func(context.Context, Check) (string, error)) (Report, error) {
	start := time.Now()
	var mu sync.Mutex
	rows := map[string]Row{}
	one := func(c Check) {
		if ctx.Err() != nil {
			return
		}
		row := o.row(ctx, c, try)
		if ctx.Err() != nil {
			return // it did not fail by itself
		}
		mu.Lock()
		defer mu.Unlock()
		rows[c.Group+"/"+c.Name] = row
		if o.Each != nil {
			o.Each(row)
		}
	}
	for rest := o.Checks; len(rest) > 0; {
		n := slices.IndexFunc(rest, func(c Check) bool { return c.Group != rest[0].Group })
		if n < 0 {
			n = len(rest)
		}
		var together sync.WaitGroup
		free := newSlots(sideBySide)
		for _, c := range rest[:n] {
			if !c.Alone {
				free <- struct{}{}
				together.Go(func() { defer func() { <-free }(); one(c) })
			}
		}
		together.Wait()
		for _, c := range rest[:n] {
			if c.Alone {
				one(c)
			}
		}
		rest = rest[n:]
	}
	r := Report{Seconds: time.Since(start).Seconds()}
	for _, c := range o.Checks {
		if row, ok := rows[c.Group+"/"+c.Name]; ok {
			r.Rows = append(r.Rows, row)
		}
	}
	return r, ctx.Err()
}

func newSlots(n int) chan struct{} { return make(chan struct{}, n) }

// row makes one check, within its limit.
func (o Options) row(ctx context.Context, c Check, try func(context.Context, Check) (string, error)) Row {
	limit := o.Limit
	if limit == 0 {
		limit = max(c.Limit, defaultLimit)
	}
	limited, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not done after %v", limit))
	defer cancel()
	start := time.Now()
	explanation, err := try(limited, c)
	row := Row{Group: c.Group, Name: c.Name, Result: Passed, Seconds: time.Since(start).Seconds()}
	if err == nil {
		return row
	}
	row.Result, row.Message, row.Explanation = Failed, strings.TrimSpace(err.Error()), explanation
	var why skip
	switch {
	case !errors.As(err, &why):
	case c.Skips:
		row.Result = Skipped
	default:
		row.Message = "was skipped, but only what a machine may lack can be: " + row.Message
	}
	return row
}

// make makes a check in a namespace of its own, and cleans up after it.
func (c *target) make(ctx context.Context, check Check) (explanation string, err error) {
	e := &env{target: c, namespace: "verify-" + check.Name + "-" + strings.ToLower(rand.Text()[:5])}
	defer func() {
		if err != nil {
			var why skip
			if !errors.As(err, &why) {
				explanation = e.explain(ctx, check)
			}
		}
		err = errors.Join(err, e.cleanUp(ctx))
	}()
	if err := e.begin(ctx); err != nil {
		return "", err
	}
	return "", check.run(ctx, e)
}
