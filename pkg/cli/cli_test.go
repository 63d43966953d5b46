package cli_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	ggcr "github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/licensecheck"
	"github.com/rogpeppe/go-internal/goproxytest"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/rogpeppe/go-internal/txtar"

	"slipway.build/pkg/cli"
	"slipway.build/pkg/cli/session"
	"slipway.build/pkg/make/license"
	"slipway.build/pkg/make/relink"
	"slipway.build/pkg/mechanism/reapi/standin"
	"slipway.build/pkg/tree/catalog"
)

func TestMain(m *testing.M) {
	relink.Main()
	slipway := func() {
		scan := sync.OnceValue(scanFew)
		license.Scan = func(text []byte) licensecheck.Coverage { return scan()(text) }
		s := session.Std()
		s.UpdateBazel = namePatches
		if at, err := time.Parse(time.RFC3339, os.Getenv("CLOCK")); err == nil {
			s.Clock = func() time.Time { return at }
		}
		os.Exit(cli.Main(s))
	}
	testscript.Main(m, map[string]func(){"slipway": slipway, "mage": slipway})
}

// namePatches stands in for the generator of Bazel's files, which needs rules_go and more. It writes the names of the tree's patches.
func namePatches(_ context.Context, root string) error {
	names, err := filepath.Glob(filepath.Join(root, "patches", "*.patch"))
	for i, name := range names {
		names[i] = filepath.Base(name) + "\n"
	}
	return errors.Join(err, os.WriteFile(filepath.Join(root, "build", "bazel", "generated", "config.bzl"),
		[]byte(strings.Join(names, "")), 0o644))
}

// scanFew returns a function that recognizes the licenses of Go and of what the scripts have.
func scanFew() func([]byte) licensecheck.Coverage {
	few := slices.DeleteFunc(licensecheck.BuiltinLicenses(), func(l licensecheck.License) bool {
		return !slices.Contains([]string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MIT-0"}, l.ID)
	})
	scanner, err := licensecheck.NewScanner(few)
	if err != nil {
		panic(err)
	}
	return scanner.Scan
}

// TestScripts runs the sessions in testdata/script, each in a copy of the small tree that the tests of package plan also use. The Go
// that runs the tests compiles its programs. It is go1.26.8, or the one that release.yaml pins, since their sums are known.
func TestScripts(t *testing.T) {
	t.Parallel()
	ar, err := txtar.ParseFile(filepath.Join("..", "make", "plan", "testdata", "tree.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	ours, err := catalog.Load(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	sum := "h1:ZOmGe1OnfREDMIdb1Qi4G9JSuDPBLGExZMQ4nis1RXM="
	if pin := ours.Go; pin.Version == runtime.Version() {
		for i, f := range ar.Files {
			data := bytes.ReplaceAll(f.Data, []byte("go1.26.8"), []byte(pin.Version))
			ar.Files[i].Data = bytes.ReplaceAll(data, []byte(sum), []byte(pin.Sums["linux-amd64"]))
		}
		sum = pin.Sums["linux-amd64"]
	}
	caches, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal("go env:", err)
	}
	goCache, modules, _ := strings.Cut(strings.TrimSpace(string(caches)), "\n")
	slipway, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	sums := t.TempDir() // slipway keeps the sum of the installed Go there, which takes a second to compute
	params := testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Cd = filepath.Join(e.WorkDir, "tree")
			e.Vars = append(e.Vars,
				"GORACE=atexit_sleep_ms=10", // under -race, every slipway would wait a second for reports at its end
				"GOCACHE="+goCache, "GOMODCACHE="+modules, "GOPROXY=off", "XDG_CACHE_HOME="+sums,
				"HOME="+filepath.Join(e.WorkDir, "home"), // root could write into the one that testscript means not to exist
				"SLIPWAY="+slipway, "GO="+runtime.Version(), "GOSUM="+sum, "HOST="+runtime.GOOS+"/"+runtime.GOARCH, "ARCH="+runtime.GOARCH,
				"GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@acme.example", "GIT_AUTHOR_DATE=2026-11-20T23:53:00Z",
				"GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@acme.example", "GIT_COMMITTER_DATE=2026-11-20T23:53:00Z",
			)
			return txtar.Write(ar, e.Cd)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exitcode": exitCode, "engine": engine, "glob": glob, "serve": serve, "cache": cache,
			"registry": registry, "key": key, "moduleProxy": moduleProxy, "killed": killed, "pipeline": pipeline,
		},
	}
	// A script with a folder .gomodproxy has the modules in it.
	goproxytest.Setup(&params)
	testscript.Run(t, params)
}

// exitCode is the script command `exitcode N command...`, which fails unless the command exits with N.
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

// glob is the script command `glob PATTERN`, which sets GLOB to the only file whose name matches.
func glob(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: glob PATTERN")
	}
	names, err := filepath.Glob(args[0])
	ts.Check(err)
	if len(names) != 1 {
		ts.Fatalf("%s: %d files: %v", args[0], len(names), names)
	}
	ts.Setenv("GLOB", names[0])
}

// serve is the script command `serve FOLDER`, which sets URL to a web server that has the files of a folder.
func serve(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: serve FOLDER")
	}
	s := httptest.NewServer(http.FileServer(http.Dir(ts.MkAbs(args[0]))))
	ts.Defer(s.Close)
	ts.Setenv("URL", s.URL)
}

// registry is the script command `registry`, which sets REGISTRY to a registry that has nothing.
func registry(ts *testscript.TestScript, _ bool, _ []string) {
	s := httptest.NewServer(ggcr.New(ggcr.Logger(log.New(io.Discard, "", 0))))
	ts.Defer(s.Close)
	ts.Setenv("REGISTRY", strings.TrimPrefix(s.URL, "http://"))
}

// key is the script command `key NAME...`, which writes a private key without a password to NAME.key, and the public one to NAME.pub. A
// password costs a tenth of a second and 64 MB whenever the key is read, as it is meant to.
func key(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: key NAME...")
	}
	for _, name := range args {
		private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		ts.Check(err)
		der, err := x509.MarshalPKCS8PrivateKey(private)
		ts.Check(err)
		ts.Check(os.WriteFile(ts.MkAbs(name+".key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600))
		der, err = x509.MarshalPKIXPublicKey(private.Public())
		ts.Check(err)
		ts.Check(os.WriteFile(ts.MkAbs(name+".pub"), pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), 0o644))
	}
}

// cache is the script command `cache`, which sets SLIPWAY_CACHE to a server that keeps results.
func cache(ts *testscript.TestScript, _ bool, _ []string) {
	s, err := standin.Serve()
	ts.Check(err)
	ts.Defer(s.Die)
	ts.Setenv("SLIPWAY_CACHE", s.URL())
}

// engine is the script command `engine`, which sets DOCKER_HOST to a container engine that has nothing and appends each request to
// $WORK/asked.
func engine(ts *testscript.TestScript, _ bool, _ []string) {
	asked := ts.Getenv("WORK") + "/asked"
	var mu sync.Mutex
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		f, err := os.OpenFile(asked, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
		if err == nil {
			fmt.Fprintln(f, r.Method, r.URL.Path)
			err = f.Close()
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Api-Version", "1.51")
		w.Header().Set("Content-Type", "application/json")
		switch path.Base(r.URL.Path) {
		case "info":
			fmt.Fprint(w, `{"OSType": "linux", "Architecture": "x86_64", "ServerVersion": "28.0.0"}`)
		case "volumes":
			fmt.Fprint(w, `{"Volumes": []}`)
		default:
			fmt.Fprint(w, "[]")
		}
	}))
	ts.Defer(s.Close)
	ts.Setenv("DOCKER_HOST", "tcp://"+s.Listener.Addr().String())
}
