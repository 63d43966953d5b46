package pack

import (
	"context"
	"embed"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/archive"
	"slipway.build/pkg/mechanism/checksum"
	"slipway.build/pkg/mechanism/recipe"
)

//go:embed *.go
var sources embed.FS

var code = recipe.Of("make/pack", sources)

// A Spec decides a tarball's bytes, together with the contents of the files that it names. Paths are relative to the tree's root and
// separated by slashes.
type Spec struct {
	Name    string    // of the file
	Top     string    // the folder that all members are below; empty for the source tarball
	Time    time.Time // of all members
	Members []Member
	Texts   []Text
	Values  []Value // for placeholders in members with Fill

	// Tree identifies members that List returns, and that are neither files below the root nor texts.
	Tree string
}

// A Member is a part of a tarball: a file, or everything in a folder.
type Member struct {
	From   string // ends in "/" if it is a folder
	To     string // below Top: the name of the file, or of the folder that gets the contents
	Unpack bool   // From is a tar, whose files come below To
	Fill   bool   // replace placeholders in YAML files
	Last   bool   // for a file that changes more often than others: it comes after them, as do texts and files with placeholders
}

// A Text is a small member; the spec has its content.
type Text struct{ Name, Content string }

// A Value replaces a placeholder in a manifest.
type Value struct{ Placeholder, Value string }

// A Place says where tarballs are made, and which members they have that are not files of the tree. Its paths decide no bytes.
type Place struct {
	Root     string // of the tree, absolute
	Tarballs string // folder for tarballs, relative to Root
	Sums     string // folder for the files with their SHA-512, relative to Root
	Cache    string // absolute; holds compressed contents from run to run

	// List, if not nil, returns more members. Inputs are the files that these depend on, and Code identifies the code that makes
	// the list.
	List   List
	Inputs []string
	Code   string
}

// Tarball returns the path of the tarball of that name.
func (p Place) Tarball(name string) string { return p.Tarballs + "/" + name }

// SHA512 returns the path of the file that has the SHA-512 of the tarball of that name, in hex.
func (p Place) SHA512(name string) string { return p.Sums + "/" + name }

// Action returns the action that makes a tarball.
func Action(s Spec, at Place) *action.Action {
	inputs := slices.Clone(at.Inputs)
	for _, m := range s.Members {
		inputs = append(inputs, m.From)
	}
	tar, sum := at.Tarball(s.Name), at.SHA512(s.Name)
	return &action.Action{
		ID:      "package " + s.Name,
		Phase:   "package",
		Recipe:  code.Recipe(s, at.Code),
		Inputs:  inputs,
		Outputs: []string{tar, sum},
		Run: func(ctx context.Context, t *action.Task) error {
			entries, err := s.entries(ctx, at, t.Sum)
			if err != nil {
				return err
			}
			packer := archive.Packer{Cache: at.Cache, Time: s.Time}
			digest, err := checksum.Create(t.Path(tar), func(w io.Writer) error { return packer.TarGz(ctx, w, entries) })
			if err != nil {
				return err
			}
			t.SetDigest(tar, digest.SHA256)
			return os.WriteFile(t.Path(sum), []byte(digest.SHA512+"\n"), 0o644)
		},
	}
}

// entries returns the members of a tarball. Sum returns the SHA-256 of an input, or "" if it is not known.
func (s Spec) entries(ctx context.Context, at Place, sum func(input string) string) ([]archive.Entry, error) {
	var entries []archive.Entry
	for _, t := range s.Texts {
		entries = append(entries, archive.Entry{Name: path.Join(s.Top, t.Name), Mode: 0o644, Data: []byte(t.Content), Last: true})
	}
	for _, m := range s.Members {
		more, err := s.member(m, at.Root, sum)
		if err != nil {
			return nil, err
		}
		entries = append(entries, more...)
	}
	if at.List == nil {
		return entries, nil
	}
	more, err := at.List(ctx)
	return append(entries, more...), err
}

func (s Spec) member(m Member, root string, sum func(string) string) ([]archive.Entry, error) {
	from, to := filepath.Join(root, filepath.FromSlash(m.From)), path.Join(s.Top, m.To)
	if strings.HasSuffix(m.From, "/") {
		entries, err := Folder(from, to, func(rel string) string { return sum(m.From + rel) })
		if err != nil || !m.Fill {
			return entries, err
		}
		return s.fill(entries)
	}
	if m.Unpack {
		entries, err := archive.ReadTar(from)
		for i := range entries {
			entries[i].Name = path.Join(to, entries[i].Name)
		}
		return entries, err
	}
	info, err := os.Stat(from)
	if err != nil {
		return nil, err
	}
	return []archive.Entry{{Name: to, Mode: info.Mode().Perm(), Path: from, Sum: sum(m.From), Last: m.Last}}, nil
}

// fill replaces the placeholders in YAML and TOML files.
func (s Spec) fill(entries []archive.Entry) ([]archive.Entry, error) {
	var replaced []string
	for _, v := range s.Values {
		replaced = append(replaced, v.Placeholder, v.Value)
	}
	replacer := strings.NewReplacer(replaced...)
	for i, e := range entries {
		if ext := path.Ext(e.Name); ext != ".yaml" && ext != ".toml" {
			continue
		}
		data, err := os.ReadFile(e.Path)
		if err != nil {
			return nil, err
		}
		entries[i] = archive.Entry{Name: e.Name, Mode: e.Mode, Data: []byte(replacer.Replace(string(data))), Last: true}
	}
	return entries, nil
}

// Folder returns the files and symbolic links below dir as members below top. Sum returns a file's SHA-256, or "" if it is not known.
func Folder(dir, top string, sum func(rel string) string) ([]archive.Entry, error) {
	var entries []archive.Entry
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		e := archive.Entry{Name: path.Join(top, rel), Mode: info.Mode() & (fs.ModeType | fs.ModePerm)}
		if d.Type() == fs.ModeSymlink {
			if e.Link, err = os.Readlink(name); err != nil {
				return err
			}
		} else {
			e.Path, e.Sum = name, sum(rel)
		}
		entries = append(entries, e)
		return nil
	})
	return entries, err
}
