package generate

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/mechanism/needs"
	"slipway.build/pkg/tree/catalog"
)

func TestEverySpellingOfAComponentHasATarget(t *testing.T) {
	t.Parallel()
	const own = "- {name: kubectl, package: ./kubectl, sets: [server, node, client]}"
	for _, spelling := range []string{
		"- {package: ./kubectl, name: kubectl, sets: [server, node, client]}",
		"- { \"name\": 'kubectl' ,\n    package: ./kubectl, sets: [server, node, client]}",
		"- name: kubectl\n  package: ./kubectl\n  sets: [server, node, client]",
		"-\n  sets:\n  - server\n  - node\n  - client\n  package: ./kubectl\n  name: \"kubectl\"",
	} {
		root := tree(t)
		want, err := in(root).makefile(nil)
		if err != nil {
			t.Fatal(err)
		}
		replace(t, root, catalog.File, own, spelling)
		got, err := in(root).makefile(nil)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" || !strings.Contains(string(got), " kubectl \\\n") {
			t.Errorf("%s\ngives other targets (-want +got):\n%s", spelling, diff)
		}
	}
}

func TestMakeHandsOverToMage(t *testing.T) {
	t.Parallel()
	root := frontDoor(t)
	for _, c := range []struct {
		args string
		want []string // mage's arguments
	}{
		{"", []string{"all"}},
		{"quick-release", []string{"quickrelease"}},
		{"kubectl kubelet", []string{"component kubectl", "component kubelet"}},
		{"new-component", []string{"component new-component"}}, // not in COMPONENTS yet
		{"cmd", []string{"component cmd"}},                     // also the name of a folder
		{"-n bazel-release generated_files", []string{"bazelrelease", "generatedfiles"}},
		{"go.mod Makefile", nil},
	} {
		out, err := runMake(root, strings.Fields(c.args)...)
		if err != nil {
			t.Errorf("make %s: %v: %s", c.args, err, out)
		}
		var got []string
		for line := range strings.Lines(out) {
			if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "mage got: "); ok {
				got = append(got, rest)
			}
		}
		if strings.Join(got, "; ") != strings.Join(c.want, "; ") {
			t.Errorf("make %s hands over %q, want %q: %s", c.args, got, c.want, out)
		}
	}
}

// Shell completion reads make's rules in this way.
func TestShellsCompleteTargets(t *testing.T) {
	t.Parallel()
	out, _ := runMake(frontDoor(t), "-npq", ".DEFAULT")
	for _, target := range []string{"kubectl", "e2e.test", "quick-release", "cluster-up"} {
		if !strings.Contains(out, "\n"+target+":") {
			t.Errorf("make has no rule for %s", target)
		}
	}
	if strings.Contains(out, "mage got: ") {
		t.Errorf("completing runs mage: %s", out)
	}
}

// Make's other ways to run nothing run neither mage nor a compiler, even where nothing is compiled yet.
func TestMakeRunsNothing(t *testing.T) {
	t.Parallel()
	for _, args := range []string{
		"-q clean", "-t clean", "--question clean", "--touch clean", "-qp", "-pq all", "-q", "-t", "-t help", "-q kubectl",
		"-t new-component", "-np", "-n -p",
		"-qn clean", "-kq clean", "-q clean WHAT=n", "-n help", "-j2 -q clean", "-sq clean",
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			root := frontDoor(t)
			mage := filepath.Join(root, "_output", ".slipway", "mage")
			for _, compiled := range []bool{true, false} {
				if !compiled {
					if err := os.RemoveAll(filepath.Dir(mage)); err != nil {
						t.Fatal(err)
					}
				}
				out, _ := runMakeWith(root, []string{"PATH=" + stubs(t, "go", "slipway") + ":" + os.Getenv("PATH")}, strings.Fields(args)...)
				if strings.Contains(out, "mage got: ") || strings.Contains(out, "stub of ") {
					t.Errorf("compiled %t: it runs something: %s", compiled, out)
				}
				if _, err := os.Stat(mage); (err == nil) != compiled {
					t.Errorf("compiled %t, afterwards: %v", compiled, err)
				}
			}
		})
	}
}

// A plan is mage's, so `make -n` has to compile the targets where nothing has compiled them. It says so.
func TestAPlanSaysWhatItCompiles(t *testing.T) {
	t.Parallel()
	root := frontDoor(t)
	if err := os.RemoveAll(filepath.Join(root, "_output")); err != nil {
		t.Fatal(err)
	}
	out, _ := runMakeWith(root, []string{"PATH=" + stubs(t, "go") + ":/usr/bin:/bin"}, "-n", "clean")
	if !strings.Contains(out, "make: compiling the targets into _output/.slipway/mage: they print the plan") {
		t.Errorf("it says %s", out)
	}
}

// stubs returns a folder with programs that print their names to standard error.
func stubs(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\necho >&2 stub of "+name+"\necho go1.26.8\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Times say nothing: a copy may have an old one.
func TestTargetsAreCompiledAgainAfterAnEdit(t *testing.T) {
	t.Parallel()
	for what, edit := range map[string]func(t *testing.T, root string){
		"nothing":                   func(*testing.T, string) {},
		"a test":                    func(t *testing.T, root string) { write(t, root, "pkg/a/a_test.go", "package a // edited\n") },
		"a source":                  func(t *testing.T, root string) { write(t, root, "pkg/a/a.go", "package a // edited\n") },
		"a script that is embedded": func(t *testing.T, root string) { write(t, root, "pkg/a/a.sh", "echo edited\n") },
		"a source more":             func(t *testing.T, root string) { write(t, root, "pkg/a/b/b.go", "package b\n") },
		"a source less": func(t *testing.T, root string) {
			if err := os.Remove(filepath.Join(root, "pkg/a/a.go")); err != nil {
				t.Fatal(err)
			}
		},
		"no sum": func(t *testing.T, root string) {
			if err := os.Remove(filepath.Join(root, "_output/.slipway/mage.sum")); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			root := frontDoor(t)
			names := []string{"pkg/a/a.go", "pkg/a/a.sh", "pkg/a/a_test.go"}
			for _, name := range names {
				write(t, root, name, "package a\n")
			}
			compiled(t, root)
			edit(t, root)
			for _, name := range names {
				_ = os.Chtimes(filepath.Join(root, name), time.Time{}, time.Unix(1, 0)) // it may be removed
			}
			out, _ := runMakeWith(root, []string{"PATH=" + stubs(t, "go", "slipway") + ":" + os.Getenv("PATH")}, "kubectl")
			want := what != "nothing" && what != "a test"
			if got := strings.Contains(out, "stub of go"); got != want {
				t.Errorf("they are compiled: %t, want %t: %s", got, want, out)
			}
		})
	}
}

// Whatever a folder is called, no shell reads its name.
func TestNamesOfFoldersAreQuoted(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"it's", `"quoted"`, "a b", "a;touch x", "a$b$(c)`d`", "50%,#1?|", "plain", "-x", "a /b", "off x"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := frontDoor(t)
			write(t, root, "_output/.slipway/mage", "#!/bin/sh\necho \"mage got: $GOPROXY $SLIPWAY_INPUTS\"\n")
			write(t, root, filepath.Join(name, "go", "file"), "")
			for what, dir := range map[string]string{"absolute": filepath.Join(root, name), "relative": name} {
				address := url.URL{Scheme: "file", Path: filepath.Join(root, name, "go")}
				byVariable, err := runMakeWith(root, []string{"SLIPWAY_INPUTS=" + dir, "CDPATH=" + os.TempDir()}, "kubectl")
				if err != nil {
					t.Errorf("%s: %v: %s", what, err, byVariable)
				}
				byArgument, err := runMake(root, "kubectl", "SLIPWAY_INPUTS="+strings.ReplaceAll(dir, "$", "$$"))
				if err != nil {
					t.Errorf("%s, after make: %v: %s", what, err, byArgument)
				}
				for _, out := range []string{byVariable, byArgument} {
					got, _, _ := strings.Cut(strings.TrimPrefix(out, "mage got: "), " ")
					u, err := url.Parse(got)
					if err != nil || u.Path != address.Path || u.RawQuery+u.Fragment != "" || strings.ContainsAny(got, ", |") {
						t.Errorf("%s: %s, want %s, %v", what, out, address.Path, err)
					}
				}
			}
		})
	}
	out, err := runMakeWith(frontDoor(t), []string{"SLIPWAY_INPUTS=/no/such's folder"}, "kubectl")
	if err == nil || !strings.Contains(out, "SLIPWAY_INPUTS=/no/such's folder: want the folder _inputs") {
		t.Errorf("a folder that is not there: %v, %s", err, out)
	}
}

// What a user's shell exports for itself does not change what the lines of the Makefile do.
func TestVariablesOfShellsStayOut(t *testing.T) {
	t.Parallel()
	root := frontDoor(t)
	write(t, root, "_output/.slipway/mage", "#!/bin/sh\nenv\n")
	for _, shell := range []string{"/bin/sh", "/bin/bash"} {
		if _, err := os.Stat(shell); err != nil {
			t.Logf("no %s here", shell)
			continue
		}
		out, err := runMakeWith(root, []string{
			"CDPATH=/tmp", "GREP_OPTIONS=-v", "POSIXLY_CORRECT=1", "BASH_ENV=/no/such/file", "ENV=/no/such/file",
			"SHELLOPTS=noclobber", "BASHOPTS=failglob",
			"GLOBIGNORE=*", "BASH_FUNC_mkdir%%=() { echo no mkdir; }", "KEPT=1",
		}, "kubectl", "SHELL="+shell)
		if err != nil || !strings.Contains(out, "KEPT=1") {
			t.Errorf("%s: %v: %s", shell, err, out)
		}
		for _, name := range []string{"CDPATH", "GREP_OPTIONS", "POSIXLY_CORRECT", "BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "GLOBIGNORE",
			"BASH_FUNC_mkdir%%"} {
			if strings.Contains("\n"+out, "\n"+name+"=") {
				t.Errorf("%s: mage gets %s", shell, name)
			}
		}
	}
}

// frontDoor returns a tree with this Makefile and a mage that prints its arguments.
func frontDoor(t *testing.T) (root string) {
	t.Helper()
	needs.Program(t, "make")
	root = filepath.Join(t.TempDir(), "with spaces")
	for _, name := range []string{"Makefile", targetsFile, "build/slipway.mk", "pkg/cli/targets/targets.go", "go.mod", "go.sum"} {
		data, err := os.ReadFile(filepath.Join("..", "..", "..", filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		write(t, root, name, string(data))
	}
	write(t, root, "cmd/kubectl/main.go", "package main\n")
	mage := filepath.Join(root, "_output", ".slipway", "mage")
	write(t, root, "_output/.slipway/mage", "#!/bin/sh\necho \"mage got: $*\"\n")
	if err := os.Chmod(mage, 0o755); err != nil {
		t.Fatal(err)
	}
	compiled(t, root)
	return root
}

// compiled says that mage is compiled of the sources that there are.
func compiled(t *testing.T, root string) {
	t.Helper()
	sum, err := runMake(root, "--eval=.sum: ; @echo $(SUM)", ".sum")
	if err != nil {
		t.Fatal(err, sum)
	}
	write(t, root, "_output/.slipway/mage.sum", sum)
}

func runMake(root string, args ...string) (string, error) { return runMakeWith(root, nil, args...) }

// runMakeWith runs make with more variables in its environment.
func runMakeWith(root string, env []string, args ...string) (string, error) {
	cmd := exec.Command("make", args...)
	cmd.Dir = root
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "MAKE") && !strings.HasPrefix(kv, "MFLAGS") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestUnknownGoalIsExplained(t *testing.T) {
	t.Parallel()
	root := tree(t)
	write(t, root, "magefiles/more.go", "//go:build mage\n\npackage main\n\nfunc More() {}\n")
	c, err := catalog.Load(root)
	if err != nil {
		t.Fatal(err)
	}
	for goal, want := range map[string]string{
		"qick-release": "quick-release", "kubeclt": "kubectl", "more": "target more is not in build/targets.mk: run make update",
	} {
		_, err := c.Match(goal)
		if err = in(root).Goal(goal, err); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v for the goal %s, want one with %q", err, goal, want)
		}
	}
}
