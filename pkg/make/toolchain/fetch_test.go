package toolchain

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// foreign is a platform that no test runs on.
const foreign = "plan9-mips"

// release makes a Go for a foreign platform, as `go mod download` leaves it, and returns its sum.
func goRelease(t *testing.T) (dir, sum string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range map[string]string{
		"VERSION": pinned + "\n", "go.env": "GOTOOLCHAIN=auto\n", "bin/go": "go", "bin/gofmt": "gofmt",
		"pkg/tool/plan9_mips/compile": "compile", "src/_go.mod": "module std\n", "src/cmd/_go.mod": "module cmd\n",
		"src/fmt/print.go": "package fmt\n",
	} {
		write(t, filepath.Join(dir, filepath.FromSlash(name)), text, 0o444)
	}
	g, err := newGoroot(dir, pinned, foreign)
	if err != nil {
		t.Fatal(err)
	}
	if sum, err = g.sum(); err != nil {
		t.Fatal(err)
	}
	return dir, sum
}

func answer(t *testing.T, dir, sum string) string {
	t.Helper()
	data, err := json.Marshal(map[string]string{"Dir": dir, "Sum": sum})
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestGoForAnotherPlatformIsFetched(t *testing.T) {
	dir, sum := goRelease(t)
	_, noted := install(t, pinned, answer(t, dir, sum))
	var said string
	got, err := Download(t.Context(), Pin{Version: pinned, Sums: map[string]string{foreign: sum}}, foreign, func(text string) { said = text })
	if err != nil {
		t.Fatal(err)
	}
	if want := "fetching " + pinned + " for " + foreign; got != dir || said != want {
		t.Errorf("GOROOT %s, want %s; progress %q, want %q", got, dir, said, want)
	}
	env, err := os.ReadFile(noted)
	if err != nil {
		t.Fatal(err)
	}
	if want := "golang.org/toolchain v0.0.1-" + pinned + "." + foreign + " " + sum; !strings.Contains(string(env), want) {
		t.Errorf("the download ran without %s:\n%s", want, env)
	}
}

func TestInstalledGoIsUsedForItsOwnPlatform(t *testing.T) {
	goroot, noted := install(t, pinned, "")
	got, err := Download(t.Context(), pin(sumOf(t, goroot)), host, nil)
	if err != nil || got != goroot {
		t.Errorf("GOROOT %s, %v", got, err)
	}
	if _, err := os.Stat(noted); err == nil {
		t.Error("something was downloaded")
	}
}

func TestFetchedGoThatWasChangedIsNotUsed(t *testing.T) {
	dir, sum := goRelease(t)
	install(t, pinned, answer(t, dir, sum))
	write(t, filepath.Join(dir, "src", "fmt", "more.go"), "package fmt\n", 0o444)
	_, err := Download(t.Context(), Pin{Version: pinned, Sums: map[string]string{foreign: sum}}, foreign, nil)
	if err == nil || !strings.Contains(err.Error(), "has changed since it was downloaded") {
		t.Errorf("error %v", err)
	}
	_, err = Download(t.Context(), pin("h1:right="), foreign, nil)
	if err == nil || !strings.Contains(err.Error(), "release.yaml has no sum of "+pinned+" for "+foreign) {
		t.Errorf("error %v without a sum", err)
	}
}

func TestFolderMadeOfFilesIsTheRelease(t *testing.T) {
	t.Parallel()
	dir, sum := goRelease(t)
	write(t, filepath.Join(dir, "src", "go.mod"), "module std\n", 0o444) // as a go command that has run this one leaves it
	write(t, filepath.Join(dir, "test", "run.go"), "package main\n", 0o444)
	files, err := Files(dir, foreign)
	if err != nil {
		t.Fatal(err)
	}
	installed := t.TempDir()
	for name, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(installed, filepath.FromSlash(name)), string(data), 0o644)
	}
	g, err := newGoroot(installed, pinned, foreign)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := g.sum(); err != nil || got != sum {
		t.Errorf("sum %s, %v, want %s", got, err, sum)
	}
	for name, want := range map[string]bool{"src/go.mod": true, "src/cmd/go.mod": true, "src/_go.mod": false, "test/run.go": false} {
		if _, got := files[name]; got != want {
			t.Errorf("%s is among the files: %v, want %v", name, got, want)
		}
	}
}

func TestSwitchedOffDatabaseIsExplained(t *testing.T) {
	err := errors.New("golang.org/toolchain@v0.0.1-go1.26.10.linux-arm64: verifying go.mod: checksum database disabled by GOSUMDB=off")
	if got := noDatabase(err); !errors.Is(got, err) || !strings.Contains(got.Error(), "unset GOSUMDB") {
		t.Errorf("error %v", got)
	}
	if other := errors.New("no such host"); noDatabase(other) != other || noDatabase(nil) != nil {
		t.Error("other errors change")
	}
}
