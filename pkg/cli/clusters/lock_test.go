package clusters

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
	"testing/fstest"

	"slipway.build/pkg/cli/session"
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
	said := func(o commands, to *signaling, waiting func(action.Event)) string {
		t.Helper()
		root := t.TempDir()
		o.Dir = root
		if err := os.CopyFS(root, fstest.MapFS{catalog.File: &fstest.MapFile{}}); err != nil {
			t.Fatal(err)
		}
		err := action.Locked(t.Context(), root, Folder, nil, func() error {
			waiter := make(chan error, 1)
			ctx, cancel := context.WithCancel(t.Context())
			go func() { waiter <- o.withClusters(ctx, waiting, func(string) error { return nil }) }()
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
		in := session.IO{Out: io.Discard, Err: io.Discard, Getenv: func(string) string { return "" }}
		o := commands{&session.Session{JSON: tt.json, IO: in}}
		waiting := o.SayWaiting
		if tt.result {
			waiting = o.NoteWaiting
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
