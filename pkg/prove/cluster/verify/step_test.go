package verify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestTheFirstStepThatFailsEndsACheck(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		step func()
		want string
	}{
		"fail":             {func() { fail("%d: %w", 7, io.EOF) }, "7: EOF"},
		"an error":         {func() { noError(io.EOF) }, "EOF"},
		"no value":         {func() { must("", io.EOF) }, "EOF"},
		"in another":       {func() { during("there", func() { must("", io.EOF) }) }, "there: EOF"},
		"not refused":      {func() { refused("no", func() string { return "yes\n" }) }, `not refused, want an error with "no": yes`},
		"refused, but not": {func() { refused("no", func() string { return must("", io.EOF) }) }, `refused, but not with "no": EOF`},
		"needs two nodes":  {func() { (&env{target: oneNode()}).severalNodes("one is none") }, "needs two nodes: one is none"},
	} {
		after := false
		err := attempt(func() { tt.step(); after = true })
		if err == nil || err.Error() != tt.want || after {
			t.Errorf("%s: %v, and the next step ran: %v, want %q", name, err, after, tt.want)
		}
		if strings.Contains(tt.want, "EOF") && !errors.Is(err, io.EOF) {
			t.Errorf("%s: %v does not wrap its cause", name, err)
		}
	}
	last := ""
	err := attempt(func() {
		noError(nil)
		during("there", func() { last = must("one", nil) })
		refused("no", func() string { fail("never, no"); return "" })
		last += " after another"
	})
	if err != nil || last != "one after another" {
		t.Errorf("steps that succeed: %v, %q", err, last)
	}
}

func TestOtherPanicsAreNoFailures(t *testing.T) {
	t.Parallel()
	defer func() {
		if p := recover(); p != "broken" {
			t.Errorf("recovered %v, want the panic of the step", p)
		}
	}()
	t.Errorf("attempt returned %v", attempt(func() { panic("broken") }))
}

func TestStepsAreRepeatedUntilTheySucceed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, n := &env{ctx: t.Context()}, 0
		e.until(func() {
			if n++; n < 3 {
				fail("not yet")
			}
		})
		if n != 3 {
			t.Errorf("the steps ran %d times, want 3", n)
		}
	})
}

// The error of the last call says only that it was cut off.
func TestTheErrorBeforeTheEndOfTheTimeIsReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		e, n := &env{ctx: ctx}, 0
		err := attempt(func() {
			e.until(func() {
				if n++; n > 1 {
					<-ctx.Done()
					noError(ctx.Err())
				}
				fail("the Pod is pending")
			})
		})
		if !errors.Is(err, context.DeadlineExceeded) || !strings.HasSuffix(fmt.Sprint(err), "the Pod is pending") {
			t.Errorf("got %v", err)
		}
	})
}

func TestCleanupsRunInReverseOrderWithTimeOfTheirOwn(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	e := &env{ctx: ctx}
	var order []string
	for _, name := range []string{"first", "second", "third"} {
		e.cleanup(func() {
			order = append(order, name)
			noError(e.ctx.Err())
			if name != "first" {
				fail("%s fails", name)
			}
		})
	}
	if err := e.cleanUp(); fmt.Sprint(err) != "third fails\nsecond fails" {
		t.Errorf("got %v", err)
	}
	if got := strings.Join(order, " "); got != "third second first" {
		t.Errorf("cleanups ran in the order %s", got)
	}
}
