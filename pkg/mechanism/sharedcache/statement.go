package sharedcache

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/signature"
)

const (
	statementType = "https://in-toto.io/Statement/v1"
	predicateType = "https://slipway.build/action-result/v1"
)

// A statement says what an action made. Its subject is the action: the SHA-256 of all that decides the result.
type statement struct {
	Type          string        `json:"_type"`
	Subject       []subject     `json:"subject"`
	PredicateType string        `json:"predicateType"`
	Predicate     action.Result `json:"predicate"`
}

type subject struct {
	Name   string `json:"name"`
	Digest struct {
		SHA256 string `json:"sha256"`
	} `json:"digest"`
}

// signed returns a signed statement of a result.
func (c *Cache) signed(ctx context.Context, key string, r *action.Result) ([]byte, error) {
	s := statement{Type: statementType, Subject: make([]subject, 1), PredicateType: predicateType, Predicate: *r}
	s.Subject[0].Name, s.Subject[0].Digest.SHA256 = "action", key
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	b, err := signature.Attest(ctx, *c.Sign, text)
	if err != nil {
		return nil, err
	}
	return b.Marshal()
}

// verified returns the result in a signed statement, if it is of this action and a trusted key signed it.
func (c *Cache) verified(key string, bundle []byte) (*action.Result, error) {
	if len(bundle) == 0 {
		return nil, errors.New("they are not signed")
	}
	b, err := signature.Unmarshal(bundle)
	if err != nil {
		return nil, err
	}
	text := b.Statement()
	err = errors.New("there are no trusted keys")
	for _, k := range c.Keys {
		if err = b.Verify(k, text); err == nil {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	var s statement // fields of a later version are ignored
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, fmt.Errorf("the statement cannot be read: %w", err)
	}
	if s.Type != statementType || s.PredicateType != predicateType || len(s.Subject) != 1 || s.Subject[0].Digest.SHA256 != key {
		return nil, errors.New("the statement is of something else")
	}
	return &s.Predicate, nil
}
