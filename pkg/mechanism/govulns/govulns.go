// Package govulns asks a database of Go's vulnerabilities about Go code, by govulncheck.
//
// The question is a [Binary] by its parts, so that stripped programs can be asked about: govulncheck itself knows no packages of these, and
// takes every vulnerability of a module for one of the program. A vulnerability is found if a package that it names is linked. Whether
// the function that it names is called, or inlined, nobody can tell from a program alone.
//
// What must never be in here: what programs are for, and what becomes of findings.
package govulns

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/vuln/scan"

	"slipway.build/pkg/mechanism/badrequest"
)

// A Binary is a program, or a go.mod, by what it consists of.
type Binary struct {
	Package  string   // of main
	Go       string   // version, as in go1.26.8
	OS, Arch string   // by Go's names
	Modules  []Module // that it links
	Packages []string // that it links, by import path; none means that all of its modules' count
}

// A Module is a version of a module.
type Module struct {
	Path    string
	Version string
	Replace *Module `json:",omitempty"` // where the code comes from instead
}

// A Vulnerability is an entry of the database.
type Vulnerability struct {
	ID      string   `json:"id"`                // as in GO-2026-1234
	Aliases []string `json:"aliases,omitempty"` // such as CVE-2026-1234
	Summary string   `json:"summary,omitempty"`
}

// Name returns the name that most people know: that of its CVE, if it has one.
func (v Vulnerability) Name() string {
	if at := slices.IndexFunc(v.Aliases, func(name string) bool { return strings.HasPrefix(name, "CVE-") }); at >= 0 {
		return v.Aliases[at]
	}
	return v.ID
}

// A Finding is a vulnerable module of a binary.
type Finding struct {
	ID      string
	Module  string // "stdlib" is Go's standard library
	Version string // that is linked; of the standard library, v1.26.8
	Fixed   string // version, or "" if there is none yet
	Package string // that is linked; empty if only modules were asked about
}

// Check returns an error if a database cannot be asked: if its address is no file:// or https:// URL, or if there is none.
func Check(db string) error {
	u, err := url.Parse(db)
	if err != nil {
		return badrequest.Mark(err)
	}
	switch u.Scheme {
	case "http", "https":
		return nil
	case "file":
		_, err := os.Stat(filepath.Join(filepath.FromSlash(u.Path), "index", "modules.json"))
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%s is no database of Go's vulnerabilities: %w", db, err)
		}
		return err
	}
	return badrequest.Mark(fmt.Errorf("%q is no address of a database: want file:///FOLDER or https://HOST", db))
}

// Scan returns what a database knows against a binary: each finding once, by ID and package.
func Scan(ctx context.Context, db string, b Binary) ([]Finding, map[string]Vulnerability, error) {
	if err := Check(db); err != nil {
		return nil, nil, err
	}
	question, err := b.blob()
	if err != nil {
		return nil, nil, err
	}
	f, err := os.CreateTemp("", "slipway-govulns-")
	if err != nil {
		return nil, nil, err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(question)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, nil, err
	}
	level := "package"
	if len(b.Packages) == 0 {
		level = "module"
	}
	cmd := scan.Command(ctx, "-mode=binary", "-scan="+level, "-format=json", "-db="+db, f.Name())
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	if err := cmd.Wait(); err != nil {
		return nil, nil, fmt.Errorf("ask %s: %w%s", db, err, strings.TrimRight(" "+problems.String(), "\n "))
	}
	return parse(&out, level == "package")
}

// blob returns a binary in the form that govulncheck -mode=extract gives it.
func (b Binary) blob() ([]byte, error) {
	type symbol struct {
		Pkg  string `json:"pkg"`
		Name string `json:"name"`
	}
	symbols := []symbol{}
	for _, p := range b.Packages {
		symbols = append(symbols, symbol{p, "init"}) // nobody asks about its functions
	}
	var data bytes.Buffer
	e := json.NewEncoder(&data)
	err := errors.Join(
		e.Encode(map[string]string{"name": "govulncheck-extract", "version": "0.1.0"}),
		e.Encode(map[string]any{
			"path": b.Package, "modules": b.Modules, "pkgSymbols": symbols, "goVersion": b.Go, "goos": b.OS, "goarch": b.Arch,
		}))
	return data.Bytes(), err
}

// parse reads govulncheck's messages.
func parse(from io.Reader, packages bool) ([]Finding, map[string]Vulnerability, error) {
	var found []Finding
	known := map[string]Vulnerability{}
	for d := json.NewDecoder(from); ; {
		var m struct {
			OSV     *Vulnerability
			Finding *struct {
				OSV   string
				Fixed string `json:"fixed_version"`
				Trace []struct{ Module, Version, Package string }
			}
		}
		err := d.Decode(&m)
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, nil, fmt.Errorf("what govulncheck says: %w", err)
		}
		switch {
		case m.OSV != nil:
			known[m.OSV.ID] = *m.OSV
		case m.Finding != nil && len(m.Finding.Trace) > 0:
			at := m.Finding.Trace[0]
			if (at.Package != "") == packages {
				found = append(found, Finding{m.Finding.OSV, at.Module, at.Version, m.Finding.Fixed, at.Package})
			}
		}
	}
	slices.SortFunc(found, func(a, b Finding) int {
		return slices.Compare([]string{a.ID, a.Module, a.Package}, []string{b.ID, b.Module, b.Package})
	})
	return slices.Compact(found), known, nil
}
