package bazel

import (
	"regexp"
	"strconv"
	"strings"

	"slipway.build/pkg/mechanism/action"
)

// An output separates what Bazel writes, by lines, into progress and messages for the user.
type output struct{ report action.Report }

// "[1,188 / 1,190] GoLink cmd/kubectl/kubectl_/kubectl; 5s linux-sandbox", the brackets also with 4 or 5 words.
var actions = regexp.MustCompile(`^\[([\d,]+) / ([\d,]+)\] ?(.*)`)

// Lines that are shown as progress only.
var transient = regexp.MustCompile(
	`^(INFO:( |$)|Loading:|Analyzing:|Computing main repo mapping|Starting local Bazel server|    (Fetching|currently loading|\d+ packages|\[))`)

func (o output) sort(line string) {
	if m := actions.FindStringSubmatch(line); m != nil {
		o.report.Count(action.Steps, number(m[1]), number(m[2]), strings.TrimSpace(m[3]))
		return
	}
	if transient.MatchString(line) {
		o.report.Progress(strings.TrimSpace(strings.TrimPrefix(line, "INFO: ")))
		return
	}
	o.report.Output(line)
}

// number parses a number with commas.
func number(text string) int64 {
	n, _ := strconv.ParseInt(strings.ReplaceAll(text, ",", ""), 10, 64) // it consists of digits and commas
	return n
}
