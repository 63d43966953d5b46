package transfer

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// counts holds the numbers of rsync --stats.
type counts struct {
	Stats
	listed int // files and links that rsync has looked at
}

var statLine = regexp.MustCompile(`(?m)^(Number of files|Number of regular files transferred|Number of deleted files|` +
	`Total bytes sent|Total bytes received): ([\d,]+)(?: \((.*)\))?$`)

// parseStats reads the output of rsync --stats --no-human-readable:
//
//	Number of files: 3 (reg: 1, dir: 1, link: 1)
//	Number of deleted files: 0
//	Number of regular files transferred: 1
//	Total bytes sent: 173
//	Total bytes received: 38
func parseStats(text string) (counts, error) {
	var c counts
	seen := 0
	for _, m := range statLine.FindAllStringSubmatch(text, -1) {
		n := number(m[2])
		seen++
		switch m[1] {
		case "Number of files":
			for part := range strings.SplitSeq(m[3], ", ") {
				if kind, count, _ := strings.Cut(part, ": "); kind == "reg" || kind == "link" {
					c.listed += int(number(count))
				}
			}
		case "Number of regular files transferred":
			c.Files = int(n)
		case "Number of deleted files":
			c.Deleted = int(n)
		case "Total bytes sent":
			c.Sent = n
		case "Total bytes received":
			c.Received = n
		}
	}
	if seen < 5 {
		return counts{}, fmt.Errorf("cannot parse the output of rsync --stats: %q", text)
	}
	return c, nil
}

func number(digits string) int64 {
	n, _ := strconv.ParseInt(strings.ReplaceAll(digits, ",", ""), 10, 64) // the expression matches digits only
	return n
}
