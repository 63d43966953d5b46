package lint

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// Text writes problems for people. Platforms are named unless a problem is on all of them, of which there are n.
func Text(w io.Writer, problems []Problem, n int) error {
	for _, p := range problems {
		text := p.String()
		if len(p.Platforms) > 0 && len(p.Platforms) < n {
			text += " (" + strings.Join(p.Platforms, ", ") + ")"
		}
		if _, err := fmt.Fprintln(w, text); err != nil {
			return err
		}
	}
	return nil
}

// SARIF writes problems in the Static Analysis Results Interchange Format, version 2.1.0. Files are relative to the tree's root.
func SARIF(w io.Writer, problems []Problem) error {
	type object = map[string]any
	rules, results := []object{}, []object{}
	seen := map[string]bool{}
	for _, p := range problems {
		if !seen[p.Check] {
			seen[p.Check] = true
			rules = append(rules, object{"id": p.Check})
		}
		result := object{"ruleId": p.Check, "level": "warning", "message": object{"text": p.Message}}
		if p.File != "" {
			result["locations"] = []object{{"physicalLocation": object{
				"artifactLocation": object{"uri": p.File},
				"region":           object{"startLine": p.Line, "startColumn": p.Column},
			}}}
		}
		results = append(results, result)
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(object{
		"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0",
		"runs": []object{{"tool": object{"driver": object{"name": "slipway", "rules": rules}}, "results": results}},
	})
}
