package patch

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// there is the tree that FuzzGitAgrees patches.
var there = files{
	"pkg/a.go":                        numbered(1, 20),
	"pkg/b.go":                        "package b\n\nconst Text = \"a=b\"\n",
	"pkg/dos.go":                      "one\r\ntwo\r\nthree\r\n",
	"pkg/empty":                       "",
	"pkg/end":                         "one\ntwo",
	"pkg/bin":                         "\x00\x01\x02" + numbered(1, 5),
	"staging/src/k8s.io/api/types.go": "package api\n\ntype Pod struct{}\n",
}

// changed returns the tree with some files changed, or removed if they are nil.
func changed(pairs map[string]string) files {
	all := maps.Clone(there)
	for name, text := range pairs {
		if all[name] = text; text == "-" {
			delete(all, name)
		}
	}
	return all
}

// aboutMail finds what git am says of a mail that slipway does not send on: its author and date, or that it is a cover letter.
var aboutMail = regexp.MustCompile(`ident|Patch is empty|invalid date|email|could not parse patch|cannot convert|format detection failed`)

// gitReads returns the tree as git makes it of a patch: git am, if that takes it for a mail, and git apply otherwise. Sure is false if git
// stopped at what is no matter of slipway's, such as a mail without an author.
func gitReads(t testing.TB, patch []byte) (result files, sure bool, err error) {
	t.Helper()
	dir := t.TempDir()
	there.write(t, dir)
	file := filepath.Join(t.TempDir(), "a.patch")
	if err := os.WriteFile(file, patch, 0o644); err != nil {
		t.Fatal(err)
	}
	args := []string{"apply", "--whitespace=nowarn", file}
	if IsMail(patch) {
		mustGit(t, dir, "init", "-q")
		mustGit(t, dir, "add", "-A")
		mustGit(t, dir, "commit", "-q", "-m", "A")
		args = []string{"am", "--quiet", "--no-scissors", "--keep-cr", file}
		if dosHeader.Match(patch) {
			args[3] = "--no-keep-cr"
		}
	}
	if out, err := runGit(t, dir, args...); err != nil {
		return nil, !aboutMail.MatchString(out), errors.New(out)
	}
	result = files{}
	err = filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			if e.Name() == ".git" {
				return fs.SkipDir
			}
			return nil
		}
		data, err := os.ReadFile(name)
		rel, _ := filepath.Rel(dir, name)
		result[filepath.ToSlash(rel)] = string(data)
		return err
	})
	return result, true, err
}

// slipwayReads does the same with the code here. Sure is false where slipway refuses by its own rules, or passes over changes.
func slipwayReads(t testing.TB, patch []byte) (result files, sure bool, err error) {
	p, err := Parse("a.patch", patch)
	if err == nil {
		err = p.AgreesWithGit(t.Context())
	}
	if err != nil {
		invalid, ok := errors.AsType[*InvalidError](err)
		if !ok || invalid.Path != "" {
			return nil, false, err
		}
		own := strings.Contains(invalid.Why, "CR LF") || strings.Contains(invalid.Why, "headers of git")
		return nil, !own && !malformed(patch), err
	}
	o := NewOverlay(kubernetes(t), there)
	r, err := o.Apply(p)
	if err != nil {
		return nil, true, err
	}
	if r.Conflict != nil {
		return nil, len(r.Skipped) == 0 && !strings.Contains(r.Conflict.Why, "its index line"), r.Conflict
	}
	result = maps.Clone(there)
	for name, c := range o.Changes() {
		if result[name] = string(c.Data); c.Removed {
			delete(result, name)
		}
	}
	return result, r.Verdict != Upstream && len(r.Skipped) == 0, nil
}

var fragmentHeader = regexp.MustCompile(`^@@ -\d+(,\d+)? \+\d+(,\d+)? @@`)

// malformed reports whether a patch has a line that begins like a header and is none, such as one that was cut off. Git ends a patch
// there, or goes on with the next line; slipway refuses it.
func malformed(patch []byte) bool {
	for line := range bytes.Lines(patch) {
		if bytes.HasPrefix(line, []byte("@@ -")) && !fragmentHeader.Match(line) ||
			bytes.HasPrefix(line, []byte("diff --git")) && bytes.Count(line, []byte(`"`))%2 == 1 {
			return true
		}
	}
	return false
}

// FuzzGitAgrees holds the parser and what it makes of patches against git: it accepts what git accepts, and makes the same of it.
func FuzzGitAgrees(f *testing.F) {
	edit := func(text, old, new string) string { return strings.Replace(text, old, new, 1) }
	a := there["pkg/a.go"]
	for _, c := range []map[string]string{
		{"pkg/a.go": edit(a, "line 9\n", "line nine\n")},
		{"pkg/a.go": edit(edit(a, "line 3\n", ""), "line 17\n", "line 17\nmore\n"), "pkg/b.go": "package b\n\nconst Text = \"c=d\"\n"},
		{"pkg/a.go": "-", "pkg/c.go": a},
		{"pkg/a.go": "-", "pkg/c.go": edit(a, "line 9\n", "line nine\n")},
		{"pkg/empty": "-"}, {"pkg/new": ""}, {"pkg/new.go": "package new\n"}, {"pkg/b.go": "-"}, {"pkg/empty": "more\n"},
		{"pkg/dos.go": "one\r\nTWO\r\nthree\r\n"}, {"pkg/end": "one\nTWO"}, {"pkg/end": "one\ntwo\n"},
		{"pkg/bin": "\x00\x01\x03" + a}, {"pkg/bin2": "\x00\x05"},
		{"staging/src/k8s.io/api/types.go": "package api\n\ntype Pod struct{ Name string }\n"},
	} {
		mail := formatPatch(f, there, changed(c))
		f.Add(mail)
		if i := bytes.Index(mail, []byte("diff --git")); i >= 0 {
			f.Add(mail[i:])
		}
	}
	for _, text := range mailSeeds(f) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, patch []byte) {
		got, ours, err := slipwayReads(t, patch)
		if !ours {
			return
		}
		want, gits, gitErr := gitReads(t, patch)
		switch {
		case !gits:
		case err == nil && gitErr != nil:
			t.Errorf("accepted, and git: %v", gitErr)
		case err != nil && gitErr == nil && !maps.Equal(want, there):
			t.Errorf("%v, and git accepts it", err)
		case err == nil && !maps.Equal(got, want):
			t.Errorf("made %q, and git %q", got, want)
		}
	})
}

// mailSeeds are mails in the encodings of mail programs.
func mailSeeds(t testing.TB) map[string][]byte {
	t.Helper()
	names, err := filepath.Glob(filepath.Join("testdata", "mails", "*"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no mails: %v", err)
	}
	all := map[string][]byte{}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(name)] = data
	}
	return all
}

// Every mail in testdata makes the same change of pkg/b.go, in the encoding of its name. But a program that lets text flow has joined the
// lines that end with a space, and git refuses what it has made.
func TestMailsAreDecodedAsGitDecodesThem(t *testing.T) {
	t.Parallel()
	for name, mail := range mailSeeds(t) {
		got, sure, err := slipwayReads(t, mail)
		want, _, gitErr := gitReads(t, mail)
		if refused := name == "flowed"; (err != nil) != refused || (gitErr != nil) != refused || !sure {
			t.Errorf("%s: %v, git %v", name, err, gitErr)
			continue
		} else if refused {
			continue
		}
		if !maps.Equal(got, want) || got["pkg/b.go"] != "package b\n\nconst Text = \"c=d\" // ü\n" {
			t.Errorf("%s: made %q, git %q", name, got["pkg/b.go"], want["pkg/b.go"])
		}
	}
}

func TestDamagedPatchIsNoticed(t *testing.T) {
	t.Parallel()
	mail := formatPatch(t, there, changed(map[string]string{"pkg/b.go": "package b\n\nconst Text = \"c=d\"\n"}))
	damaged := bytes.Replace(mail, []byte(`+const Text = "c=d"`), []byte(`+const Text = "c=3Dd"`), 1)
	if _, _, err := slipwayReads(t, damaged); err == nil || !strings.Contains(err.Error(), "its index line names another result") {
		t.Errorf("error %v", err)
	}
	for what, text := range map[string][]byte{
		"as it was made": mail, "without an index line": regexp.MustCompile(`(?m)^index .*\n`).ReplaceAll(damaged, nil),
	} {
		if _, _, err := slipwayReads(t, text); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}
