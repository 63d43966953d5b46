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

// OpenVEX writes the report as an OpenVEX document, version 0.2.0: see https://github.com/openvex/spec. Author is who states it. Nothing in
// it is random, and its time is that of the release, so that the same findings are the same bytes.
func (r *Report) OpenVEX(w io.Writer, author string) error {
	type object = map[string]any
	statements := []object{}
	for _, f := range r.Found {
		type key struct{ status, justification, reason string }
		var order []key
		products := map[key][]object{}
		for _, p := range f.In {
			k := key{status: "affected"}
			if e := p.Exception; e != nil {
				k = key{e.Status, e.Justification, e.Reason}
			}
			if products[k] == nil {
				order = append(order, k)
			}
			products[k] = append(products[k], r.product(p, f))
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
	document := object{
		"@context": "https://openvex.dev/ns/v0.2.0", "author": author, "timestamp": r.date.UTC().Format(time.RFC3339), "version": 1,
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

// product is an artifact, with the component in it that is vulnerable.
func (r *Report) product(p Place, f *Found) map[string]any {
	a := r.artifacts[p.Artifact]
	return map[string]any{
		"@id":           release.ProductPURL(a, r.Release),
		"hashes":        map[string]string{"sha-256": a.SHA256},
		"subcomponents": []map[string]any{{"@id": f.PURL}},
	}
}

// SARIF writes the report in the Static Analysis Results Interchange Format, version 2.1.0.
func (r *Report) SARIF(w io.Writer) error {
	type object = report.Object
	rules, results := []object{}, []object{}
	seen := map[string]bool{}
	for _, f := range r.Found {
		if !seen[f.ID] {
			seen[f.ID] = true
			summary := oneLine(f.Summary)
			if summary == "" {
				summary = f.ID
			}
			rules = append(rules, object{"id": f.ID, "shortDescription": object{"text": summary},
				"properties": object{"tags": append([]string{"security"}, f.Aliases...)}})
		}
		for _, p := range f.In {
			result := object{
				"ruleId": f.ID, "level": "error",
				"message":   object{"text": p.Artifact + " has " + f.Component + " " + f.Version + ": " + f.Mend},
				"locations": []object{{"physicalLocation": object{"artifactLocation": object{"uri": location(p)}}}},
			}
			if e := p.Exception; e != nil {
				result["suppressions"] = []object{{"kind": "external", "status": "accepted",
					"justification": e.Status + ", until " + e.Until + ": " + e.Reason}}
			}
			results = append(results, result)
		}
	}
	return report.SARIF(w, "https://slipway.build/docs/vulns", rules, results)
}

// location is a file of the release's folder, or the image.
func location(p Place) string {
	if len(p.Tarballs) > 0 {
		return p.Tarballs[0]
	}
	return p.Artifact
}
