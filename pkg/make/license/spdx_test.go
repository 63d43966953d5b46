package license

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/tree/module"

	"slipway.build/pkg/mechanism/recipe/recipetest"
)

// Recognized texts, and one that is not recognized.
const (
	isc = `Permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby granted,
provided that the above copyright notice and this permission notice appear in all copies.

THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES WITH REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED
WARRANTIES OF MERCHANTABILITY AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR ANY SPECIAL, DIRECT, INDIRECT, OR
CONSEQUENTIAL DAMAGES OR ANY DAMAGES WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER IN AN ACTION OF CONTRACT,
NEGLIGENCE OR OTHER TORTIOUS ACTION, ARISING OUT OF OR IN CONNECTION WITH THE USE OR PERFORMANCE OF THIS SOFTWARE.
`
	zlib = `This software is provided 'as-is', without any express or implied warranty. In no event will the authors be held liable for
any damages arising from the use of this software.

Permission is granted to anyone to use this software for any purpose, including commercial applications, and to alter it and
redistribute it freely, subject to the following restrictions:

1. The origin of this software must not be misrepresented; you must not claim that you wrote the original software. If you use
this software in a product, an acknowledgment in the product documentation would be appreciated but is not required.
2. Altered source versions must be plainly marked as such, and must not be misrepresented as being the original software.
3. This notice may not be removed or altered from any source distribution.
`
	homemade = "Everybody may do everything with this.\n"
)

func TestTextsAreNamed(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"one":                 {map[string]string{"LICENSE": isc}, []string{"ISC"}},
		"several in one file": {map[string]string{"LICENSE": isc + zlib}, []string{"ISC", "Zlib"}},
		"of forked code, too": {map[string]string{"LICENSE": isc, "forked/COPYING": zlib}, []string{"ISC", "Zlib"}},
		"not recognized":      {map[string]string{"LICENSE": homemade}, []string{"LicenseRef-example.com-Big-mod.v2"}},
		"not recognized beside one that is": {map[string]string{"LICENSE": isc, "LICENSE.more": homemade},
			[]string{"ISC", "LicenseRef-example.com-Big-mod.v2"}},
		"a list of holders beside one": {map[string]string{"LICENSE": isc, "COPYRIGHT": "The authors\n"}, []string{"ISC"}},
		"a list of holders alone":      {map[string]string{"COPYRIGHT": "The authors\n"}, []string{"LicenseRef-example.com-Big-mod.v2"}},
		"what accompanies a license":   {map[string]string{"LICENSE": isc, "NOTICE": zlib, "PATENTS": homemade}, []string{"ISC"}},
		"the license of documentation": {map[string]string{"LICENSE": isc, "LICENSE.docs": zlib}, []string{"ISC"}},
		"none":                         {nil, []string{"LicenseRef-example.com-Big-mod.v2"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			var files []string
			for file, text := range test.files {
				write(t, filepath.Join(dir, file), text)
				files = append(files, file)
			}
			got, err := named("example.com/Big~mod.v2", "v1.0.0", dir, files)
			if err != nil || got.Revision != "v1.0.0" {
				t.Fatalf("%+v, %v", got, err)
			}
			if diff := cmp.Diff(test.want, got.Licenses); diff != "" {
				t.Errorf("licenses (-want +got):\n%s", diff)
			}
		})
	}
}

// A gathered folder with two modules.
func gathered(t *testing.T) (own, dir string) {
	t.Helper()
	dir = t.TempDir()
	own = filepath.Join(t.TempDir(), "LICENSE")
	write(t, own, homemade)
	write(t, filepath.Join(dir, "go", "LICENSE"), zlib)
	write(t, filepath.Join(dir, "vendor", "example.com", "a", "LICENSE"), isc)
	write(t, filepath.Join(dir, "vendor", "example.com", "b", "LICENSE"), homemade)
	write(t, filepath.Join(dir, indexFile), "example.com/a\tv1.0.0\tLICENSE\nexample.com/b\tlocal\tLICENSE\n")
	return own, dir
}

func TestNamesOfAGatheredFolder(t *testing.T) {
	t.Parallel()
	own, dir := gathered(t)
	got, err := GatheredNames(t.Context(), own, dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := Names{Own: []string{"LicenseRef-repository"}, Go: []string{"Zlib"}, Modules: map[string]ModuleNames{
		"example.com/a": {"v1.0.0", []string{"ISC"}}, "example.com/b": {"local", []string{"LicenseRef-example.com-b"}},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

func TestExpressionNamesWhatIsLinkedAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), "module example.com/main\n\ngo 1.26.0\n\nrequire (\n\texample.com/a v1.0.0\n"+
		"\texample.com/b v1.0.0\n)\n\n"+
		"replace example.com/a => ./a\n\nreplace example.com/b => ./b\n")
	write(t, filepath.Join(dir, "main.go"), "package main\n\nimport _ \"example.com/a\"\n\nfunc main() {}\n")
	for _, name := range []string{"a", "b"} {
		write(t, filepath.Join(dir, name, "go.mod"), "module example.com/"+name+"\n\ngo 1.26.0\n")
		write(t, filepath.Join(dir, name, name+".go"), "package "+name+"\n")
	}
	binary := filepath.Join(dir, "main")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, ".")
	build.Dir = dir
	build.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	names := Names{Own: []string{"Apache-2.0"}, Go: []string{"BSD-3-Clause"}, Modules: map[string]ModuleNames{
		"example.com/a": {"local", []string{"MIT", "Apache-2.0"}}, "example.com/b": {"local", []string{"ISC"}},
	}}
	file := filepath.Join(dir, "names.json")
	if err := names.write(file); err != nil {
		t.Fatal(err)
	}
	got, err := Expression([]string{file}, []string{binary})
	if want := "Apache-2.0 AND BSD-3-Clause AND MIT"; err != nil || got != want {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
	names.Modules["example.com/a"] = ModuleNames{"v1.0.0", []string{"MIT"}}
	if err := names.write(file); err != nil {
		t.Fatal(err)
	}
	if _, err := Expression([]string{file}, []string{binary}); err == nil ||
		!strings.Contains(err.Error(), "example.com/a@local is linked, and its license is not named") {
		t.Errorf("of another version of the module: %v", err)
	}
}

func TestEveryFieldIsPartOfTheKey(t *testing.T) {
	t.Parallel()
	recipetest.EachField(t, ListSpec{})
	recipetest.EachField(t, ModulesSpec{})
	recipetest.EachField(t, Spec{})
	recipetest.EachField(t, NamesSpec{})
}

// What release.yaml says stands for texts that nothing recognizes, and for nothing else.
func TestDeclaredLicensesAreForUnknownTexts(t *testing.T) {
	t.Parallel()
	own, dir := gathered(t)
	names, err := GatheredNames(t.Context(), own, dir, Declared{"example.com/a": "MIT", "example.com/b": "MIT OR Apache-2.0"})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "names.json")
	if err := names.write(file); err != nil {
		t.Fatal(err)
	}
	known, err := ReadNames(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		module module.Dependency
		want   string
	}{
		{module.Dependency{Path: "example.com/a", Version: "v1.0.0", Sum: "h1:a"}, "ISC"},
		{module.Dependency{Path: "example.com/b", Version: "v1.0.0", Replace: module.Version{Path: "./b"}}, "MIT OR Apache-2.0"},
	} {
		if got, ok := known.Module(tt.module); !ok || got != tt.want || Unnamed(got) {
			t.Errorf("%s: %q, %t, want %q", tt.module, got, ok, tt.want)
		}
	}
	if _, ok := known.Module(module.Dependency{Path: "example.com/a", Version: "v2.0.0"}); ok {
		t.Error("another version's license is known")
	}
	if known.Go() != "Zlib" || !Unnamed(known.Own()) {
		t.Errorf("Go's license is %q, and the repository's %q", known.Go(), known.Own())
	}
}
