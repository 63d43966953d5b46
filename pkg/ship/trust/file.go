package trust

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"slipway.build/pkg/mechanism/signature"
	"slipway.build/pkg/mechanism/timestamp"
)

// MaxFile is the size, in bytes, of the largest file that is read.
const MaxFile = 1 << 20

// A File is a policy as it is published, by convention as trust.json: in JSON, and signed. Times are as in RFC 3339.
type File struct {
	Version     int        `json:"version"`           // 1 or more; each change has a higher one
	Expires     *time.Time `json:"expires,omitempty"` // when it must not be used any longer; there is a newer one before that
	Threshold   int        `json:"threshold"`         // how many of the keys' owners must have signed a release
	Keys        []FileKey  `json:"keys"`
	Authorities []string   `json:"timestampRoots,omitempty"` // root certificates of timestamp servers, in PEM's form
}

// A FileKey is a key in a File.
type FileKey struct {
	PEM     string          `json:"pem"`
	From    *time.Time      `json:"from,omitempty"`
	Until   *time.Time      `json:"until,omitempty"`
	Revoked *FileRevocation `json:"revoked,omitempty"`
}

// A FileRevocation says that a key's signatures count no longer.
type FileRevocation struct {
	Since  *time.Time `json:"since,omitempty"` // those that a timestamp shows to be older still count; without it, none do
	Reason string     `json:"reason"`
}

// Parse reads a File strictly: what it does not know may be a restriction.
func Parse(data []byte) (*File, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	f := &File{}
	if err := d.Decode(f); err != nil {
		return nil, fmt.Errorf("it is not a file of trusted keys: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("it is not a file of trusted keys: there is more after it")
	}
	if f.Version < 1 {
		return nil, fmt.Errorf("its version is %d, want 1 or more", f.Version)
	}
	p, err := f.Policy(time.Time{})
	if err != nil {
		return nil, err
	}
	return f, p.Check()
}

// Marshal returns the file's text.
func (f *File) Marshal() ([]byte, error) {
	text, err := json.MarshalIndent(f, "", "  ")
	return append(text, '\n'), err
}

// Policy returns what the file says, at a time. The zero time is before all others.
func (f *File) Policy(now time.Time) (*Policy, error) {
	if f.Expires != nil && !now.Before(*f.Expires) {
		return nil, fmt.Errorf("version %d of it has expired, at %s: fetch a newer one", f.Version, f.Expires.Format(time.RFC3339))
	}
	p := &Policy{Threshold: f.Threshold, Now: now}
	for i, k := range f.Keys {
		public, err := signature.ParsePublic([]byte(k.PEM))
		if err != nil {
			return nil, fmt.Errorf("key %d: %w", i+1, err)
		}
		key := Key{PublicKey: public, From: orZero(k.From), Until: orZero(k.Until)}
		if !key.From.IsZero() && !key.Until.IsZero() && !key.From.Before(key.Until) {
			return nil, fmt.Errorf("key %d, %s, is valid at no time", i+1, public.Hint())
		}
		if r := k.Revoked; r != nil {
			if r.Reason == "" {
				return nil, fmt.Errorf("key %d, %s, is revoked without a reason", i+1, public.Hint())
			}
			key.Revoked = &Revocation{orZero(r.Since), r.Reason}
		}
		p.Keys = append(p.Keys, key)
	}
	for i, text := range f.Authorities {
		roots, err := timestamp.ParseRoots([]byte(text))
		if err != nil {
			return nil, fmt.Errorf("timestamp root %d: %w", i+1, err)
		}
		p.Authorities = append(p.Authorities, roots...)
	}
	return p, nil
}

func orZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

// Key returns the entry of a key, which it adds if there is none.
func (f *File) Key(key signature.PublicKey) *FileKey {
	for i := range f.Keys {
		if known, err := signature.ParsePublic([]byte(f.Keys[i].PEM)); err == nil && known.Hint() == key.Hint() {
			return &f.Keys[i]
		}
	}
	f.Keys = append(f.Keys, FileKey{PEM: string(key.PEM())})
	return &f.Keys[len(f.Keys)-1]
}

// Believe adds root certificates of timestamp servers, in PEM's form.
func (f *File) Believe(pem []byte) error {
	_, err := timestamp.ParseRoots(pem)
	if err == nil && !slices.Contains(f.Authorities, string(pem)) {
		f.Authorities = append(f.Authorities, string(pem))
	}
	return err
}
