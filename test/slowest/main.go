// Slowest copies the output of `go test -v` from its input to its output, and then prints a table of the tests with their seconds, the
// slowest first:
//
//	make test-integration 2>&1 | go run ./test/slowest
//
// Subtests are listed if they took half a minute or more. A test that waited for others says so by its attribute "waited", which
// is subtracted. Before the table, what failing tests have said is repeated, since it may be far above.
package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// long is the number of seconds from which subtests are listed.
const long = 30

func main() {
	rows, err := copyRows(os.Stdin, os.Stdout)
	if err == nil {
		err = errors.Join(failures(os.Stdout, rows), table(os.Stdout, rows))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "slowest:", err)
		os.Exit(1)
	}
}

// last is the number of lines that are repeated of a failing test.
const last = 60

// A row is a test that has ended.
type row struct {
	name    string
	result  string // PASS, FAIL or SKIP
	seconds float64
	said    []string // the last lines that it printed
}

var (
	running   = regexp.MustCompile(`^=== (?:RUN|CONT|NAME) +(\S+)$`)
	ended     = regexp.MustCompile(`^ *--- (PASS|FAIL|SKIP): (\S+) \(([\d.]+)s\)$`)
	attribute = regexp.MustCompile(`^=== ATTR +(\S+) waited ([\d.]+)$`)
)

// copyRows copies all lines, and returns the tests whose end they report.
func copyRows(in io.Reader, out io.Writer) ([]row, error) {
	var rows []row
	waited, said := map[string]float64{}, map[string][]string{}
	current := ""
	for lines := bufio.NewReader(in); ; {
		line, err := lines.ReadString('\n')
		if _, err := io.WriteString(out, line); err != nil {
			return nil, err
		}
		text := strings.TrimSuffix(line, "\n")
		if m := attribute.FindStringSubmatch(text); m != nil {
			waited[m[1]] = seconds(m[2])
		} else if m := ended.FindStringSubmatch(text); m != nil {
			rows = append(rows, row{m[2], m[1], seconds(m[3]) - waited[m[2]], said[m[2]]})
		} else if m := running.FindStringSubmatch(text); m != nil {
			current = m[1]
		} else if text != "" {
			lines := append(said[current], text)
			said[current] = lines[max(0, len(lines)-last):]
		}
		if err == io.EOF {
			return rows, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// seconds parses what one of the patterns has matched.
func seconds(text string) float64 {
	n, _ := strconv.ParseFloat(text, 64)
	return n
}

// table prints the tests, the slowest first.
func table(w io.Writer, rows []row) error {
	rows = slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return r.seconds < long && strings.Contains(r.name, "/") })
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(b.seconds, a.seconds) })
	var b strings.Builder
	fmt.Fprintf(&b, "\n%9s  %s\n", "seconds", "test")
	for _, r := range rows {
		note := ""
		if r.result != "PASS" {
			note = " " + r.result
		}
		fmt.Fprintf(&b, "%9.1f  %s%s\n", r.seconds, r.name, note)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// failures prints what the failing tests have said.
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
