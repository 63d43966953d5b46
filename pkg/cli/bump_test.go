package cli_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/goproxytest"
	"github.com/rogpeppe/go-internal/testscript"
)

// moduleProxy is the script command `moduleProxy folder`, which sets GOPROXY to a server of the modules in a folder. It refuses
// what matches a line of $WORK/refused, a list of regular expressions. Each script has a module cache of its own.
func moduleProxy(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: moduleProxy folder")
	}
	server, err := goproxytest.NewServer(ts.MkAbs(args[0]), "")
	ts.Check(err)
	ts.Defer(server.Close)
	to, err := url.Parse(server.URL)
	ts.Check(err)
	refused := filepath.Join(ts.Getenv("WORK"), "refused")
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: to.Scheme, Host: to.Host}) }}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lines, _ := os.ReadFile(refused)
		for line := range strings.Lines(string(lines)) {
			if line = strings.TrimSpace(line); line != "" && regexp.MustCompile(line).MatchString(r.URL.Path) {
				http.Error(w, "This module version is not available.", http.StatusForbidden)
				return
			}
		}
		proxy.ServeHTTP(w, r)
	}))
	ts.Defer(front.Close)
	ts.Setenv("GOPROXY", front.URL+to.Path)
	ts.Setenv("GOSUMDB", "off")
	ts.Setenv("GOMODCACHE", filepath.Join(ts.Getenv("WORK"), "modcache"))
}

// killed is the script command `killed command argument...`, which runs a command of slipway that changes the tree again and again,
// kills it after a while that grows until it ends by itself, and checks that the next command finds the tree as it was or as it is to
// be.
func killed(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: killed command argument...")
	}
	tree := ts.MkAbs(".")
	exe, err := exec.LookPath("slipway")
	ts.Check(err)
	slipway := func(args ...string) *exec.Cmd {
		cmd := exec.Command(exe, args...)
		cmd.Dir = tree
		cmd.Env = os.Environ()
		// What is killed cannot remove its temporary folders.
		for _, name := range []string{"GOPROXY", "GOSUMDB", "GOMODCACHE", "GOCACHE", "TMPDIR"} {
			cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
		}
		return cmd
	}
	git := func(args ...string) string {
		cmd := exec.Command("git", args...)
		cmd.Dir = tree
		out, err := cmd.CombinedOutput()
		if err != nil {
			ts.Fatalf("git %v: %v: %s", args, err, out)
		}
		return string(out)
	}
	changes := func() string { return git("diff") + git("status", "--porcelain", "--untracked-files=all") }
	restore := func() {
		git("checkout", "-q", ".")
		git("clean", "-fdq")
	}
	old := changes()
	ts.Check(slipway(args...).Run())
	want := changes()
	restore()

	seen := 0 // how often a kill left the old tree
	for wait := 40 * time.Millisecond; ; wait *= 2 {
		cmd := slipway(args...)
		ts.Check(cmd.Start())
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		killed := false
		select {
		case <-time.After(wait):
			_ = cmd.Process.Kill()
			<-ended
			killed = true
		case err := <-ended:
			ts.Check(err)
		}
		out, err := slipway("catalog", "components").CombinedOutput()
		if err != nil {
			ts.Fatalf("after a kill at %v: %v: %s", wait, err, out)
		}
		switch changes := changes(); {
		case changes == old && killed:
			seen++
		case changes != want:
			ts.Fatalf("after a kill at %v, the tree is neither the old nor the new one:\n%s", wait, changes)
		}
		if !killed {
			break
		}
		restore()
	}
	if seen == 0 {
		ts.Fatalf("no kill left the old tree")
	}
}
