package console

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/mechanism/action"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

var epoch = time.Date(2026, 11, 3, 10, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time { return epoch.Add(time.Duration(seconds * float64(time.Second))) }

func isTar(path string) bool { return strings.HasPrefix(path, "_output/release-tars/") }

func file(path string, size int64) action.File {
	return action.File{Path: path, Size: size, SHA256: strings.Repeat(fmt.Sprintf("%02x", len(path)), 32)}
}

var (
	serverTar = file("_output/release-tars/kubernetes-server-linux-amd64.tar.gz", 327_578_231)
	clientTar = file("_output/release-tars/kubernetes-client-linux-amd64.tar.gz", 31_578_231)
)

// release returns the events of a run in which a batch and two other actions succeed, and one is skipped.
func release() []action.Event {
	batch, server := "compile linux/amd64", "package server linux/amd64"
	return []action.Event{
		{Time: at(0), Kind: action.Waiting, Text: "another run in this tree (process 4711)"},
		{Time: at(1), Kind: action.Planned, Total: 6},
		{Time: at(1.001), Kind: action.Skipped, Action: "package client linux/amd64", Phase: "package", Files: []action.File{clientTar}},
		{Time: at(1.002), Kind: action.Skipped, Action: "compile linux/amd64 kubectl", Phase: "compile",
			Files: []action.File{file("_output/local/bin/linux/amd64/kubectl", 55_000_000)}},
		{Time: at(1.1), Kind: action.Started, Action: batch, Phase: "compile", By: "go build, pid 4712",
			Text: "2 of 3: inputs changed: cmd/kubelet/main.go", Stale: 2, Members: 3},
		{Time: at(1.2), Kind: action.Started, Action: "image pause-амд64-映像", Phase: "image", Text: "new"},
		{Time: at(2), Kind: action.Progress, Action: batch, Done: 17, Total: 3310, Unit: action.Packages},
		{Time: at(2.01), Kind: action.Progress, Action: batch, Done: 18, Total: 3310, Unit: action.Packages},
		{Time: at(3.5), Kind: action.Done, Action: "image pause-амд64-映像", Phase: "image", Duration: 2300 * time.Millisecond,
			Files: []action.File{file("_output/images/pause.tar", 512)}},
		{Time: at(20), Kind: action.Output, Action: batch, Text: "# k8s.io/kubernetes\nwarning: something\t\x1b[1mbold\x1b[0m"},
		{Time: at(32), Kind: action.Progress, Action: batch, Done: 1204, Total: 3310, Unit: action.Packages},
		{Time: at(45), Kind: action.Progress, Action: batch, Done: 1900, Total: 3310, Unit: action.Packages},
		{Time: at(63), Kind: action.Progress, Action: batch, Done: 3310, Total: 3310, Unit: action.Packages},
		{Time: at(253), Kind: action.Done, Action: batch + " kubelet", Batch: batch, Phase: "compile", By: "go build, pid 4712",
			Duration: 252 * time.Second, Memory: 3_400_000_000,
			Files: []action.File{file("_output/local/bin/linux/amd64/kubelet", 61_000_000)}},
		{Time: at(253.1), Kind: action.Done, Action: batch + " kube-proxy", Batch: batch, Phase: "compile", By: "go build, pid 4712",
			Duration: 252 * time.Second, Memory: 3_400_000_000,
			Files: []action.File{file("_output/local/bin/linux/amd64/kube-proxy", 45_000_000)}},
		{Time: at(253.2), Kind: action.Started, Action: server, Phase: "package", Text: "inputs changed: _output/local/bin/linux/amd64/kubelet"},
		{Time: at(255), Kind: action.Progress, Action: server, Done: 100 << 20, Total: 312 << 20, Unit: action.Bytes},
		{Time: at(259.3), Kind: action.Done, Action: server, Phase: "package", Duration: 6100 * time.Millisecond,
			Files: []action.File{serverTar}},
		{Time: at(259.3), Kind: action.Finished, Duration: 259300 * time.Millisecond},
	}
}

// unchanged returns the events of a run with nothing to do.
func unchanged() []action.Event {
	return []action.Event{
		{Time: at(0), Kind: action.Planned, Total: 2},
		{Time: at(0.01), Kind: action.Skipped, Action: "package server linux/amd64", Phase: "package", Files: []action.File{serverTar}},
		{Time: at(0.01), Kind: action.Skipped, Action: "package client linux/amd64", Phase: "package", Files: []action.File{clientTar}},
		{Time: at(0.02), Kind: action.Finished, Duration: 20 * time.Millisecond},
	}
}

// broken returns the events of a run in which a batch fails while another action runs.
func broken() []action.Event {
	const batch, cause = "compile linux/arm64", "go build: exit status 1"
	return []action.Event{
		{Time: at(0), Kind: action.Planned, Total: 5},
		{Time: at(0.1), Kind: action.Skipped, Action: "package client linux/amd64", Phase: "package", Files: []action.File{clientTar}},
		{Time: at(0.2), Kind: action.Started, Action: batch, Phase: "compile", Text: "2 of 2: new", Stale: 2, Members: 2},
		{Time: at(0.2), Kind: action.Started, Action: "image pause", Phase: "image", Text: "new"},
		{Time: at(12), Kind: action.Output, Action: batch, Text: "cmd/kubelet/main.go:7:2: undefined: run\n" +
			"cmd/kubelet/main.go:9:2: undefined: stop\n"},
		{Time: at(12.2), Kind: action.Failed, Action: batch, Phase: "compile", Text: cause, Duration: 12 * time.Second},
		{Time: at(14), Kind: action.Done, Action: "image pause", Phase: "image", Duration: 13800 * time.Millisecond},
		{Time: at(14), Kind: action.Finished, Text: batch + ": " + cause, Duration: 14 * time.Second},
	}
}

// A fixture is what a view writes to: one buffer for both streams, as on a terminal, and a clock that events set.
type fixture struct {
	bytes.Buffer
	now           time.Time
	width, height int
	env           map[string]string
}

func newFixture() *fixture {
	return &fixture{now: epoch, width: 80, height: 24, env: map[string]string{"TERM": "xterm"}}
}

func (s *fixture) options() Options {
	return Options{
		Out: &s.Buffer, Err: &s.Buffer, Artifacts: isTar,
		Now:    func() time.Time { return s.now },
		Size:   func() (int, int) { return s.width, s.height },
		Getenv: func(key string) string { return s.env[key] },
	}.withDefaults()
}

// show sends the events to a view, with a tick after each of them.
func (s *fixture) show(view ticker, events []action.Event) {
	for _, ev := range events {
		s.now = ev.Time
		view.Event(ev)
		s.now = s.now.Add(300 * time.Millisecond)
		view.tick()
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got; run with -update if this is right):\n%s", path, diff)
	}
}
