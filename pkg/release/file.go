package release

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ErrInvalid says that a release.json is malformed or contradicts itself.
var ErrInvalid = errors.New("not a description of a release")

// Marshal returns the content of release.json.
func (r *Release) Marshal() ([]byte, error) { return EncodeJSON(r, "  ") }

// EncodeJSON returns a value as JSON that people can read: without escapes for HTML, with a final newline, and indented.
func EncodeJSON(v any, indent string) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	err := e.Encode(v)
	return b.Bytes(), err
}

// DecodeJSON reads a value, strictly: unknown keys and further data are errors.
func DecodeJSON(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); err == nil {
		return errors.New("more data follows it")
	}
	return nil
}

// Read reads the description of the release in a folder. The error is fs.ErrNotExist if there is none, and ErrInvalid if it is
// malformed or inconsistent.
func Read(dir string) (*Release, error) {
	file := filepath.Join(dir, File)
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	r, err := Unmarshal(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return r, nil
}

// Unmarshal reads the content of a release.json, strictly: unknown keys, duplicate names, dangling references and paths that lead
// out of the release's folder are errors.
func Unmarshal(data []byte) (*Release, error) {
	var form struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(data, &form); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if form.Format != Format {
		return nil, fmt.Errorf("%w: its format is %d, and this program reads %d", ErrInvalid, form.Format, Format)
	}
	var r Release
	if err := DecodeJSON(data, &r); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if err := r.check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	r.renamePackages()
	return &r, nil
}

// check returns an error if the description contradicts itself.
func (r *Release) check() error {
	names := make(map[string]bool, len(r.Artifacts))
	paths := map[string]bool{}
	for _, a := range r.Artifacts {
		switch {
		case a.Name == "":
			return errors.New("an artifact has no name")
		case names[a.Name]:
			return fmt.Errorf("artifact %s: named twice", a.Name)
		case !isHex(a.SHA256, 64) || !isHex(a.SHA512, 128):
			return fmt.Errorf("artifact %s: a digest is malformed", a.Name)
		case a.Path != "" && (!fs.ValidPath(a.Path) || a.Path == "." || strings.Contains(a.Path, `\`)):
			return fmt.Errorf("artifact %s: path %q leads out of the folder", a.Name, a.Path)
		case a.Path == File || paths[a.Path]:
			return fmt.Errorf("artifact %s: path %q is taken", a.Name, a.Path)
		}
		names[a.Name] = true
		if a.Path != "" {
			paths[a.Path] = true
		}
	}
	for _, a := range r.Artifacts {
		for _, of := range a.Of {
			if !names[of] {
				return fmt.Errorf("artifact %s: refers to %s, which is not in the release", a.Name, of)
			}
		}
		for _, m := range a.Members {
			if !names[m.Artifact] {
				return fmt.Errorf("artifact %s: member %s is %s, which is not in the release", a.Name, m.Path, m.Artifact)
			}
		}
	}
	return nil
}

// isHex reports whether s consists of that many lower-case hexadecimal digits.
func isHex(s string, digits int) bool {
	return len(s) == digits && strings.Trim(s, "0123456789abcdef") == ""
}
