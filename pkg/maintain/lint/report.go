package lint

import (
	"fmt"
	"io"
	"strings"

	"slipway.build/pkg/mechanism/report"
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

// SARIF writes problems as [report.SARIF] does. Files are relative to the tree's root.
func SARIF(w io.Writer, problems []Problem) error {
	type object = report.Object
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
	return report.SARIF(w, "https://slipway.build/docs/testing", rules, results)
}
