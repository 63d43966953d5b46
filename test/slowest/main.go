// Slowest copies the output of `go test -v` from its input to its output. Then it prints a table of the tests, the slowest first, with
// their seconds, and the seconds of processor time of the commands that they ran:
//
//	make test-integration 2>&1 | go run ./test/slowest
//
// Subtests are listed if they took half a minute or more. The attribute "waited" of a test is the time that it waited for other tests, and
// is subtracted; "processor" is the processor time of its commands. That of what tests share is read from lines such as "processor 12.3
// (the release)", and listed by its name in parentheses. Containers and clusters are not in it: they are no children of a command. Before
// the table, the output of failed tests is repeated, since it may be far above.
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
	rows, processor, err := copyRows(os.Stdin, os.Stdout)
	if err == nil {
		err = errors.Join(failures(os.Stdout, rows), table(os.Stdout, rows, processor))
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
	attribute = regexp.MustCompile(`^=== ATTR +(\S+) (waited|processor) ([\d.]+)$`)
)

// copyRows copies all lines, and returns the tests whose end they report, and seconds of processor time by name.
func copyRows(in io.Reader, out io.Writer) (rows []row, processor map[string]float64, err error) {
	processor = map[string]float64{}
	waited, said := map[string]float64{}, map[string][]string{}
	current := ""
	lines := bufio.NewScanner(io.TeeReader(in, out))
	lines.Buffer(nil, math.MaxInt32)
	for lines.Scan() {
		text := lines.Text()
		if m := attribute.FindStringSubmatch(text); m != nil {
			current = m[1]
			map[string]map[string]float64{"waited": waited, "processor": processor}[m[2]][m[1]] = seconds(m[3])
		} else if m := spent.FindStringSubmatch(text); m != nil {
			processor[m[2]] = seconds(m[1])
		} else if m := ended.FindStringSubmatch(text); m != nil {
			rows = append(rows, row{m[2], m[1], seconds(m[3]) - waited[m[2]], said[m[2]]})
		} else if m := running.FindStringSubmatch(text); m != nil {
			current = m[1]
		} else if text != "" {
			all := append(said[current], text)
			said[current] = all[max(0, len(all)-last):]
		}
	}
	return rows, processor, lines.Err()
}

// seconds parses what a pattern has matched.
func seconds(text string) float64 {
	n, _ := strconv.ParseFloat(text, 64)
	return n
}

// table prints the tests, the slowest first, and then what tests share.
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
