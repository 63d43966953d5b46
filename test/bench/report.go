package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
)

// A Report has all results of a run.
type Report struct {
	Machine Machine `json:"machine"`
	Rows    []*Row  `json:"rows"`
}

// JSON prints the report with the values computed from the samples.
func (r Report) JSON(out io.Writer) error {
	type row struct {
		*Row
		Median      float64 `json:"slipwayMedian"`
		OtherMedian float64 `json:"otherMedian,omitempty"`
		Figure      float64 `json:"figure"`
		OK          bool    `json:"ok"`
	}
	report := struct {
		Machine Machine `json:"machine"`
		Rows    []row   `json:"rows"`
	}{Machine: r.Machine}
	for _, each := range r.Rows {
		figure, ok := each.Figure()
		report.Rows = append(report.Rows, row{each, median(each.Ours), median(each.Theirs), figure, ok})
	}
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(report)
}

// Table prints the report for people.
func (r Report) Table(out io.Writer) error {
	fmt.Fprintln(out, r.Machine)
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "row\tslipway\t\tcompared with\t\tfigure\twanted\t")
	for _, row := range r.Rows {
		figure, ok := row.Figure()
		verdict := "ok"
		if !ok {
			verdict = "MISSED"
		}
		with, theirs := "-", "-"
		if len(row.Theirs) > 0 {
			with, theirs = row.With, row.amount(median(row.Theirs))
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n",
			row.Name, row.What, row.amount(median(row.Ours)), with, theirs, row.Wanted.format(figure), row.Wanted, verdict)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return r.notes(out)
}

// notes returns what the table has no room for.
func (r Report) notes(out io.Writer) error {
	var lines []string
	for _, row := range r.Rows {
		ours, theirs := peak(row.Ours), peak(row.Theirs)
		if (row.Name == "cold" || row.Name == "commit") && ours > 0 {
			lines = append(lines, fmt.Sprintf("%s: peak memory %s, of %s %s", row.Name, inBytes(ours), row.With, inBytes(theirs)))
		}
		if others := row.Others(); others > busy {
			lines = append(lines, fmt.Sprintf("%s: others took up to %.0f%% of the processors: measure again", row.Name, 100*others))
		}
	}
	if len(lines) > 0 {
		fmt.Fprintln(out)
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(out, line); err != nil {
			return err
		}
	}
	return nil
}

func (m Machine) String() string {
	text := fmt.Sprintf("%s, %d cores", m.Platform, m.Cores)
	if m.Memory > 0 {
		text += ", " + inBytes(m.Memory)
	}
	return fmt.Sprintf("%s, %s, load %.1f before", text, m.Go, m.Load)
}

// amount returns a value in the row's unit.
func (r *Row) amount(v float64) string {
	switch {
	case r.Unit == "B":
		return inBytes(int64(v))
	case v < 1:
		return fmt.Sprintf("%.0f ms", 1000*v)
	default:
		return fmt.Sprintf("%.1f s", v)
	}
}

func (b Bound) String() string {
	switch b.Kind {
	case Faster:
		return fmt.Sprintf(">= %gx faster", b.Value)
	case NoBound:
		return "-"
	}
	return "<= " + b.format(b.Value)
}

func (b Bound) format(v float64) string {
	switch b.Kind {
	case Seconds:
		return fmt.Sprintf("%.3f s", v)
	case Faster:
		return fmt.Sprintf("%.1fx", v)
	default:
		return fmt.Sprintf("%.2fx", v)
	}
}

// inBytes returns a size for people.
func inBytes(n int64) string {
	if n >= 1<<30 {
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}
