package conformance

import (
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	"slipway.build/pkg/mechanism/report"
	"slipway.build/pkg/prove/cluster"
)

// A Report has the results of the specs, and what they ran with.
type Report struct {
	Suite       string              `json:"suite"` // conformance, node-conformance, or e2e
	Cluster     string              `json:"cluster"`
	Version     string              `json:"version"`
	Focus       []string            `json:"focus,omitempty"`
	Skip        []string            `json:"skip,omitempty"`
	Procs       int                 `json:"procs"`
	Seconds     float64             `json:"seconds"`
	Log         string              `json:"log"`         // a file with the output of the suite
	Substitutes []cluster.TestImage `json:"substitutes"` // images that are not upstream's, though they have upstream's names
	Results     report.Results      `json:"specs"`
}

// NotPassed counts the specs that failed or did not run.
func (r Report) NotPassed() int { return r.Results.Count(report.Failed, report.NotRun) }

// Summary returns the line that counts results.
func (r Report) Summary() string { return r.Results.Summary("specs", r.took()) }

func (r Report) took() time.Duration { return time.Duration(r.Seconds * float64(time.Second)) }

// substitutes names the substituted images in a line, without their registry.
func (r Report) substitutes() string {
	var names []string
	for _, i := range r.Substitutes {
		names = append(names, path.Base(i.Name))
	}
	return fmt.Sprintf("%d of the images are not upstream's, but built with the release: %s", len(names), strings.Join(names, ", "))
}

// Text writes the specs that did not pass, each with its reason, then the summary, the log's name and the substituted images.
func (r Report) Text(w io.Writer) error {
	if err := r.Results.Explain(w, report.Failed, report.Skipped, report.NotRun); err != nil {
		return err
	}
	text := fmt.Sprintf("\n%s\nlog: %s\n", r.Summary(), r.Log)
	if len(r.Substitutes) > 0 {
		text += "images: " + r.substitutes() + "\n"
	}
	_, err := io.WriteString(w, text)
	return err
}

// JUnit writes a report as JUnit's XML, with a property for each substituted image.
func (r Report) JUnit(w io.Writer) error {
	var properties []report.Property
	for _, i := range r.Substitutes {
		properties = append(properties, report.Property{Name: "substitute for " + i.Name, Value: i.Title})
	}
	return r.Results.JUnit(w, "Kubernetes "+r.Version+" "+r.Suite, r.Suite, r.took(), properties...)
}
