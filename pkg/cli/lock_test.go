package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"slipway.build/pkg/make/project"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/prove/cluster"
	"slipway.build/pkg/release"
	"slipway.build/pkg/tree/catalog"
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
	said := func(o *options, to *signaling, waiting func(action.Event)) string {
		t.Helper()
		root := t.TempDir()
		err := action.Locked(t.Context(), root, clusters, nil, func() error {
			waiter := make(chan error, 1)
			ctx, cancel := context.WithCancel(t.Context())
			go func() { waiter <- o.withClusters(ctx, root, waiting, func(string) error { return nil }) }()
			<-to.written // before the lock is released
			cancel()
			return <-waiter
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		return to.String()
	}
	for name, tt := range map[string]struct {
		json   bool
		result bool // of a query, which is all that is on standard output
		want   string
	}{
		"text":            {false, false, "slipway: waiting for another run in this tree (process "},
		"JSON, events":    {true, false, `"kind":"waiting"`},
		"JSON of a query": {true, true, "slipway: waiting for another run in this tree (process "},
	} {
		to := &signaling{written: make(chan struct{})}
		o := &options{json: tt.json, IO: IO{Out: io.Discard, Err: io.Discard, Getenv: func(string) string { return "" }}}
		waiting := o.sayWaiting
		if tt.result {
			waiting = o.noteWaiting
		}
		if tt.json && !tt.result {
			o.Out = to
		} else {
			o.Err = to
		}
		if text := said(o, to, waiting); !strings.Contains(text, tt.want) || strings.Count(text, "\n") != 1 {
			t.Errorf("%s: it said %q", name, text)
		}
	}
}

func TestBumpThatWaitsPrintsOnlyItsReportAsJSON(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	declared := filepath.Join(root, filepath.FromSlash(catalog.File))
	if err := errors.Join(os.MkdirAll(filepath.Dir(declared), 0o755), os.WriteFile(declared, nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	out := &signaling{written: make(chan struct{})}
	said := &signaling{written: make(chan struct{})}
	_ = action.Locked(t.Context(), root, project.State, nil, func() error {
		ctx, cancel := context.WithCancel(t.Context())
		waiter := make(chan error, 1)
		go func() {
			waiter <- Run(ctx, IO{Out: out, Err: said, Getenv: func(string) string { return "" }}, "bump", "--json", "-C", root)
		}()
		select {
		case <-said.written:
		case <-out.written:
		}
		cancel()
		return <-waiter
	})
	if out.String() != "" || !strings.HasPrefix(said.String(), "slipway: waiting for another run") {
		t.Errorf("standard output has %q, standard error %q", out, said)
	}
}

func TestErrorsOfClustersNameTheCommandThatHelps(t *testing.T) {
	t.Parallel()
	dir := filepath.Join("x", project.Tars)
	for _, tt := range []struct {
		err  error
		want string
	}{
		{cluster.MissingError{File: release.File, Dir: dir}, "make quick-release makes it, or name the folder with --from"},
		{cluster.MissingError{File: release.File, Dir: dir, Tests: true}, "slipway release --platform linux/"},
		{cluster.ErrOther, "slipway cluster down"}, {cluster.ErrUnfinished, "slipway cluster up"}, {cluster.ErrNoNodes, "slipway cluster up"},
		{cluster.ErrNotRoot, "sudo"},
	} {
		if got := clusterError(tt.err); !errors.Is(got, tt.err) || !strings.HasPrefix(got.Error(), tt.err.Error()+": ") ||
			!strings.Contains(got.Error(), tt.want) {
			t.Errorf("got %q, want it to name %q", got, tt.want)
		}
	}
}
