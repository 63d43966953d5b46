package provenance

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"slipway.build/pkg/release"
)

// SummaryType is the predicate of a summary. See https://slsa.dev/spec/v1.1/verification_summary.
const SummaryType = "https://slsa.dev/verification_summary/v1"

// Verifier is who rebuilt: anybody, by slipway rebuild. It is the policy, too: everything must have the same bytes.
const Verifier = Page + "#rebuild"

// Passed is the result of a rebuild that made the same bytes. No summary states another one.
const Passed = "PASSED"

// BuildLevel is the level that a rebuild shows: that the provenance exists and is true.
const BuildLevel = "SLSA_BUILD_LEVEL_1"

// A Summary states that somebody made a release again, from its provenance, with the same bytes.
type Summary struct {
	Type          string           `json:"_type"`
	Subject       []Subject        `json:"subject"`
	PredicateType string           `json:"predicateType"`
	Predicate     SummaryPredicate `json:"predicate"`
}

// A SummaryPredicate says what was verified, and with which result.
type SummaryPredicate struct {
	Verifier struct {
		ID string `json:"id"`
	} `json:"verifier"`
	TimeVerified string `json:"timeVerified"`
	ResourceURI  string `json:"resourceUri"`
	Policy       struct {
		URI string `json:"uri"`
	} `json:"policy"`
	InputAttestations []Attestation `json:"inputAttestations"`
	Result            string        `json:"verificationResult"`
	Levels            []string      `json:"verifiedLevels"`
	SLSAVersion       string        `json:"slsaVersion"`
}

// An Attestation is a statement by content.
type Attestation struct {
	Digest map[string]string `json:"digest"`
}

// Summarize returns the summary of a rebuild of what a statement is about: all its subjects were made with these digests. The statement is
// given as its file has it.
func Summarize(statement []byte, at time.Time) ([]byte, error) {
	s, err := Unmarshal(statement)
	if err != nil {
		return nil, err
	}
	v := Summary{Type: StatementType, Subject: s.Subject, PredicateType: SummaryType}
	p := &v.Predicate
	p.Verifier.ID, p.Policy.URI = Verifier, Verifier
	p.TimeVerified = at.UTC().Format(time.RFC3339)
	p.ResourceURI = "pkg:generic/kubernetes@" + s.Predicate.Definition.Parameters.Version
	p.InputAttestations = []Attestation{{map[string]string{"sha256": fmt.Sprintf("%x", sha256.Sum256(statement))}}}
	p.Result, p.Levels, p.SLSAVersion = Passed, []string{BuildLevel}, "1.1"
	return release.EncodeJSON(v, " ")
}

// CheckSummary returns an error if a summary does not state that what a statement is about was made again with the same bytes, in the form
// that Summarize gives it.
func CheckSummary(summary, statement []byte) error {
	s, err := Unmarshal(statement)
	if err != nil {
		return err
	}
	var v Summary
	if err := release.DecodeJSON(summary, &v); err != nil {
		return fmt.Errorf("it is no summary of a rebuild: %w", err)
	}
	if v.PredicateType != SummaryType || v.Predicate.Verifier.ID != Verifier {
		return fmt.Errorf("it is no summary of a rebuild, but of %s by %s", v.PredicateType, v.Predicate.Verifier.ID)
	}
	if v.Predicate.Result != Passed {
		return fmt.Errorf("its result is %s", v.Predicate.Result)
	}
	at, err := time.Parse(time.RFC3339, v.Predicate.TimeVerified)
	if err != nil {
		return fmt.Errorf("the time of the rebuild: %w", err)
	}
	same := slices.EqualFunc(v.Subject, s.Subject, func(a, b Subject) bool { return a.Name == b.Name && maps.Equal(a.Digest, b.Digest) })
	want, err := Summarize(statement, at)
	switch {
	case err != nil:
		return err
	case !same:
		return errors.New("it is about other files")
	case !bytes.Equal(summary, want):
		return errors.New("it is about another provenance, or not as slipway states it")
	}
	return nil
}
