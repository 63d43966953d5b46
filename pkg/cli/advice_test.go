package cli

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"slipway.build/pkg/build/kubecross"
	"slipway.build/pkg/build/road"
	"slipway.build/pkg/build/road/container"
	"slipway.build/pkg/mechanism/engine"
)

func TestErrorsOfRoadsSuggestASetting(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		err  error
		want string
	}{
		{&road.UnsupportedError{Road: "bazel", What: "DBG=1"}, "ROAD=local"},
		{&container.OutsideError{}, "ROAD=local"},
		{&kubecross.BaseError{Name: "debian", Err: errors.New("cannot be pulled")}, "KUBE_CROSS_BASE"},
		{&engine.ConnectError{Err: errors.New("refused")}, "ROAD=local"},
	} {
		if got := advice(shownError{fmt.Errorf("compile linux/amd64: %w", test.err)}); !strings.Contains(got, test.want) {
			t.Errorf("%T: advice %q, want %q", test.err, got, test.want)
		}
	}
}
