package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"slipway.build/pkg/cli/maintaining"
	"slipway.build/pkg/cli/session"
	"slipway.build/pkg/maintain/kubetest"
	"slipway.build/pkg/make/kubecross"
	"slipway.build/pkg/make/project"
	"slipway.build/pkg/make/road"
	bazelroad "slipway.build/pkg/make/road/bazel"
	"slipway.build/pkg/make/road/container"
	"slipway.build/pkg/mechanism/debian"
	"slipway.build/pkg/mechanism/engine"
	"slipway.build/pkg/mechanism/suggest"
	"slipway.build/pkg/tree/patch"
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
		{bazelroad.ErrStale, "make update"},
		{debian.ErrLock, "make update-debian-locks"},
	} {
		if got := advice(session.ShownError{Err: fmt.Errorf("compile linux/amd64: %w", test.err)}); !strings.Contains(got, test.want) {
			t.Errorf("%T: advice %q, want %q", test.err, got, test.want)
		}
	}
}

func TestPatchCommandsNameTheProject(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ command, project, want string }{
		{"edit", "", "slipway patch edit"},
		{"edit", "k8s.io/kubernetes", "slipway patch edit"},
		{"save", "etcd", "slipway patch save etcd"},
		{"drop 0001-a.patch", "etcd", "slipway patch drop 0001-a.patch --project etcd"},
	} {
		if got := maintaining.PatchCommand(tt.command, tt.project); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

func TestAdviceNamesTheNextCommandOrFlag(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err  error
		want string // part of the advice
	}{
		{&suggest.UnknownError{Kind: "component"}, "slipway catalog components"},
		{&suggest.UnknownError{Kind: "platform"}, "slipway catalog platforms"},
		{&road.FlagError{Flag: "-n"}, "--dry-run"},
		{&project.NoTreeError{}, "-C"},
		{&kubetest.PortError{Address: "127.0.0.1:10257", Err: errors.New("address already in use")}, "ss -ltnp"},
		{&patch.Conflict{Patch: "patches/0001-a.patch"}, "slipway patch edit lays"},
		{&patch.Conflict{Patch: "images/etcd/patches/0001-a.patch"}, "slipway patch edit etcd lays"},
		{&kubetest.ReplacedError{Folder: "/src/kubernetes"}, "make test-cmd in that folder"},
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
