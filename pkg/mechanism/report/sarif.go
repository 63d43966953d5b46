package report

import (
	"encoding/json"
	"io"
)

// An Object is one of JSON.
type Object = map[string]any

// SARIF writes results in the Static Analysis Results Interchange Format, version 2.1.0, with the rules that they name. Both have the
// fields of the format's result and reportingDescriptor objects. Information is the address of a page about the rules.
func SARIF(w io.Writer, information string, rules, results []Object) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(Object{
		"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0",
		"runs": []Object{{
			"tool":    Object{"driver": Object{"name": "slipway", "informationUri": information, "rules": rules}},
			"results": results,
		}},
	})
}
