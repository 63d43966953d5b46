// Findings reads documents about vulnerabilities as others do: OpenVEX by its own library, SARIF 2.1.0 by its schema. It runs in the folder
// of this module.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/openvex/go-vex/pkg/vex"
	_ "github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif" // for its schema
	"github.com/santhosh-tekuri/jsonschema/v6"
)

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: findings VEX.json SARIF.json REPORT.json RELEASE.json")
		os.Exit(2)
	}
	if err := errors.Join(checkVEX(os.Args[1], os.Args[3], os.Args[4]), checkSARIF(os.Args[2])); err != nil {
		fmt.Fprintln(os.Stderr, "findings:", err)
		os.Exit(1)
	}
	fmt.Println("both are valid")
}

// A report is what slipway vulns --json says.
type report struct {
	Found []struct {
		ID      string
		Aliases []string
		PURL    string
		In      []struct {
			Artifact  string
			FixedBy   string
			Exception *struct{ Status vex.Status }
		}
	}
}

// A release is what release.json says of artifacts.
type release struct {
	Artifacts []struct{ Name, Kind, SHA256 string }
}

// checkVEX asks a document what a scanner would that has found what the report says in the artifacts of a release: about the vulnerability
// by each of its names, a program or image by its digest, and a package in that. Nothing that is asked comes from the document, which would
// agree with itself whatever is in it.
func checkVEX(file, reportFile, releaseFile string) error {
	document, err := vex.Open(file)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if len(document.Statements) == 0 || document.Author == "" || document.Timestamp == nil {
		return fmt.Errorf("%s: statements, an author and a time are wanted: %+v", file, document.Metadata)
	}
	for _, s := range document.Statements {
		if err := s.Validate(); err != nil {
			return fmt.Errorf("%s: %s: %w", file, s.Vulnerability.Name, err)
		}
	}
	var found report
	var made release
	if err := errors.Join(read(reportFile, &found), read(releaseFile, &made)); err != nil {
		return err
	}
	if len(found.Found) == 0 {
		return fmt.Errorf("%s: nothing is found, so nothing can be asked", reportFile)
	}
	var errs []error
	for _, f := range found.Found {
		want := map[string]vex.Status{} // by artifact
		for _, p := range f.In {
			want[p.Artifact] = vex.StatusAffected
			if p.FixedBy != "" {
				want[p.Artifact] = vex.StatusFixed
			}
			if p.Exception != nil {
				want[p.Artifact] = p.Exception.Status
			}
		}
		of := map[string]vex.Status{} // by digest, which programs may share
		for _, a := range made.Artifacts {
			if status, ok := want[a.Name]; ok {
				of[a.SHA256] = status
				delete(want, a.Name)
			}
		}
		for _, a := range made.Artifacts {
			for _, name := range append([]string{f.ID}, f.Aliases...) {
				if got := asked(document, name, a.SHA256, f.PURL); got != of[a.SHA256] {
					errs = append(errs, fmt.Errorf("%s: of %s in %s, %s, it says %q, want %q",
						file, name, a.Name, f.PURL, got, of[a.SHA256]))
				}
			}
		}
		for name := range want {
			errs = append(errs, fmt.Errorf("%s: %s is in %s, which the release does not have", reportFile, f.ID, name))
		}
	}
	return errors.Join(errs...)
}

// asked returns what a document says of a package in an artifact with a digest, or "".
func asked(document *vex.VEX, vulnerability, digest, purl string) (status vex.Status) {
	for _, s := range document.Matches(vulnerability, digest, []string{purl}) {
		if status != "" && status != s.Status {
			return status + " and " + s.Status
		}
		status = s.Status
	}
	return status
}

func read(file string, to any) error {
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, to)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

func checkSARIF(file string) error {
	text, err := schema()
	if err != nil {
		return err
	}
	form, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return err
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("sarif.json", form); err != nil {
		return err
	}
	compiled, err := c.Compile("sarif.json")
	if err != nil {
		return err
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	document, err := jsonschema.UnmarshalJSON(f)
	if err == nil {
		err = compiled.Validate(document)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// schema returns the schema of SARIF, which a library has as a constant of its own.
func schema() (string, error) {
	dir, err := exec.Command("go", "list", "-f", "{{.Dir}}", "github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif").Output()
	if err != nil {
		return "", err
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(strings.TrimSpace(string(dir)), "schema.go"), nil, 0)
	if err != nil {
		return "", err
	}
	longest := ""
	ast.Inspect(parsed, func(n ast.Node) bool {
		if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING && len(text.Value) > len(longest) {
			longest = text.Value
		}
		return true
	})
	return strconv.Unquote(longest)
}
