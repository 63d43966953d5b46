// Package verify checks a release's folder against its description, release.json.
//
// [Folder] checks every file: those that the description names must exist, complete and unchanged, and there must be no others, such
// as a tarball of an earlier request. With a public key, release.json and SHA256SUMS must be signed by it, see package sign. The [Report] is
// a value; text and JSON are views of it.
//
// What must never be in here: how a release is made, and which files it should have.
package verify

import (
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"slipway.build/pkg/mechanism/signature"
	"slipway.build/pkg/release"
	"slipway.build/pkg/ship/sign"
	"slipway.build/pkg/tree/input"
)

// A Status is the result of checking a file.
type Status string

// The statuses of files.
const (
	OK        Status = "ok"
	Missing   Status = "missing"
	Short     Status = "cut short"           // smaller than the release says
	Changed   Status = "changed"             // its size or a digest differs
	Stranger  Status = "not of this release" // the release does not name it
	BadSigned Status = "bad signature"
	Unchecked Status = "not checked" // a signature, without a key to check it by
)

// A File is the status of a file in a release's folder.
type File struct {
	Path   string `json:"path"`
	Status Status `json:"status"`
	Detail string `json:"detail,omitempty"` // what was found instead
}

// A Report is the status of a release's folder.
type Report struct {
	Folder    string    `json:"folder"`
	Version   string    `json:"version"`
	Commit    string    `json:"commit,omitempty"`
	Valid     bool      `json:"ok"`
	Signature Signature `json:"signature,omitempty"` // of a whole folder
	Key       string    `json:"key,omitempty"`       // that it was checked by, as its hint in bundles
	Problem   string    `json:"problem,omitempty"`   // why it is not the release that was wanted
	Files     []File    `json:"files"`               // by path
}

// A Signature says what is known of a release's signatures.
type Signature string

// What may be known.
const (
	Unsigned     Signature = "not signed"
	NotChecked   Signature = "not checked" // there was no key to check them by
	Good         Signature = "good"
	NotConvinced Signature = "bad" // a signature is missing, or wrong
)

// OK reports whether the folder holds the whole release and nothing else.
func (r *Report) OK() bool { return r.Valid }

// A Want is what a user asks of a release. The zero value asks for nothing.
type Want struct {
	Key     *signature.PublicKey // by which it is signed
	Version string               // that it has
	AtLeast string               // a version that it is not older than
}

// Folder compares the files in dir with the description there, and with what is wanted. It returns an error if it cannot read the
// description or a file, or if a wanted version is not one; the report says what is wrong with files.
func Folder(ctx context.Context, dir string, want Want) (*Report, error) {
	report, description, err := contents(ctx, dir)
	if err != nil {
		return nil, err
	}
	if want.Version != "" && report.Version != want.Version {
		report.Problem = "it is not " + want.Version
	}
	if want.AtLeast != "" {
		order, err := compareVersions(report.Version, want.AtLeast)
		if err != nil {
			return nil, err
		}
		if order < 0 {
			report.Problem = "it is older than " + want.AtLeast
		}
	}
	return report, report.signatures(dir, description, want.Key)
}

// Contents is like Folder, but does not look at signatures.
func Contents(ctx context.Context, dir string) (*Report, error) {
	report, _, err := contents(ctx, dir)
	return report, err
}

func contents(ctx context.Context, dir string) (*Report, []byte, error) {
	data, err := os.ReadFile(filepath.Join(dir, release.File))
	if err != nil {
		return nil, nil, err
	}
	described, err := release.Unmarshal(data)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", filepath.Join(dir, release.File), err)
	}
	report, err := folder(ctx, dir, described, nil)
	return report, data, err
}

// signatures adds the signatures in a folder, of which description is the release.json.
func (r *Report) signatures(dir string, description []byte, key *signature.PublicKey) error {
	found, err := sign.Check(dir, func(name string) ([]byte, error) {
		if name == release.File { // what was believed
			return description, nil
		}
		return os.ReadFile(filepath.Join(dir, name))
	}, key)
	if err != nil {
		return err
	}
	r.Signature = Unsigned
	if key != nil {
		r.Signature, r.Key = Good, key.Hint()
	}
	for _, f := range found {
		file := File{f.Name, OK, f.Problem}
		switch {
		case f.Missing:
			file.Status, r.Signature = Missing, NotConvinced
		case f.Problem != "":
			file.Status, r.Signature = BadSigned, NotConvinced
		case f.Name == release.RootFile:
		case key == nil:
			file.Status = Unchecked
			if r.Signature == Unsigned {
				r.Signature = NotChecked
			}
		}
		r.Files = append(r.Files, file)
	}
	r.finish()
	return nil
}

// finish sorts the files, and draws the conclusion.
func (r *Report) finish() {
	slices.SortFunc(r.Files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	r.Valid = r.Problem == "" && !slices.ContainsFunc(r.Files, func(f File) bool { return f.Status.bad() })
}

func (s Status) bad() bool { return s != OK && s != Unchecked }

// Files is like Folder, but checks only the named artifacts, which must be files of the release. The others need not exist.
func Files(ctx context.Context, dir string, described *release.Release, names ...string) (*Report, error) {
	for _, name := range names {
		if a, ok := described.Artifact(name); !ok || a.Path == "" {
			return nil, fmt.Errorf("%s: not a file of release %s", name, described.Version)
		}
	}
	return folder(ctx, dir, described, names)
}

// folder checks the named artifacts. Without names, it checks all of them, and that there are no other files.
func folder(ctx context.Context, dir string, described *release.Release, names []string) (*Report, error) {
	report := &Report{Folder: dir, Version: described.Version, Commit: described.Commit}
	var checked []release.Artifact
	for _, a := range described.Artifacts {
		if a.Path != "" && (len(names) == 0 || slices.Contains(names, a.Name)) {
			checked = append(checked, a)
		}
	}
	if len(checked) == 0 {
		return nil, fmt.Errorf("%s: names no files", filepath.Join(dir, release.File))
	}
	report.Files = make([]File, len(checked))
	g, within := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, a := range checked {
		g.Go(func() (err error) {
			report.Files[i], err = check(within, dir, a)
			if err == nil && report.Files[i].Status != OK && report.Files[i].Status != Missing && a.Kind == release.Inputs {
				_, err = members(within, dir, &report.Files[i])
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	if len(names) == 0 {
		strangers, err := strangers(dir, checked)
		if err != nil {
			return nil, err
		}
		for i, f := range strangers {
			if f.Path == input.Tarball {
				if strangers[i], err = beside(ctx, dir, described); err != nil {
					return nil, err
				}
			}
		}
		report.Files = append(report.Files, strangers...)
	}
	report.finish()
	return report, nil
}

// check compares a file with the artifact that it should be.
func check(ctx context.Context, dir string, a release.Artifact) (File, error) {
	file := filepath.Join(dir, filepath.FromSlash(a.Path))
	info, err := os.Lstat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return File{a.Path, Missing, ""}, nil
	case err != nil:
		return File{}, err
	case !info.Mode().IsRegular():
		return File{a.Path, Changed, "is not a regular file"}, nil
	case info.Size() < a.Size:
		return File{a.Path, Short, fmt.Sprintf("has %d bytes of %d", info.Size(), a.Size)}, nil
	case info.Size() > a.Size:
		return File{a.Path, Changed, fmt.Sprintf("has %d bytes, want %d", info.Size(), a.Size)}, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return File{}, err
	}
	defer f.Close()
	short, long := sha256.New(), sha512.New()
	if _, err := io.Copy(io.MultiWriter(short, long), reader{ctx, f}); err != nil {
		return File{}, fmt.Errorf("read %s: %w", file, err)
	}
	if sum := hex.EncodeToString(short.Sum(nil)); sum != a.SHA256 {
		return File{a.Path, Changed, fmt.Sprintf("its SHA-256 is %s, want %s", sum, a.SHA256)}, nil
	}
	if sum := hex.EncodeToString(long.Sum(nil)); sum != a.SHA512 {
		return File{a.Path, Changed, fmt.Sprintf("its SHA-512 is %s, want %s", sum, a.SHA512)}, nil
	}
	return File{a.Path, OK, ""}, nil
}

// strangers returns the files in the folder that are neither artifacts nor the description, nor signatures.
func strangers(dir string, artifacts []release.Artifact) ([]File, error) {
	known := map[string]bool{release.File: true}
	for _, name := range release.Signatures() {
		known[name] = true
	}
	for _, a := range artifacts {
		known[a.Path] = true
	}
	var found []File
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		if rel = filepath.ToSlash(rel); !known[rel] {
			found = append(found, File{rel, Stranger, ""})
		}
		return nil
	})
	return found, err
}

// A reader stops when its context ends.
type reader struct {
	ctx context.Context
	r   io.Reader
}

func (r reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}

// Text writes a line for each file, and a summary.
func (r *Report) Text(w io.Writer) error {
	bad := 0
	for _, f := range r.Files {
		text := string(f.Status)
		if f.Status == OK {
			text = "OK"
		}
		if f.Status.bad() {
			bad++
		}
		if f.Detail != "" {
			text += ": " + f.Detail
		}
		if _, err := fmt.Fprintf(w, "%s: %s\n", f.Path, text); err != nil {
			return err
		}
	}
	what := "release " + r.Version
	if r.Version == "" {
		what = r.Folder // of inputs that are too damaged to say what they are
	}
	sum := fmt.Sprintf("%s: %d files as described", what, len(r.Files))
	switch r.Signature {
	case Good:
		sum += ", signed by the key " + r.Key
	case NotChecked:
		sum += "; signatures not checked"
	case Unsigned:
		sum += "; intact, not signed"
	}
	if r.Problem != "" {
		sum += "; but " + r.Problem
	}
	if bad > 0 {
		sum = fmt.Sprintf("%s: %d of %d files are not as described", what, bad, len(r.Files))
	}
	_, err := fmt.Fprintln(w, sum)
	return err
}

// JSON writes the report as JSON.
func (r *Report) JSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}
