// Schema checks bills of materials by the JSON schemas of their standards: SPDX 2.3 and CycloneDX 1.6.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

func main() {
	if err := check(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "schema:", err)
		os.Exit(1)
	}
	fmt.Println(len(os.Args)-1, "files are valid")
}

func check(files []string) error {
	spdx, err := module("github.com/anchore/syft", "schema/spdx-json/spdx-schema-2.3.json")
	if err != nil {
		return err
	}
	cyclonedx, err := module("github.com/CycloneDX/cyclonedx-go", "schema/bom-1.6.schema.json")
	if err != nil {
		return err
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	// CycloneDX' schema refers to two others by URL. That of signatures in JSON is published nowhere here: no document has any.
	licenses, err := open(filepath.Join(filepath.Dir(cyclonedx), "spdx.schema.json"))
	if err != nil {
		return err
	}
	for name, schema := range map[string]any{
		"spdx.schema.json": licenses, "jsf-0.82.schema.json": map[string]any{"definitions": map[string]any{"signature": false}},
	} {
		if err := c.AddResource("http://cyclonedx.org/schema/"+name, schema); err != nil {
			return err
		}
	}
	forms := map[string]*jsonschema.Schema{}
	for suffix, file := range map[string]string{".spdx.json": spdx, ".cdx.json": cyclonedx} {
		if forms[suffix], err = c.Compile(file); err != nil {
			return err
		}
	}
	for _, file := range files {
		checked := false
		for suffix, schema := range forms {
			if !strings.HasSuffix(file, suffix) {
				continue
			}
			value, err := open(file)
			if err == nil {
				err = schema.Validate(value)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			checked = true
		}
		if !checked {
			return fmt.Errorf("%s: no schema for it", file)
		}
	}
	return nil
}

func open(file string) (any, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return jsonschema.UnmarshalJSON(f)
}

// module returns the path of a file in a module, which is fetched if it is not here.
func module(path, file string) (string, error) {
	out, err := exec.Command("go", "mod", "download", "-json", path).Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	var found struct{ Dir string }
	if err := json.Unmarshal(out, &found); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return filepath.Join(found.Dir, filepath.FromSlash(file)), nil
}
