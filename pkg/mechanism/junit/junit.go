// Package junit writes results of checks as the XML that JUnit's Ant task wrote first, and CI systems read: suites of cases, with how
// many failed and were skipped. There is no standard; this is what https://github.com/testmoapp/junitxml describes as common.
package junit

import (
	"encoding/xml"
	"fmt"
	"io"
	"time"
)

// A Suite is a group of cases.
type Suite struct {
	Name  string
	Took  time.Duration // of all cases; as much as they took together, if it is 0
	Cases []Case
}

// A Case is one result: a success, a failure or a skip.
type Case struct {
	Class   string   `xml:"classname,attr"`
	Name    string   `xml:"name,attr"`
	Time    Seconds  `xml:"time,attr"`
	Failure *Message `xml:"failure"`
	Skipped *Message `xml:"skipped"`
	Output  string   `xml:"system-out,omitempty"`
}

// A Message says why a case failed or was skipped: in a line, and at length.
type Message struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// Seconds are a time, of which three decimals are written.
type Seconds float64

// MarshalText writes them.
func (s Seconds) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%.3f", float64(s)), nil }

type root struct {
	XMLName xml.Name `xml:"testsuites"`
	counts
	Suites []suite `xml:"testsuite"`
}

type suite struct {
	counts
	Cases []Case `xml:"testcase"`
}

type counts struct {
	Name     string  `xml:"name,attr"`
	Tests    int     `xml:"tests,attr"`
	Failures int     `xml:"failures,attr"`
	Skipped  int     `xml:"skipped,attr"`
	Time     Seconds `xml:"time,attr"`
}

// Write writes suites, with their counts.
func Write(w io.Writer, name string, took time.Duration, suites ...Suite) error {
	all := root{counts: counts{Name: name, Time: Seconds(took.Seconds())}}
	for _, from := range suites {
		s := suite{counts: counts{Name: from.Name, Tests: len(from.Cases), Time: Seconds(from.Took.Seconds())}, Cases: from.Cases}
		for _, c := range from.Cases {
			if from.Took == 0 {
				s.Time += c.Time
			}
			if c.Failure != nil {
				s.Failures++
			}
			if c.Skipped != nil {
				s.Skipped++
			}
		}
		all.Tests, all.Failures, all.Skipped = all.Tests+s.Tests, all.Failures+s.Failures, all.Skipped+s.Skipped
		all.Suites = append(all.Suites, s)
	}
	text, err := xml.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s%s\n", xml.Header, text)
	return err
}
