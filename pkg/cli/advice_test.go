package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"slipway.build/pkg/build/plan"
	"slipway.build/pkg/build/road"
	"slipway.build/pkg/mechanism/suggest"
	"slipway.build/pkg/prove/cluster"
)

func TestAdviceNamesTheNextCommandOrFlag(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err  error
		want string // part of the advice
	}{
		{&suggest.UnknownError{Kind: "component"}, "slipway catalog components"},
		{&suggest.UnknownError{Kind: "platform"}, "slipway catalog platforms"},
		{&road.FlagError{Flag: "-n"}, "--dry-run"},
		{&plan.NoTreeError{}, "-C"},
		{&cluster.MissingError{}, "--from"},
		{cluster.ErrRoot, "--control-plane-only"},
		{cluster.ErrOther, "slipway cluster down"},
		{shownError{fmt.Errorf("nodes: %w", cluster.ErrNotReady)}, "--wait"},
	} {
		err := fmt.Errorf("wrapped: %w", tt.err)
		got := advise(err).Error()
		advice, ok := strings.CutPrefix(got, err.Error()+": ")
		if !ok || !strings.Contains(advice, tt.want) {
			t.Errorf("%T: got %q, want advice with %s", tt.err, got, tt.want)
		}
	}
	for _, err := range []error{fs.ErrNotExist, &suggest.UnknownError{Kind: "road"}, &road.FlagError{Flag: "-C=/"}} {
		if got := advise(err); !errors.Is(got, err) || got.Error() != err.Error() {
			t.Errorf("got %q, want no advice", got)
		}
	}
}
