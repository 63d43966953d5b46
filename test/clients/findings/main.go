// Findings reads documents about vulnerabilities as others do: OpenVEX by its own library, SARIF 2.1.0 by its schema. It runs in the folder
// of this module.
package main

import (
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
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: findings VEX.json SARIF.json")
		os.Exit(2)
	}
	if err := errors.Join(checkVEX(os.Args[1]), checkSARIF(os.Args[2])); err != nil {
		fmt.Fprintln(os.Stderr, "findings:", err)
		os.Exit(1)
	}
	fmt.Println("both are valid")
}

func checkVEX(file string) error {
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
		for _, p := range s.Products {
			if p.ID == "" || len(p.Subcomponents) == 0 {
				return fmt.Errorf("%s: %s: a product without a name or without its component", file, s.Vulnerability.Name)
			}
			// As grype asks about an image by its digest, and a package in it.
			for _, part := range p.Subcomponents {
				asked := document.Matches(string(s.Vulnerability.Name), string(p.Hashes[vex.SHA256]), []string{part.ID})
				if len(asked) == 0 || asked[0].Status != s.Status {
					return fmt.Errorf("%s: of %s in %s, %s, it says %+v, want %s", file, s.Vulnerability.Name, p.ID, part.ID, asked, s.Status)
				}
			}
		}
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
