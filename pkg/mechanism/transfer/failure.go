package transfer

import (
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"
)

// maxLines is how many of rsync's complaints an error repeats: a full disk has one for each file.
const maxLines = 5

// newFailure returns an error that says why rsync failed, from its exit, the text that it wrote and the complaint of the remote
// end.
func newFailure(err error, text, complaint string, patience time.Duration) error {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return fmt.Errorf("run rsync: %w", err)
	}
	lines := complaints(text)
	if strings.Contains(text, "@ERROR: auth failed") {
		return errors.New("the password was refused")
	}
	words, known := exits[exit.ExitCode()]
	switch code := exit.ExitCode(); {
	case refusal.MatchString(text):
		words = "the remote end refused"
	case code == 30, code == 35:
		return silence(patience)
	case code == -1:
		words = "rsync was ended: " + exit.Error()
	case !known:
		words = fmt.Sprintf("rsync failed: exit status %d", code)
	}
	if complaint = strings.TrimSpace(complaint); complaint != "" {
		lines = append(lines, complaint)
	}
	if len(lines) == 0 {
		return errors.New(words)
	}
	return fmt.Errorf("%s: %s", words, strings.Join(lines, "; "))
}

// exits explains exit codes, which rsync(1) lists.
var exits = map[int]string{
	2: "the rsync here and the one at the remote end do not understand each other: update the older one",
	3: unreadable, 5: broken, 10: broken, 11: unreadable, 12: broken, 19: interrupted, 20: interrupted,
	22: "not enough memory",
	23: "not all files could be transferred",
	24: "files vanished while they were read, run it again",
}

const (
	broken      = "the connection broke"
	interrupted = "rsync was interrupted"
	unreadable  = "a file could not be read or written"
)

var (
	refusal = regexp.MustCompile(`(?m)^@?ERROR: `) // of the daemon
	speaker = regexp.MustCompile(`^(?:rsync: |@ERROR: |ERROR: )+(?:\[\w+\] )?`)
	// idle are lines that only repeat that it failed.
	idle = regexp.MustCompile(`^(?:rsync error: |rsync (?:warning|info): |rsync: (?:\[\w+\] )?(?:connection unexpectedly closed|` +
		`(?:safe_)?(?:read|write) (?:error|failed).*(?:Connection reset|Broken pipe))|IO error encountered -- skipping|` +
		`did(?:n't| not) (?:get server startup line|see server greeting))`)
)

// complaints returns the lines of rsync's stderr that say which file failed and why.
func complaints(text string) []string {
	var lines []string
	left := 0
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || idle.MatchString(line) {
			continue
		}
		line = speaker.ReplaceAllString(line, "")
		switch {
		case slices.Contains(lines, line):
		case len(lines) < maxLines:
			lines = append(lines, line)
		default:
			left++
		}
	}
	if left > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", left))
	}
	return lines
}
