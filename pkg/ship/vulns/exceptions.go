package vulns

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"slipway.build/pkg/mechanism/suggest"
)

// ExceptionsFile is the file of exceptions, relative to a tree's root.
const ExceptionsFile = "release/vulns.yaml"

// An Exception says that a vulnerability is no reason not to ship.
type Exception struct {
	ID            string `yaml:"id" json:"id"`                                 // or an alias
	Component     string `yaml:"component" json:"component,omitempty"`         // a module, package, binary or image; empty for all
	Status        string `yaml:"status" json:"status"`                         // as OpenVEX has it
	Justification string `yaml:"justification" json:"justification,omitempty"` // of not_affected, as OpenVEX has it
	Reason        string `yaml:"reason" json:"reason"`
	Until         string `yaml:"until" json:"until"` // the last day on which it holds, as in 2027-01-31
}

// Statuses of exceptions, and justifications of not_affected. See https://github.com/openvex/spec.
var (
	statuses       = []string{"not_affected", "fixed", "affected", "under_investigation"}
	justifications = []string{
		"component_not_present", "vulnerable_code_not_present", "vulnerable_code_not_in_execute_path",
		"vulnerable_code_cannot_be_controlled_by_adversary", "inline_mitigations_already_exist",
	}
)

// maxExceptions is the size, in bytes, of the largest file of exceptions that is read.
const maxExceptions = 1 << 20

// ReadExceptions reads a file of exceptions, strictly. A missing file has none.
func ReadExceptions(file string) ([]Exception, error) {
	f, err := os.Open(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxExceptions+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxExceptions {
		return nil, fmt.Errorf("%s: it is too large", file)
	}
	exceptions, err := parseExceptions(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return exceptions, nil
}

func parseExceptions(data []byte) ([]Exception, error) {
	var list struct {
		Exceptions []yaml.Node `yaml:"exceptions"`
	}
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	if err := d.Decode(&list); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if err := d.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one document")
	}
	var exceptions []Exception
	var errs []error
	for _, n := range list.Exceptions {
		e, err := parseException(&n)
		if err != nil {
			errs = append(errs, fmt.Errorf("line %d: %w", n.Line, err))
		}
		exceptions = append(exceptions, e)
	}
	return exceptions, errors.Join(errs...)
}

func parseException(n *yaml.Node) (e Exception, err error) {
	text, err := yaml.Marshal(n) // since a node is not decoded strictly
	if err != nil {
		return e, err
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&e); err != nil {
		return e, err
	}
	switch {
	case e.ID == "":
		return e, errors.New("an exception needs an id")
	case e.Reason == "":
		return e, fmt.Errorf("the exception for %s needs a reason", e.ID)
	case !slices.Contains(statuses, e.Status):
		return e, fmt.Errorf("the exception for %s: its status is %s, not %q", e.ID, suggest.Enumerate(statuses, "or"), e.Status)
	case e.Status == "not_affected" && !slices.Contains(justifications, e.Justification):
		return e, fmt.Errorf("the exception for %s: what is not affected has the justification %s, not %q", e.ID,
			suggest.Enumerate(justifications, "or"), e.Justification)
	case e.Status != "not_affected" && e.Justification != "":
		return e, fmt.Errorf("the exception for %s: only what is not_affected has a justification", e.ID)
	}
	if _, err := time.Parse(time.DateOnly, e.Until); err != nil {
		return e, fmt.Errorf("the exception for %s: until %q, want a day such as 2027-01-31", e.ID, e.Until)
	}
	return e, nil
}

// expired reports whether an exception holds no longer.
func (e Exception) expired(now time.Time) bool {
	last, _ := time.Parse(time.DateOnly, e.Until)
	return !now.Before(last.AddDate(0, 0, 1))
}

// is reports whether an exception is for a vulnerability, of a component as it stands in an artifact.
func (e Exception) is(f *Found, p Place) bool {
	if e.ID != f.ID && !slices.Contains(f.Aliases, e.ID) {
		return false
	}
	return e.Component == "" || e.Component == f.Component || e.Component == p.Artifact || e.Component == p.short()
}
