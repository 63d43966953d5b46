// Slowest copies the output of `go test -v` from its input to its output, and then prints a table of the tests with their seconds, and
// those of processor time of the commands that they ran, the slowest first:
//
//	make test-integration 2>&1 | go run ./test/slowest
//
// Subtests are listed if they took half a minute or more. A test that waited for others says so by its attribute "waited", which is
// subtracted. Processor time is what lines such as "processor 12.3 TestName" say; what tests share is listed by its name in parentheses.
// Containers and clusters are not in it: they are no children of a command. Before the table, what failing tests have said is repeated,
// since it may be far above.
package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// long is the number of seconds from which subtests are listed.
const long = 30

func main() {
	rows, processor, err := copyRows(os.Stdin, os.Stdout)
	if err == nil {
		err = errors.Join(failures(os.Stdout, rows), table(os.Stdout, rows, processor))
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
	running   = regexp.MustCompile(`^=== (?:RUN|PAUSE|CONT|NAME) +(\S+)$`)
	ended     = regexp.MustCompile(`^ *--- (PASS|FAIL|SKIP): (\S+) \(([\d.]+)s\)$`)
	spent     = regexp.MustCompile(`^processor ([\d.]+) (.+)$`)
	attribute = regexp.MustCompile(`^=== ATTR +(\S+) waited ([\d.]+)$`)
)

// copyRows copies all lines, and returns the tests whose end they report, and seconds of processor time by name.
func copyRows(in io.Reader, out io.Writer) (rows []row, processor map[string]float64, err error) {
	processor = map[string]float64{}
	waited, said := map[string]float64{}, map[string][]string{}
	current := ""
	for lines := bufio.NewReader(in); ; {
		line, err := lines.ReadString('\n')
		if _, err := io.WriteString(out, line); err != nil {
			return nil, nil, err
		}
		text := strings.TrimSuffix(line, "\n")
		if m := attribute.FindStringSubmatch(text); m != nil {
			current, waited[m[1]] = m[1], seconds(m[2])
		} else if m := spent.FindStringSubmatch(text); m != nil {
			processor[m[2]] = seconds(m[1])
		} else if m := ended.FindStringSubmatch(text); m != nil {
			rows = append(rows, row{m[2], m[1], seconds(m[3]) - waited[m[2]], said[m[2]]})
		} else if m := running.FindStringSubmatch(text); m != nil {
			current = m[1]
		} else if text != "" {
			lines := append(said[current], text)
			said[current] = lines[max(0, len(lines)-last):]
		}
		if err == io.EOF {
			return rows, processor, nil
		}
		if err != nil {
			return nil, nil, err
		}
	}
}

// seconds parses what one of the patterns has matched.
func seconds(text string) float64 {
	n, _ := strconv.ParseFloat(text, 64)
	return n
}

// table prints the tests, the slowest first, and then what they share.
func table(w io.Writer, rows []row, processor map[string]float64) error {
	rows = slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return r.seconds < long && strings.Contains(r.name, "/") })
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(b.seconds, a.seconds) })
	var b strings.Builder
	fmt.Fprintf(&b, "\n%9s %9s  %s\n", "seconds", "processor", "test")
	for _, r := range rows {
		used, note := "", ""
		if s, ok := processor[r.name]; ok {
			used = fmt.Sprintf("%.1f", s)
		}
		if r.result != "PASS" {
			note = " " + r.result
		}
		fmt.Fprintf(&b, "%9.1f %9s  %s%s\n", r.seconds, used, r.name, note)
	}
	shared := slices.DeleteFunc(slices.Sorted(maps.Keys(processor)), func(name string) bool { return !strings.HasPrefix(name, "(") })
	slices.SortStableFunc(shared, func(a, b string) int { return cmp.Compare(processor[b], processor[a]) })
	for _, name := range shared {
		fmt.Fprintf(&b, "%9s %9.1f  %s\n", "", processor[name], name)
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
