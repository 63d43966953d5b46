// Slowest copies the output of `go test -v` from its input to its output. Then it prints a table of the tests, the slowest first, with
// their seconds, and the seconds of processor time of the commands that they ran:
//
//	make test-integration 2>&1 | go run ./test/slowest
//
// Subtests are listed if they took half a minute or more. The attribute "waited" of a test is the time that it waited for other tests, and
// is subtracted; "processor" is the processor time of its commands; "free" is the disk space in gigabytes that was left at its end. The
// time of what tests share is read from lines such as "processor 12.3 (the release)", and listed by its name in parentheses. Containers and
// clusters are not in it: they are no children of a command. Before the table, the output of failed tests is repeated, since it may be far
// above.
package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// long is the number of seconds from which subtests are listed.
const long = 30

func main() {
	rows, attributes, err := copyRows(os.Stdin, os.Stdout)
	if err == nil {
		err = errors.Join(failures(os.Stdout, rows), table(os.Stdout, rows, attributes))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "slowest:", err)
		os.Exit(1)
	}
}

// last is how many lines of a failed test are repeated.
const last = 60

// A row is a test that has ended.
type row struct {
	name    string
	result  string // PASS, FAIL or SKIP
	seconds float64
	said    []string // the last lines that it printed
}

var (
	running   = regexp.MustCompile(`^=== (?:RUN|PAUSE|CONT|NAME) +(\S+)$`)
	ended     = regexp.MustCompile(`^ *--- (PASS|FAIL|SKIP): (\S+) \(([\d.]+)s\)$`)
	spent     = regexp.MustCompile(`^processor ([\d.]+) (.+)$`)
	attribute = regexp.MustCompile(`^=== ATTR +(\S+) (waited|processor|free) ([\d.]+)$`)
)

// attributes has the numbers of each attribute, by the name of a test or of what tests share.
type attributes map[string]map[string]float64

// copyRows copies all lines, and returns the tests whose end they report, and the attributes.
func copyRows(in io.Reader, out io.Writer) (rows []row, of attributes, err error) {
	of = attributes{"waited": {}, "processor": {}, "free": {}}
	said := map[string][]string{}
	current := ""
	lines := bufio.NewScanner(io.TeeReader(in, out))
	lines.Buffer(nil, math.MaxInt32)
	for lines.Scan() {
		text := lines.Text()
		if m := attribute.FindStringSubmatch(text); m != nil {
			current = m[1]
			of[m[2]][m[1]] = number(m[3])
		} else if m := spent.FindStringSubmatch(text); m != nil {
			of["processor"][m[2]] = number(m[1])
		} else if m := ended.FindStringSubmatch(text); m != nil {
			rows = append(rows, row{m[2], m[1], number(m[3]) - of["waited"][m[2]], said[m[2]]})
		} else if m := running.FindStringSubmatch(text); m != nil {
			current = m[1]
		} else if text != "" {
			all := append(said[current], text)
			said[current] = all[max(0, len(all)-last):]
		}
	}
	return rows, of, lines.Err()
}

// number parses what a pattern has matched.
func number(text string) float64 {
	n, _ := strconv.ParseFloat(text, 64)
	return n
}

// table prints the tests, the slowest first, and then what tests share.
func table(w io.Writer, rows []row, of attributes) error {
	rows = slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return r.seconds < long && strings.Contains(r.name, "/") })
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(b.seconds, a.seconds) })
	var b strings.Builder
	fmt.Fprintf(&b, "\n%9s %9s %7s  %s\n", "seconds", "processor", "GB free", "test")
	for _, r := range rows {
		note := ""
		if r.result != "PASS" {
			note = " " + r.result
		}
		fmt.Fprintf(&b, "%9.1f %9s %7s  %s%s\n", r.seconds, of.text("processor", r.name), of.text("free", r.name), r.name, note)
	}
	processor := of["processor"]
	shared := slices.DeleteFunc(slices.Sorted(maps.Keys(processor)), func(name string) bool { return !strings.HasPrefix(name, "(") })
	slices.SortStableFunc(shared, func(a, b string) int { return cmp.Compare(processor[b], processor[a]) })
	for _, name := range shared {
		fmt.Fprintf(&b, "%9s %9.1f %7s  %s\n", "", processor[name], "", name)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// text returns an attribute of a test, or nothing if it has none.
func (a attributes) text(name, test string) string {
	n, ok := a[name][test]
	if !ok {
		return ""
	}
	return fmt.Sprintf("%.1f", n)
}

// failures repeats the output of failed tests.
func failures(w io.Writer, rows []row) error {
	var b strings.Builder
	for _, r := range rows {
		if r.result == "FAIL" && len(r.said) > 0 {
			fmt.Fprintf(&b, "\n%s has failed:\n%s\n", r.name, strings.Join(r.said, "\n"))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
