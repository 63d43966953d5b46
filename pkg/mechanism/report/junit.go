package report

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// JUnit writes results as the XML that JUnit's Ant task introduced and CI systems read: a suite for each group, whose cases have the class
// name "class.group". Results without a group are a suite with the name of the whole. There is no standard;
// https://github.com/testmoapp/junitxml describes what is common. JUnit has no word for checks that did not run: they count as skipped,
// with a message that says so. Without a class, the class name is the group. Each suite has the properties that it ran with.
func (rs Results) JUnit(w io.Writer, name, class string, took time.Duration, ran ...Property) error {
	var properties *[]Property // nil leaves out the element
	if len(ran) > 0 {
		properties = &ran
	}
	all := suites{counts: counts{Name: name}}
	for i, r := range rs {
		if i == 0 || rs[i-1].Group != r.Group {
			all.Suites = append(all.Suites, suite{counts: counts{Name: cmp.Or(r.Group, name)}, Properties: properties})
		}
		s := &all.Suites[len(all.Suites)-1]
		s.Cases = append(s.Cases, testCase{
			Class: strings.Trim(class+"."+r.Group, "."), Name: r.Name, Time: seconds(r.Seconds), Output: r.Output,
			Failure: r.failure(), Skipped: r.skip(),
		})
		s.count(r)
		all.count(r)
	}
	all.Time = seconds(took.Seconds())
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

type suites struct {
	XMLName xml.Name `xml:"testsuites"`
	counts
	Suites []suite `xml:"testsuite"`
}

type suite struct {
	counts
	Properties *[]Property `xml:"properties>property"`
	Cases      []testCase  `xml:"testcase"`
}

type counts struct {
	Name     string  `xml:"name,attr"`
	Tests    int     `xml:"tests,attr"`
	Failures int     `xml:"failures,attr"`
	Skipped  int     `xml:"skipped,attr"`
	Time     seconds `xml:"time,attr"`
}

func (c *counts) count(r Result) {
	c.Tests++
	c.Time += seconds(r.Seconds)
	switch r.Outcome {
	case Failed:
		c.Failures++
	case Skipped, NotRun:
		c.Skipped++
	}
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

func (r Result) failure() *reason {
	if r.Outcome != Failed {
		return nil
	}
	parts := slices.DeleteFunc([]string{r.Message, r.Location, r.Details}, func(part string) bool { return part == "" })
	return &reason{firstLine(r.Message), strings.Join(parts, "\n")}
}

func (r Result) skip() *reason {
	switch r.Outcome {
	case Skipped:
		return &reason{Message: firstLine(r.Message)}
	case NotRun:
		return &reason{Message: strings.TrimSuffix("not run: "+firstLine(r.Message), ": ")}
	}
	return nil
}
