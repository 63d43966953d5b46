// Package trust says whose signatures count, and when.
//
// A [Policy] names keys, how many of their owners must have signed, and the timestamp servers that are believed. It comes from keys that a
// user names, or from a [File], trust.json, which others have signed.
//
// What must never be in here: what is signed, and where signatures are.
package trust

import (
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/mechanism/signature"
	"slipway.build/pkg/mechanism/timestamp"
)

// A Policy says whose signatures count.
type Policy struct {
	Keys        []Key               // each counts once
	Threshold   int                 // how many of their owners must have signed, at least 1
	Authorities []*x509.Certificate // root certificates of timestamp servers
	Now         time.Time
}

// A Key is one whose signatures count: those made while it is valid. A signature shows when it was made by a timestamp alone; without
// one, it counts as made now.
type Key struct {
	signature.PublicKey
	From, Until time.Time // when it is valid: not before From, and before Until; zero if there is no limit
	Revoked     *Revocation
}

// A Revocation says that a key's signatures count no longer.
type Revocation struct {
	Since  time.Time // those that a timestamp shows to be older still count; zero if none do
	Reason string
}

// Of returns the policy that the owner of one of the keys must have signed.
func Of(keys ...signature.PublicKey) *Policy {
	p := &Policy{Threshold: 1, Now: time.Now()}
	for _, key := range keys {
		p.Keys = append(p.Keys, Key{PublicKey: key})
	}
	return p
}

// Check returns an error if nobody can satisfy the policy, or if it says nothing.
func (p *Policy) Check() error {
	hints := map[string]bool{}
	for _, key := range p.Keys {
		if hints[key.Hint()] {
			return badrequest.Mark(fmt.Errorf("the key %s is named twice, and counts once", key.Hint()))
		}
		hints[key.Hint()] = true
	}
	switch {
	case p.Threshold < 1:
		return badrequest.Mark(fmt.Errorf("%d keys must have signed: want 1 or more", p.Threshold))
	case p.Threshold > len(hints):
		return badrequest.Mark(fmt.Errorf("%d keys must have signed, but there are %d", p.Threshold, len(hints)))
	}
	return nil
}

// Has reports whether a key is among those whose signatures may count.
func (p *Policy) Has(key signature.PublicKey) bool { return p != nil && p.find(key.Hint()) != nil }

func (p *Policy) find(hint string) *Key {
	i := slices.IndexFunc(p.Keys, func(k Key) bool { return k.Hint() == hint })
	if i < 0 {
		return nil
	}
	return &p.Keys[i]
}

// VerifyAny is like Verify, with the key that the bundle claims to be signed by, which it returns.
func (p *Policy) VerifyAny(b *signature.Bundle, data []byte) (Key, error) {
	key := p.find(b.Hint())
	switch {
	case key != nil:
		return *key, p.Verify(b, *key, data)
	case len(p.Keys) == 1:
		return p.Keys[0], p.Verify(b, p.Keys[0], data)
	}
	return Key{}, fmt.Errorf("it is by the key %s, which is none of the wanted", b.Hint())
}

// Verify returns an error unless the bundle is a signature of data by the key that counts.
func (p *Policy) Verify(b *signature.Bundle, key Key, data []byte) error {
	if err := b.Verify(key.PublicKey, data); err != nil {
		return err
	}
	made, shown, err := p.made(b)
	if err != nil {
		return err
	}
	return key.valid(made, shown)
}

// maxTimestamps is how many timestamps of a signature are looked at.
const maxTimestamps = 8

// made returns the time at which a signature existed, at the latest: what the oldest timestamp that is believed shows, or else now.
// If servers are believed, a timestamp that is none of theirs does not matter unless there is no other.
func (p *Policy) made(b *signature.Bundle) (at time.Time, shown bool, err error) {
	responses := b.Timestamps()
	if len(p.Authorities) == 0 || len(responses) == 0 {
		return p.Now, false, nil
	}
	if len(responses) > maxTimestamps {
		return at, false, fmt.Errorf("it has %d timestamps, want at most %d", len(responses), maxTimestamps)
	}
	var errs []error
	for _, response := range responses {
		t, err := timestamp.Verify(response, b.Signature(), p.Authorities)
		if err == nil && t.After(p.Now) {
			err = fmt.Errorf("it is of %s, which is not over", t.UTC().Format(time.RFC3339))
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("its timestamp: %w", err))
			continue
		}
		if !shown || t.Before(at) {
			at, shown = t, true
		}
	}
	if !shown {
		return at, false, errors.Join(errs...)
	}
	return at, true, nil
}

// valid returns an error if a signature by the key does not count. Shown says that a timestamp shows when it was made.
func (k Key) valid(made time.Time, shown bool) error {
	day := func(t time.Time) string { return t.UTC().Format(time.RFC3339) }
	without := ", and no timestamp that is believed shows that the signature is older"
	if shown {
		without = fmt.Sprintf(", and the signature's timestamp is of %s", day(made))
	}
	if r := k.Revoked; r != nil {
		switch {
		case r.Since.IsZero():
			return fmt.Errorf("the key %s is revoked: %s", k.Hint(), r.Reason)
		case !shown || !made.Before(r.Since):
			return fmt.Errorf("the key %s is revoked since %s%s: %s", k.Hint(), day(r.Since), without, r.Reason)
		}
	}
	switch {
	case !k.From.IsZero() && made.Before(k.From):
		return fmt.Errorf("the key %s is valid from %s, and the signature is older", k.Hint(), day(k.From))
	case !k.Until.IsZero() && !made.Before(k.Until):
		return fmt.Errorf("the key %s was valid until %s%s", k.Hint(), day(k.Until), without)
	}
	return nil
}
