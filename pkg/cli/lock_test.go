package cli

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"slipway.build/pkg/cli/session"
	"slipway.build/pkg/make/project"
	"slipway.build/pkg/mechanism/action"
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
			waiter <- Run(ctx, session.IO{Out: out, Err: said, Getenv: func(string) string { return "" }}, "bump", "--json", "-C", root)
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
