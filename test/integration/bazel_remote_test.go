//go:build integration && linux

package integration

import (
	"context"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// made returns the file that Bazel made for a target.
func (tr tree) made(t *testing.T, label string, flags ...string) string {
	t.Helper()
	out := tr.bazel(t, append([]string{"cquery", "--output=files", label}, flags...)...).ok(t).stdout
	return filepath.Join(tr.executionRoot(t), strings.TrimSpace(out))
}

func (tr tree) executionRoot(t *testing.T) string {
	t.Helper()
	return strings.TrimSpace(tr.bazel(t, "info", "execution_root").ok(t).stdout)
}

func (tr tree) madeSum(t *testing.T, label string, flags ...string) string {
	t.Helper()
	s, err := sha256File(tr.made(t, label, flags...))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// ran returns the kinds of processes that Bazel reports, such as "2 remote cache hit, 1 internal".
func (r result) ran(t *testing.T) string {
	t.Helper()
	m := regexp.MustCompile(`(?m)^INFO: \d+ process(?:es)?: (.*)\.$`).FindAllStringSubmatch(r.stderr, -1)
	if m == nil {
		t.Fatalf("it does not say which processes it ran: %v", r)
	}
	return m[len(m)-1][1]
}

// archivesOf returns the SHA-256 of the compiled packages of a module. A later clean removes them from the disk.
func (tr tree) archivesOf(t *testing.T, repository string) []string {
	t.Helper()
	archives, err := filepath.Glob(filepath.Join(tr.executionRoot(t), "bazel-out/*/bin/external/"+repository+"/*.[ax]"))
	if err != nil || len(archives) == 0 {
		t.Fatalf("no archives of %s: %v", repository, err)
	}
	var sums []string
	for _, name := range archives {
		sum, err := sha256File(name)
		if err != nil {
			t.Fatal(err)
		}
		sums = append(sums, sum)
	}
	slices.Sort(sums)
	return slices.Compact(sums)
}

// A clean build takes everything from the remote cache. A component is made by remote execution; entries that the cache loses are made
// again; and a build whose server goes away succeeds when the server is back. The results are the same each time.
func TestBazelRemote(t *testing.T) {
	rare(t, "buildbox's file system for actions takes many minutes")
	needRoot(t)
	tr := bazelTree(t)
	labels := []string{"//cmd/kube-scheduler"}
	build := func(args ...string) result { return tr.bazel(t, slices.Concat([]string{"build"}, asReleased, args)...) }
	sum := func(label string) string { return tr.madeSum(t, label, asReleased...) }
	build(append(labels, smallComponent)...).ok(t)
	want, wantSmall := sum(labels[0]), sum(smallComponent)
	lose := append(tr.archivesOf(t, "com_github_fxamacker_cbor_v2"), wantSmall)
	t.Run("cache", func(t *testing.T) {
		tr.bazel(t, "clean").ok(t)
		got := build(append(labels, smallComponent)...).ok(t)
		if ran := got.ran(t); !strings.Contains(ran, "remote cache hit") || strings.Contains(ran, "sandbox") || strings.Contains(ran, "local") {
			t.Errorf("not every action was a hit: %s", ran)
		}
		if s := sum(labels[0]); s != want {
			t.Errorf("%s is %s from the cache, and was %s", labels[0], s, want)
		}
	})
	t.Run("parts made in the tree", func(t *testing.T) {
		parts := []string{"//release:licenses", "//release:third_party"}
		tr.bazel(t, append([]string{"build"}, parts...)...).ok(t)
		made := map[string]string{}
		for _, part := range parts {
			made[part] = tr.madeSum(t, part)
		}
		tr.bazel(t, "clean").ok(t)
		elsewhere := tr.with("SSL_CERT_DIR=/etc/ssl/certs") // a setting of this machine, which is in no key
		got := elsewhere.bazel(t, append([]string{"build"}, parts...)...).ok(t)
		if ran := got.ran(t); !strings.Contains(ran, "2 remote cache hit") || strings.Contains(ran, "local") {
			t.Errorf("they were not taken from the cache: %s", ran)
		}
		for _, part := range parts {
			if s := tr.madeSum(t, part); s != made[part] {
				t.Errorf("%s is %s from the cache, and was %s", part, s, made[part])
			}
		}
	})
	server, err := remoteServer()
	if err != nil {
		missing(t, err.Error())
	}
	if ran := executed.ran(t); !strings.Contains(ran, " remote") || strings.Contains(ran, "cache hit") || strings.Contains(ran, "sandbox") {
		t.Errorf("kube-log-runner was not made by remote execution: %s", ran)
	}
	t.Run("cache that lost entries", func(t *testing.T) {
		// The binary has to be linked again, from an archive that is in no other place than the cache, which has lost it.
		tr.bazel(t, "clean").ok(t)
		server.Kill()
		if lost, err := server.Lose(lose...); err != nil || lost < len(lose) {
			t.Fatalf("the cache held %d objects of %d: %v", lost, len(lose), err)
		}
		if err := server.Restart(context.Background()); err != nil {
			t.Fatal(err)
		}
		got := build(smallComponent).ok(t)
		if s := sum(smallComponent); s != wantSmall {
			t.Errorf("kube-log-runner is %s with a cache that lost a part of it, and was %s: %v", s, wantSmall, got)
		}
	})
	t.Run("server that goes away", func(t *testing.T) {
		tr.bazel(t, "clean").ok(t)
		p := tr.start(t, slipway(t), "bazel", "--", "build", "--color=no", "--curses=no", "--show_progress_rate_limit=0.1",
			"--remote_executor=grpc://"+server.Address, "--noremote_accept_cached", smallComponent)
		underWay := regexp.MustCompile(`\[[1-9][\d,]* / [\d,]+\]`)
		if !p.until(t, func() bool { return underWay.MatchString(readFile(p.err)) }) {
			t.Fatalf("it ended before the server went: %s", tail(readFile(p.err)))
		}
		server.Kill()
		got := p.wait(t)
		if got.code != 0 && !strings.Contains(got.stderr, "remote") {
			t.Errorf("the error is not clear: %v", got)
		}
		build("--remote_cache=", smallComponent).ok(t) // all of it is made here
		if s := sum(smallComponent); s != executed.sum {
			t.Errorf("kube-log-runner is %s as made here, and %s by remote execution", s, executed.sum)
		}
		if err := server.Restart(context.Background()); err != nil {
			t.Fatal(err)
		}
		build(smallComponent).ok(t)
		if s := sum(smallComponent); s != executed.sum {
			t.Errorf("kube-log-runner is %s after the server is back, and was %s", s, executed.sum)
		}
		tr.bazel(t, "clean").ok(t) // other tests take the standard library from the cache again, and everything that depends on it
	})
}
