package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	bazelroad "slipway.build/pkg/make/road/bazel"
	"slipway.build/pkg/mechanism/report"
)

// bazelTest returns the tester that runs Bazel.
func bazelTest(root, timeout string) tester {
	return func(ctx context.Context, packages []string) ([]unit, error) {
		limit, err := time.ParseDuration(timeout)
		if err != nil {
			return nil, err
		}
		patterns, err := bazelroad.Patterns(root, packages)
		if err != nil {
			return nil, err
		}
		dir, err := os.MkdirTemp("", "slipway-units-")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		events := filepath.Join(dir, "events.json")
		cmd := exec.CommandContext(ctx, filepath.Join(root, "_output", "bin", "slipway"), slices.Concat([]string{"bazel", "--", "test",
			"--build_tests_only", "--keep_going", "--test_arg=-test.short", fmt.Sprintf("--test_timeout=%.0f", limit.Seconds()),
			"--build_event_json_file=" + events, "--remote_download_outputs=toplevel", "--"}, patterns)...)
		cmd.Dir, cmd.Stdout, cmd.Stderr = root, os.Stderr, os.Stderr
		cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
		// Of a build or of tests that failed, the events say more.
		if err := cmd.Run(); ctx.Err() != nil {
			return nil, context.Cause(ctx)
		} else if exit := new(exec.ExitError); err != nil && !(errors.As(err, &exit) && slices.Contains([]int{1, 3, 4}, exit.ExitCode())) {
			return nil, err
		}
		f, err := os.Open(events)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return bazelUnits(f, packages, patterns)
	}
}

// A testEvent holds the parts of a build event that are used here.
type testEvent struct {
	ID struct {
		TestResult  *struct{ Label string } `json:"testResult"`
		TestSummary *struct{ Label string } `json:"testSummary"`
	} `json:"id"`
	TestResult *struct {
		TestActionOutput []struct{ Name, URI string } `json:"testActionOutput"`
	} `json:"testResult"`
	TestSummary *struct {
		OverallStatus          string `json:"overallStatus"`
		TotalRunDurationMillis string `json:"totalRunDurationMillis"`
	} `json:"testSummary"`
}

// bazelUnits returns what build events say about packages, which have the given patterns. A package without a result failed.
func bazelUnits(r io.Reader, packages, patterns []string) ([]unit, error) {
	folder := func(label string) string { // "io_k8s_api//core/v1"
		label, _, _ = strings.Cut(strings.TrimLeft(label, "@"), ":")
		return label
	}
	all := make([]unit, len(packages))
	for i, pkg := range packages {
		all[i] = unit{Package: pkg, Outcome: report.Failed, Output: "Bazel has no result for it: there is no target, or it was not built"}
	}
	for lines := json.NewDecoder(r); ; {
		var e testEvent
		if err := lines.Decode(&e); err == io.EOF {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		of := func(label string) *unit {
			i := slices.IndexFunc(patterns, func(p string) bool { return folder(p) == folder(label) })
			if i < 0 {
				return &unit{}
			}
			return &all[i]
		}
		switch {
		case e.ID.TestResult != nil && e.TestResult != nil:
			for _, file := range e.TestResult.TestActionOutput {
				if u, err := url.Parse(file.URI); err == nil && file.Name == "test.log" && u.Scheme == "file" {
					log, _ := os.ReadFile(u.Path) // the summary says whether the test failed
					of(e.ID.TestResult.Label).Output = ending(string(log))
				}
			}
		case e.ID.TestSummary != nil && e.TestSummary != nil:
			u := of(e.ID.TestSummary.Label)
			if e.TestSummary.OverallStatus == "PASSED" {
				u.Outcome, u.Output = report.Passed, ""
			} else {
				u.Output = e.TestSummary.OverallStatus + "\n" + u.Output
			}
			if d, err := time.ParseDuration(e.TestSummary.TotalRunDurationMillis + "ms"); err == nil {
				u.Seconds = d.Seconds()
			}
		}
	}
}
