package console

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"slipway.build/pkg/mechanism/action"
)

// This file has the sentences that Plain and Terminal share, and the closing report.

// title returns a job's name and why it runs.
func (j *job) title() string { return oneLine(j.id) + j.reasons() }

// reasons returns why a job runs, in parentheses.
func (j *job) reasons() string {
	if j.why == "" {
		return ""
	}
	return " (" + j.why + ")"
}

// state returns the progress of a job: "1,204 of 3,310 packages · k8s.io/api/core/v1", "1.2 GiB", "linking kubectl".
func (j *job) state() string {
	if j.done == 0 && j.total == 0 {
		return j.text
	}
	amount, unit := count, ""
	switch j.unit {
	case "":
	case action.Bytes:
		amount = Size
	default:
		unit = " " + string(j.unit)
	}
	text := amount(j.done)
	if j.total > 0 {
		text += " of " + amount(j.total)
	}
	text += unit
	if j.text != "" {
		text += " · " + j.text
	}
	return text
}

// left estimates how long a compile goes on, from the packages that are left and the pace of those that are compiled: "about 12 min left".
// It is empty until there is a pace. Links, and modules whose compile has not started, are not in it.
func (j *job) left(now time.Time) string {
	took := now.Sub(j.start)
	if j.unit != action.Packages || took < progressInterval || j.done < j.total/20 || j.done < 1 || j.done >= j.total {
		return ""
	}
	left := time.Duration(float64(took) / float64(j.done) * float64(j.total-j.done)).Round(time.Minute)
	if left < time.Minute {
		return "under a minute left"
	}
	return fmt.Sprintf("about %d min left", int(left.Minutes()))
}

// details lists what did the work of a finished job, and its outputs.
func (j *job) details() string {
	var b strings.Builder
	if j.by != "" {
		fmt.Fprintf(&b, "  by %s\n", oneLine(j.by))
	}
	for _, file := range j.files {
		fmt.Fprintf(&b, "  %s %s\n", oneLine(file.Path), Size(file.Size))
	}
	return b.String()
}

// reason returns the first line of a failure. Errors of tools can be pages long; the end of the run shows all of it.
func (j *job) reason() string {
	first, _, more := strings.Cut(strings.TrimSpace(j.failure), "\n")
	if first = oneLine(first); more {
		return strings.TrimSuffix(first, ":") + " …"
	}
	return first
}

// failedAfter returns " after 12.0s", or "" if the job failed before it ran because an input is missing.
func (j *job) failedAfter() string {
	if j.took() <= 0 {
		return ""
	}
	return " after " + duration(j.took())
}

// A part is a number of actions or jobs that ended in one way.
type part struct {
	n    int
	text string
}

func (p part) String() string { return count(int64(p.n)) + " " + p.text }

// tally returns the run in one line: "23 unchanged, 7 from the cache, 4 done in 12.3s".
func (r *run) tally(took time.Duration) string {
	var parts []string
	for _, part := range []part{
		{r.skipped, "unchanged"}, {len(r.cached), "from the cache"}, {r.done, "done"}, {r.failed, "failed"},
		{r.planned - r.skipped - len(r.cached) - r.done - r.failedActions, "not run"},
	} {
		if part.n > 0 {
			parts = append(parts, part.String())
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

// failures returns the end of a run that failed: the last lines of each failed job's output, unless no other line came after
// them, and then the run's error or, if the run was cut short, the jobs' errors. The word that starts an error is given.
func (r *run) failures(word string) string {
	var output, errs strings.Builder
	failed := slices.DeleteFunc(slices.Clone(r.ended), func(j *job) bool { return !j.failed })
	if slices.ContainsFunc(failed, func(j *job) bool { return j.followed }) {
		for _, j := range failed {
			output.WriteString(j.lastOutput())
		}
	}
	if !r.finished {
		for _, j := range failed {
			errs.WriteString(word + " " + withNewline(j.id+": "+j.failure))
		}
	}
	if r.err != "" {
		errs.WriteString(word + " " + withNewline(r.err))
	}
	return output.String() + errs.String()
}

// lastOutput returns the last lines of a failed job's output under a heading, or "" if the error contains them.
func (j *job) lastOutput() string {
	if len(j.output) == 0 || strings.Contains(j.failure, strings.TrimSpace(j.output[len(j.output)-1])) {
		return ""
	}
	heading := oneLine(j.id) + " printed:"
	if j.cut {
		heading = fmt.Sprintf("%s printed, in its last %d lines:", oneLine(j.id), len(j.output))
	}
	return heading + "\n" + strings.Join(j.output, "\n") + "\n"
}

// report returns the end of a run that succeeded: artifacts, times, memory. A table wider than width is stacked.
func (r *run) report(isArtifact func(string) bool, width int) string {
	var b strings.Builder
	var artifacts []action.File
	for _, file := range r.files {
		if isArtifact != nil && isArtifact(file.Path) {
			artifacts = append(artifacts, file)
		}
	}
	slices.SortFunc(artifacts, func(a, b action.File) int { return strings.Compare(a.Path, b.Path) })
	if len(artifacts) > 0 {
		b.WriteString("\n" + table(artifacts, width) + "\n")
	}
	b.WriteString(withNewline(strings.Join(r.times(), " · ")) + withNewline(r.peak()))
	return b.String()
}

// times returns the time of each phase: "compile 4m12s".
func (r *run) times() []string {
	var times []string
	for _, t := range r.phases() {
		times = append(times, oneLine(t.phase)+" "+duration(t.took))
	}
	return times
}

// peak returns the highest peak of memory, and whose it is, or "" if none was measured.
func (r *run) peak() string {
	most := &job{}
	for _, j := range r.ended {
		if j.memory > most.memory {
			most = j
		}
	}
	if most.memory == 0 {
		return ""
	}
	return "peak memory " + Size(most.memory) + " (" + oneLine(most.id) + ")"
}

// table lists files with their sizes and sums, aligned. The sums are whole, so that they can be copied.
func table(files []action.File, width int) string {
	rows := [][3]string{{"artifact", "size", "sha256"}}
	for _, file := range files {
		rows = append(rows, [3]string{oneLine(file.Path), Size(file.Size), file.SHA256})
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
