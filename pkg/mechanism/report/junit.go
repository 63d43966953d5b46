package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"
)

// JUnit writes results as the XML that JUnit's Ant task introduced and CI systems read: a suite for each group, whose cases have the class
// name "class.group". Results without a group are a suite called like the whole. There is no standard;
// https://github.com/testmoapp/junitxml describes what is common. JUnit knows no word for checks that did not run: they count as skipped,
// with a message that says so. Without a class, a group is the class name. Each suite has the properties that it ran with.
func (rs Results) JUnit(w io.Writer, name, class string, took time.Duration, ran ...Property) error {
	all := suites{counts: counts{Name: name, Tests: len(rs), Time: seconds(took.Seconds())}}
	for i, r := range rs {
		if i == 0 || rs[i-1].Group != r.Group {
			all.Suites = append(all.Suites, newSuite(r.Group, name, class))
			if len(ran) > 0 {
				all.Suites[len(all.Suites)-1].Properties = &properties{ran}
			}
		}
		s := &all.Suites[len(all.Suites)-1]
		s.add(r)
	}
	for _, s := range all.Suites {
		all.Failures, all.Skipped = all.Failures+s.Failures, all.Skipped+s.Skipped
	}
	if len(all.Suites) == 1 {
		all.Suites[0].Time = all.Time // less than the sum of its cases if they ran side by side
	}
	text, err := xml.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s%s\n", xml.Header, text)
	return err
}

// A Property is something that a suite ran with.
type Property struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type properties struct {
	Properties []Property `xml:"property"`
}

type suites struct {
	XMLName xml.Name `xml:"testsuites"`
	counts
	Suites []suite `xml:"testsuite"`
}

type suite struct {
	counts
	class      string
	Properties *properties `xml:"properties"` // nil leaves out the element
	Cases      []testCase  `xml:"testcase"`
}

type counts struct {
	Name     string  `xml:"name,attr"`
	Tests    int     `xml:"tests,attr"`
	Failures int     `xml:"failures,attr"`
	Skipped  int     `xml:"skipped,attr"`
	Time     seconds `xml:"time,attr"`
}

type testCase struct {
	Class   string  `xml:"classname,attr"`
	Name    string  `xml:"name,attr"`
	Time    seconds `xml:"time,attr"`
	Failure *reason `xml:"failure"`
	Skipped *reason `xml:"skipped"`
	Output  string  `xml:"system-out,omitempty"`
}

// A reason says why a case failed or was skipped: in a line, and at length.
type reason struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// seconds are written with three decimals.
type seconds float64

func (s seconds) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%.3f", float64(s)), nil }

func newSuite(group, whole, class string) suite {
	if group == "" {
		return suite{counts: counts{Name: whole}, class: class}
	}
	return suite{counts: counts{Name: group}, class: strings.TrimPrefix(class+"."+group, ".")}
}

func (s *suite) add(r Result) {
	c := testCase{Class: s.class, Name: r.Name, Time: seconds(r.Seconds), Output: r.Output}
	switch r.Outcome {
	case Failed:
		s.Failures++
		c.Failure = &reason{Message: firstLine(r.Message), Text: atLength(r)}
	case Skipped:
		s.Skipped++
		c.Skipped = &reason{Message: firstLine(r.Message)}
	case NotRun:
		s.Skipped++
		c.Skipped = &reason{Message: strings.TrimSuffix("not run: "+firstLine(r.Message), ": ")}
	}
	s.Tests++
	s.Time += c.Time
	s.Cases = append(s.Cases, c)
}

// atLength returns all that is known of a failure.
func atLength(r Result) string {
	var parts []string
	for _, part := range []string{r.Message, r.Location, r.Details} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "\n")
}
