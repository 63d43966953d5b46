package diff

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"slipway.build/pkg/mechanism/checksum"
	"slipway.build/pkg/release"
)

// Compare compares two files, or two folders with all that is in them. The error says what could not be read.
func Compare(ctx context.Context, a, b string) (*Report, error) {
	r := &Report{A: a, B: b}
	x, err := os.Stat(a)
	if err != nil {
		return nil, err
	}
	y, err := os.Stat(b)
	if err != nil {
		return nil, err
	}
	c := &walker{ctx: ctx, report: r, programs: map[[2]string]File{}}
	switch {
	case x.IsDir() != y.IsDir():
		return nil, fmt.Errorf("compare %s and %s: one is a folder, the other a file", a, b)
	case x.IsDir():
		err = c.folders(a, b)
	default:
		err = c.files(filepath.Base(a), onDisk(a), onDisk(b), nil)
	}
	if err != nil {
		return nil, fmt.Errorf("compare %s and %s: %w", a, b, err)
	}
	r.settle()
	return r, nil
}

// A walker compares files one by one. It compares a pair of programs once, since releases hold a program several times.
type walker struct {
	ctx      context.Context
	report   *Report
	programs map[[2]string]File
}

// A member is a file in a folder or an archive: its metadata, and where its content is.
type member struct {
	header string // metadata that must be the same, as text; empty for files outside archives
	sum    string // SHA-256 in hex; "" if it is not known
	open   func() (io.ReadCloser, error)
}

// folders compares the files in two folders.
func (c *walker) folders(a, b string) error {
	listA, err := list(a)
	if err != nil {
		return err
	}
	listB, err := list(b)
	if err != nil {
		return err
	}
	for _, name := range names(listA, listB) {
		f := File{Name: name}
		x, inA := listA[name]
		y, inB := listB[name]
		switch {
		case !inA:
			f.add("file", "only in B")
		case !inB:
			f.add("file", "only in A")
		case x.Mode().Type() != y.Mode().Type():
			f.add("file", "%s and %s", x.Mode().Type(), y.Mode().Type())
		case x.Mode().Type() == fs.ModeSymlink:
			ta, errA := os.Readlink(filepath.Join(a, name))
			tb, errB := os.Readlink(filepath.Join(b, name))
			if errA != nil || errB != nil || ta != tb {
				f.add("file", "a link to %s, and to %s", ta, tb)
			}
		case !x.Mode().Type().IsRegular():
			f.add("file", "can't be compared: neither a file nor a link")
		default:
			if x.Mode().Perm() != y.Mode().Perm() {
				f.add("mode", "%s and %s", x.Mode(), y.Mode())
			}
			from, to := onDisk(filepath.Join(a, name)), onDisk(filepath.Join(b, name))
			if err := c.files(name, from, to, f.Reasons); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			continue
		}
		c.done(f)
	}
	return nil
}

// names returns the names in one of two maps, sorted.
func names[V any](a, b map[string]V) []string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

// differs reports whether one of the files from a place of the report on is different.
func (c *walker) differs(from int) bool {
	return slices.ContainsFunc(c.report.Files[from:], func(f File) bool { return f.Verdict == Different })
}

func (c *walker) done(f File) {
	f.settle()
	c.report.Files = append(c.report.Files, f)
}

// list lists the files in a folder and those below it.
func list(dir string) (map[string]fs.FileInfo, error) {
	files := map[string]fs.FileInfo{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files[name], err = d.Info()
		return err
	})
	return files, err
}

// onDisk returns a file as a member.
func onDisk(name string) member {
	return member{open: func() (io.ReadCloser, error) { return os.Open(name) }}
}

func (m member) read() ([]byte, error) {
	r, err := m.open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// files compares two files of one name, for which reasons are known already.
func (c *walker) files(name string, a, b member, reasons []Reason) error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	f := File{Name: name, Reasons: reasons}
	var err error
	if a.sum, err = sumOf(a); err != nil {
		return err
	}
	if b.sum, err = sumOf(b); err != nil {
		return err
	}
	switch {
	case a.sum == b.sum:
	case isSums(name):
		err = compareSums(a, b, &f)
	case name == release.File:
		err = descriptions(a, b, &f)
	case isAPI(name):
		err = compareAPIs(a, b, &f)
	case isArchive(name):
		return c.archives(a, b, f)
	default:
		var known bool
		var old File
		if old, known = c.programs[[2]string{a.sum, b.sum}]; !known {
			old, err = c.contents(a, b)
			c.programs[[2]string{a.sum, b.sum}] = old
		}
		f.Reasons = append(f.Reasons, old.Reasons...)
	}
	if err != nil {
		return err
	}
	c.done(f)
	return nil
}

func (c *walker) contents(a, b member) (File, error) {
	var f File
	x, err := a.read()
	if err != nil {
		return f, err
	}
	y, err := b.read()
	if err != nil {
		return f, err
	}
	compareBytes(x, y, &f)
	return f, nil
}

func isSums(name string) bool { return name == "SHA256SUMS" || name == "SHA512SUMS" }

// compareSums compares checksum files.
func compareSums(a, b member, f *File) error {
	x, err := claims(a)
	if err != nil {
		return err
	}
	y, err := claims(b)
	if err != nil {
		return err
	}
	var differ []string
	for _, name := range names(x, y) {
		switch {
		case y[name] == "":
			differ = append(differ, name+" only in A")
		case x[name] == "":
			differ = append(differ, name+" only in B")
		case x[name] != y[name]:
			differ = append(differ, name)
		}
	}
	f.addAll("sums", "%d lines differ", differ)
	if len(f.Reasons) == 0 {
		f.add("content", "the same sums, written in another way")
	}
	return nil
}

// claims reads the lines of a checksum file: sums by name.
func claims(m member) (map[string]string, error) {
	text, err := m.read()
	if err != nil {
		return nil, err
	}
	return checksum.Parse(text)
}
