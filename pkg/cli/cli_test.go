package cli_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/rogpeppe/go-internal/txtar"

	"slipway.build/pkg/cli"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"slipway": func() { os.Exit(cli.Main()) }})
}

// TestScripts runs the sessions in testdata/script, each in a tree of its own: the small one that the tests of package
// plan use, too. Its programs are really compiled, by the Go that runs the tests.
func TestScripts(t *testing.T) {
	t.Parallel()
	ar, err := txtar.ParseFile(filepath.Join("..", "build", "plan", "testdata", "tree.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range ar.Files {
		ar.Files[i].Data = bytes.ReplaceAll(f.Data, []byte("go1.26.8"), []byte(runtime.Version()))
	}
	caches, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE").Output()
	if err != nil {
		t.Skip(err)
	}
	cache, modules, _ := strings.Cut(strings.TrimSpace(string(caches)), "\n")
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Cd = filepath.Join(e.WorkDir, "tree")
			e.Vars = append(e.Vars,
				"GORACE=atexit_sleep_ms=10", // under -race every slipway would end with a second of waiting for reports
				"GOCACHE="+cache, "GOMODCACHE="+modules, "GOPROXY=off",
				"GO="+runtime.Version(), "HOST="+runtime.GOOS+"/"+runtime.GOARCH, "ARCH="+runtime.GOARCH,
				"GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@acme.example", "GIT_AUTHOR_DATE=2026-11-20T23:53:00Z",
				"GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@acme.example", "GIT_COMMITTER_DATE=2026-11-20T23:53:00Z",
			)
			return txtar.Write(ar, e.Cd)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exitcode": exitCode},
	})
}

// exitCode is the script command `exitcode N command...`: the command ends with code N.
func exitCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exitcode N command [argument...]")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := "0"
	if err != nil {
		got = strings.TrimPrefix(err.Error(), "exit status ")
	}
	if got != args[0] {
		ts.Fatalf("%s ended with %s, want %s", strings.Join(args[1:], " "), got, args[0])
	}
}
