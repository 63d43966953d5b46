package vulns

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"time"

	"slipway.build/pkg/mechanism/report"
	"slipway.build/pkg/release"
)

type object = report.Object

// OpenVEX writes reports as an OpenVEX document, version 0.2.0: see https://github.com/openvex/spec. Author is who states it. Nothing in
// it is random, and its time is that of the newest release, so that the same findings are the same bytes.
func OpenVEX(w io.Writer, author string, reports ...*Report) error {
	statements := []object{}
	var newest time.Time
	for _, r := range reports {
		statements = append(statements, r.statements()...)
		if r.date.After(newest) {
			newest = r.date
		}
	}
	document := object{
		"@context": "https://openvex.dev/ns/v0.2.0", "author": author, "timestamp": newest.UTC().Format(time.RFC3339), "version": 1,
		"statements": statements,
	}
	data, err := json.Marshal(document)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(data)
	document["@id"] = "https://openvex.dev/docs/public/vex-" + hex.EncodeToString(sum[:])
	return writeJSON(w, document)
}

// statements returns what OpenVEX says about a release.
func (r *Report) statements() []object {
	statements := []object{}
	for _, f := range r.Found {
		type key struct{ status, justification, reason string }
		var order []key
		products := map[key][]object{}
		for _, p := range f.In {
			k := key{status: "affected"}
			switch {
			case p.Exception != nil:
				k = key{p.Exception.Status, p.Exception.Justification, p.Exception.Reason}
			case p.fix != nil:
				k = key{"fixed", "", p.fix.evidence()}
			}
			if products[k] == nil {
				order = append(order, k)
			}
			products[k] = append(products[k], r.product(p, f.PURL))
		}
		for _, k := range order {
			s := object{"vulnerability": object{"name": f.ID, "aliases": f.Aliases}, "products": products[k], "status": k.status}
			if len(f.Aliases) == 0 {
				s["vulnerability"] = object{"name": f.ID}
			}
			switch {
			case k.status == "not_affected":
				s["justification"], s["impact_statement"] = k.justification, k.reason
			case k.status == "affected" && k.reason != "":
				s["action_statement"] = k.reason
			case k.status == "affected":
				s["action_statement"] = f.Mend
			default:
				s["status_notes"] = k.reason
			}
			statements = append(statements, s)
		}
	}
	for _, f := range r.only() {
		products := []object{}
		for _, p := range f.In {
			products = append(products, r.product(p, f.Modules...))
		}
		statements = append(statements, object{"vulnerability": object{"name": f.ID}, "products": products, "status": "fixed",
			"status_notes": f.evidence()})
	}
	return statements
}

// product is an artifact, with the components in it that a statement is about.
func (r *Report) product(p Place, components ...string) map[string]any {
	a := r.artifacts[p.Artifact]
	var parts []map[string]any
	for _, purl := range components {
		parts = append(parts, map[string]any{"@id": purl})
	}
	return map[string]any{
		"@id":           release.ProductPURL(a, r.Release),
		"hashes":        map[string]string{"sha-256": a.SHA256},
		"subcomponents": parts,
	}
}

// SARIF writes reports in the Static Analysis Results Interchange Format, version 2.1.0: a result for each vulnerability in each artifact.
// Of several releases, the artifacts' names begin with the version.
func SARIF(w io.Writer, reports ...*Report) error {
	rules, results := []object{}, []object{}
	seen := map[string]bool{}
	for _, r := range reports {
		for _, f := range r.Found {
			if !seen[f.ID] {
				seen[f.ID] = true
				rules = append(rules, f.rule())
			}
			for _, p := range f.In {
				at := location(p)
				if len(reports) > 1 {
					at = r.Release + "/" + at
				}
				results = append(results, r.result(f, p, at))
			}
		}
	}
	return report.SARIF(w, "https://slipway.build/docs/vulns", rules, results)
}

// scores are what code scanners read a severity from: the least score of CVSS that has it.
var scores = map[string]string{"low": "0.1", "medium": "4.0", "high": "7.0", "critical": "9.0"}

func (f *Found) rule() object {
	summary := oneLine(f.Summary)
	if summary == "" {
		summary = f.ID
	}
	properties := object{"tags": append([]string{"security"}, f.Aliases...)}
	if f.Severity != "" {
		properties["security-severity"] = scores[f.Severity]
	}
	return object{"id": f.ID, "shortDescription": object{"text": summary}, "properties": properties}
}

// result is a vulnerability in an artifact, which is at a location.
func (r *Report) result(f *Found, p Place, at string) object {
	result := object{
		"ruleId": f.ID, "level": "error",
		"message": object{"text": p.Artifact + " has " + f.Component + " " + f.Version + ": " + f.Mend},
		"locations": []object{{
			"physicalLocation": object{"artifactLocation": object{"uri": at}},
			"logicalLocations": []object{{"name": p.Artifact, "fullyQualifiedName": p.Artifact + "@sha256:" + r.artifacts[p.Artifact].SHA256}},
		}},
	}
	switch {
	case p.Exception != nil:
		result["suppressions"] = []object{{"kind": "external", "status": "accepted",
			"justification": p.Exception.Status + ", until " + p.Exception.Until + ": " + p.Exception.Reason}}
	case p.fix != nil:
		result["suppressions"] = []object{{"kind": "external", "status": "accepted", "justification": "fixed: " + p.fix.evidence()}}
	}
	return result
}

// location is a file of the release's folder, or the image.
func location(p Place) string {
	if len(p.Tarballs) > 0 {
		return p.Tarballs[0]
	}
	return p.Artifact
}
