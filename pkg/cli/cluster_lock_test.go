package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"slipway.build/pkg/build/plan"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/prove/cluster"
	"slipway.build/pkg/release"
)

// A signaling writer closes a channel at its first write.
type signaling struct {
	bytes.Buffer
	once    sync.Once
	written chan struct{}
}

func (s *signaling) Write(p []byte) (int, error) {
	defer s.once.Do(func() { close(s.written) })
	return s.Buffer.Write(p)
}

func TestWaitForAnotherClusterCommandIsReportedOnceAndAtOnce(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	said := &signaling{written: make(chan struct{})}
	o := &options{IO: IO{Out: io.Discard, Err: said, Getenv: func(string) string { return "" }}}
	err := action.Locked(t.Context(), root, clusters, nil, func() error {
		waiter := make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { waiter <- o.withClusters(ctx, root, func(string) error { return nil }) }()
		<-said.written // before the lock is released
		cancel()
		return <-waiter
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if text := said.String(); !strings.HasPrefix(text, "slipway: waiting for another run in this tree (process ") || strings.Count(text, "\n") != 1 {
		t.Errorf("it said %q", text)
	}
}

func TestErrorsOfClustersNameTheCommandThatHelps(t *testing.T) {
	t.Parallel()
	dir := filepath.Join("x", plan.Tars)
	for _, tt := range []struct {
		err  error
		want string
	}{
		{cluster.MissingError{File: release.File, Dir: dir}, "make quick-release makes it, or name the folder with --from"},
		{cluster.MissingError{File: release.File, Dir: dir, Tests: true}, "slipway release --platform linux/"},
		{cluster.ErrOther, "slipway cluster down"}, {cluster.ErrUnfinished, "slipway cluster up"}, {cluster.ErrNoNodes, "slipway cluster up"},
		{cluster.ErrNotRoot, "sudo"},
	} {
		if got := clusterError(tt.err); !errors.Is(got, tt.err) || !strings.HasPrefix(got.Error(), tt.err.Error()+": ") || !strings.Contains(got.Error(), tt.want) {
			t.Errorf("got %q, want it to name %q", got, tt.want)
		}
	}
}
