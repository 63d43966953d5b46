package recipe

import (
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// packages are those of a program: pack imports archive, which compresses, and what is exempt.
var packages = map[string]map[string]string{
	"pack": {
		"pack.go":      "package pack\n\nimport (\n\t\"fmt\"\n\t_ \"slipway.build/pkg/archive\"\n)\n",
		"windows.go":   "//go:build windows\n\npackage pack\n\nimport _ \"slipway.build/pkg/mechanism/action\"\n",
		"pack_test.go": "package pack\n\nimport _ \"slipway.build/pkg/cli\"\n",
	},
	"archive": {"archive.go": "package archive\n\nimport _ \"github.com/klauspost/compress/flate\"\n"},
	"image":   {"image.go": "package image\n\nimport _ \"github.com/google/go-containerregistry/pkg/v1\"\n"},
	"release": {"purl.go": "package release\n\nconst form = \"pkg:\"\n"},
}

// load declares the packages, with other text where the file "package/file" is a key of edits.
func load(edits map[string]string, versions map[string]string) *program {
	p := &program{codes: map[string]*Code{}, version: func(module string) string { return versions[module] }}
	for name, files := range packages {
		sources := fstest.MapFS{}
		for file, text := range files {
			if edited, ok := edits[name+"/"+file]; ok {
				text = edited
			}
			sources[file] = &fstest.MapFile{Data: []byte(text)}
		}
		p.add(name, sources)
	}
	return p
}

func digests(p *program) map[string]string {
	found := map[string]string{}
	for name, c := range p.codes {
		found[name] = c.Digest()
	}
	return found
}

func TestACodeCoversWhatItImports(t *testing.T) {
	t.Parallel()
	p := load(nil, nil)
	for name, want := range map[string][]string{
		"pack":    {"github.com/klauspost/compress", "pkg/archive", "pkg/pack"},
		"archive": {"github.com/klauspost/compress", "pkg/archive"},
		"image": {
			"github.com/google/go-containerregistry", "github.com/klauspost/compress", "github.com/opencontainers/go-digest",
			"github.com/opencontainers/image-spec", "pkg/image",
		},
		"release": {"pkg/release"},
	} {
		if got := slices.Sorted(maps.Keys(p.codes[name].Covers())); !slices.Equal(got, want) {
			t.Errorf("%s covers %q, want %q", name, got, want)
		}
	}
}

func TestAnEditChangesWhatImportsIt(t *testing.T) {
	t.Parallel()
	before := digests(load(nil, nil))
	for _, c := range []struct {
		name            string
		edits, versions map[string]string
		want            []string
	}{
		{"a comment", map[string]string{"archive/archive.go": packages["archive"]["archive.go"] + "// fast"}, nil, []string{"archive", "pack"}},
		{"one that few import", map[string]string{"release/purl.go": "package release\n\nconst form = \"purl:\"\n"}, nil, []string{"release"}},
		{"a test", map[string]string{"pack/pack_test.go": "package pack\n"}, nil, nil},
		{"a file for another system", map[string]string{"pack/windows.go": "package pack\n"}, nil, []string{"pack"}},
		{"a module", nil, map[string]string{"github.com/klauspost/compress": "v2"}, []string{"archive", "image", "pack"}},
		{"a module that another one links", nil, map[string]string{"github.com/opencontainers/go-digest": "v2"}, []string{"image"}},
		{"a module that decides no bytes", nil, map[string]string{"github.com/spf13/cobra": "v2", "golang.org/x/sync": "v2"}, nil},
	} {
		var got []string
		for name, digest := range digests(load(c.edits, c.versions)) {
			if digest != before[name] {
				got = append(got, name)
			}
		}
		if slices.Sort(got); !slices.Equal(got, c.want) {
			t.Errorf("%s: changes %q, want %q", c.name, got, c.want)
		}
	}
}

func TestWhatIsForgottenIsAPanic(t *testing.T) {
	t.Parallel()
	for imported, want := range map[string]string{
		"slipway.build/pkg/new":      "pkg/new",
		"github.com/acme/compressor": "github.com/acme/compressor",
	} {
		p := load(map[string]string{"archive/archive.go": fmt.Sprintf("package archive\n\nimport _ %q\n", imported)}, nil)
		func() {
			defer func() {
				if text, _ := recover().(string); !strings.Contains(text, want) {
					t.Errorf("%s: panic %q", imported, text)
				}
			}()
			_ = p.codes["pack"].Digest()
			t.Errorf("%s is in no key", imported)
		}()
	}
}

func TestARecipeBeginsWithTheCode(t *testing.T) {
	t.Parallel()
	c := load(nil, nil).codes["release"]
	got := c.Recipe(struct{ Name string }{"a"}, "more=1")
	if want := []string{"pkg/release=" + c.Digest(), "more=1", `Name="a"`}; !slices.Equal(got, want) {
		t.Errorf("recipe %q, want %q", got, want)
	}
}

func TestARecipeFollowsVersionsAndReplacements(t *testing.T) {
	t.Parallel()
	info := &debug.BuildInfo{Deps: []*debug.Module{
		{Path: "example.com/a", Version: "v1.0.0", Sum: "h1:a"},
		{Path: "example.com/b", Version: "v1.0.0", Replace: &debug.Module{Path: "example.com/fork", Version: "v2.0.0", Sum: "h1:f"}},
	}}
	tests := []struct {
		info         *debug.BuildInfo
		module, want string
	}{
		{info, "example.com/a", "example.com/a@v1.0.0 h1:a"},
		{info, "example.com/b", "example.com/fork@v2.0.0 h1:f"},
		{info, "example.com/c", "unknown"},
		{nil, "example.com/a", "unknown"},
	}
	for _, test := range tests {
		if got := version(test.info, test.module); got != test.want {
			t.Errorf("%s: got %q, want %q", test.module, got, test.want)
		}
	}
}
