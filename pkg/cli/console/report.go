package console

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"slipway.build/pkg/mechanism/action"
)

// Sentences that Plain and Terminal share, and the closing report.

// title names a job and why it runs.
func (j *job) title() string {
	if j.why == "" {
		return oneLine(j.id)
	}
	return oneLine(j.id) + " (" + j.why + ")"
}

// state tells how far a job is: "1,204 of 3,310 packages", "1.2 GiB", "linking kubectl".
func (j *job) state() string {
	amount := count
	unit := j.text
	if unit == "bytes" {
		amount, unit = size, ""
	}
	switch {
	case j.done == 0 && j.total == 0:
		return j.text
	case isUnit(unit):
		unit = " " + unit
	case unit != "":
		unit = " · " + unit
	}
	if j.total == 0 {
		return amount(j.done) + unit
	}
	return amount(j.done) + " of " + amount(j.total) + unit
}

// isUnit tells a plural ("packages") from the name of what is worked on ("k8s.io/api/core/v1").
func isUnit(text string) bool {
	return strings.HasSuffix(text, "s") && strings.Trim(text, "abcdefghijklmnopqrstuvwxyz") == ""
}

// details lists what the user gets to see of a finished job when asking for more.
func (j *job) details() string {
	var b strings.Builder
	if j.by != "" {
		fmt.Fprintf(&b, "  by %s\n", oneLine(j.by))
	}
	for _, file := range j.files {
		fmt.Fprintf(&b, "  %s %s\n", oneLine(file.Path), size(file.Size))
	}
	return b.String()
}

// reason is the first line of a failure: tools' errors can be pages, and the whole of it comes last.
func (j *job) reason() string {
	first, _, more := strings.Cut(strings.TrimSpace(j.failure), "\n")
	if first = oneLine(first); more {
		return strings.TrimSuffix(first, ":") + " …"
	}
	return first
}

// failedAfter is " after 12.0s", or nothing if the job failed before it ran (an input is missing).
func (j *job) failedAfter() string {
	if j.took() <= 0 {
		return ""
	}
	return " after " + duration(j.took())
}

// tally is the run in one line: "23 unchanged, 4 done in 12.3s".
func (r *run) tally(took time.Duration) string {
	var parts []string
	for _, part := range []struct {
		n    int
		text string
	}{
		{r.skipped, "unchanged"}, {r.done, "done"}, {r.failed, "failed"},
		{r.planned - r.skipped - r.done - r.lost, "not run"},
	} {
		if part.n > 0 {
			parts = append(parts, count(int64(part.n))+" "+part.text)
		}
	}
	switch {
	case parts != nil:
	case r.finished && r.err == "":
		parts = append(parts, "nothing to do")
	default:
		parts = append(parts, "nothing done")
	}
	return strings.Join(parts, ", ") + " in " + duration(took)
}

// failures are the errors of a run that did not live to tell its own.
func (r *run) failures() []string {
	var all []string
	for _, j := range r.over {
		if j.failed {
			all = append(all, j.id+": "+j.failure)
		}
	}
	return all
}

// report is the end of a run that went well: artifacts, times, memory. Tables wider than width are stacked.
func (r *run) report(isArtifact func(string) bool, width int) string {
	var b strings.Builder
	var artifacts []action.File
	for _, file := range r.files {
		if isArtifact(file.Path) {
			artifacts = append(artifacts, file)
		}
	}
	slices.SortFunc(artifacts, func(a, b action.File) int { return strings.Compare(a.Path, b.Path) })
	if len(artifacts) > 0 {
		b.WriteString("\n" + table(artifacts, width) + "\n")
	}
	if times := r.phases(); len(times) > 0 {
		var parts []string
		for _, t := range times {
			parts = append(parts, oneLine(t.phase+" "+duration(t.took)))
		}
		b.WriteString(strings.Join(parts, " · ") + "\n")
	}
	if j := r.hungriest(); j != nil {
		fmt.Fprintf(&b, "peak memory %s (%s)\n", size(j.memory), oneLine(j.id))
	}
	return b.String()
}

// table lists files with their sizes and sums, aligned. The sums are whole: they are there to be copied.
func table(files []action.File, width int) string {
	rows := [][3]string{{"artifact", "size", "sha256"}}
	for _, file := range files {
		rows = append(rows, [3]string{oneLine(file.Path), size(file.Size), file.SHA256})
	}
	var widest [3]int
	for _, row := range rows {
		for i := range row {
			widest[i] = max(widest[i], cells(row[i]))
		}
	}
	var b strings.Builder
	if width > 0 && widest[0]+2+widest[1]+2+widest[2] > width {
		for _, row := range rows[1:] {
			fmt.Fprintf(&b, "%s  %s\n  sha256 %s\n", row[0], row[1], row[2])
		}
		return b.String()
	}
	for _, row := range rows {
		fmt.Fprintf(&b, "%s  %s  %s\n", pad(row[0], widest[0]), padLeft(row[1], widest[1]), row[2])
	}
	return b.String()
}

// stepped is a part of a job that is done: "sources sent, in 212ms".
func stepped(ev action.Event) string {
	return oneLine(ev.Text) + ", in " + duration(ev.Duration)
}
