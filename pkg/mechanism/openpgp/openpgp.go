// Package openpgp makes keys of OpenPGP, signs with them and checks signatures, in the forms that apt, dnf and rpm read.
//
// ProtonMail/go-crypto does the work. A signature by a key in this process depends on its content, the key and a time that callers choose,
// and on nothing else: the library adds random bytes to signatures unless told not to. Another program's signatures have its time, and may
// have random bytes. So callers pass the earlier signatures, and good ones stay, whoever made them.
//
// No signature leaves this package that it has not checked.
//
// What must never be in here: what is signed, and whose keys count.
package openpgp

import (
	"bytes"
	"context"
	"crypto"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	pgp "github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
)

// A Key signs.
type Key struct {
	entity *pgp.Entity
	signs  *pgp.Entity // the same, see unchanged; nil if the private key is elsewhere
	ask    Ask         // nil: the private key is here

	asked map[string][]byte // the answers
}

// An Ask gets a signature of a content, as packets, from whoever has the private key. A signature of a text covers its lines, however they
// end.
type Ask func(ctx context.Context, content []byte, text bool) ([]byte, error)

// Elsewhere returns a key of which only the public form is here. It asks once for each content.
func Elsewhere(public []byte, ask Ask) (*Key, error) {
	list, err := read(public)
	if err != nil {
		return nil, err
	}
	if len(list) != 1 {
		return nil, errors.New("it is not one key of OpenPGP")
	}
	return &Key{entity: list[0], ask: ask, asked: map[string][]byte{}}, nil
}

// Keys sign together. While a repository changes from one key to another, both do.
type Keys []*Key

// bits is the size of new keys. rpm before version 4.15 reads RSA alone of what is safe today.
const bits = 3072

// New makes a key of a user, "NAME <ADDRESS>", which expires after some time, or never if that is 0. It returns its private and its public
// form.
func New(user string, now time.Time, lifetime time.Duration) (private, public []byte, err error) {
	name, address, ok := strings.Cut(strings.TrimSuffix(user, ">"), " <")
	if !ok || name == "" || !strings.Contains(address, "@") {
		return nil, nil, fmt.Errorf("%q is not a name and an address like Acme <k8s@acme.example>", user)
	}
	c := config(now)
	c.Algorithm, c.RSABits, c.KeyLifetimeSecs = packet.PubKeyAlgoRSA, bits, uint32(lifetime/time.Second)
	e, err := pgp.NewEntity(name, "", address, c)
	if err != nil {
		return nil, nil, err
	}
	e.Subkeys = nil // it is for encryption
	if private, err = armored(pgp.PrivateKeyType, func(w io.Writer) error { return e.SerializePrivate(w, c) }); err != nil {
		return nil, nil, err
	}
	public, err = (&Key{entity: e}).Public()
	return private, public, err
}

func config(at time.Time) *packet.Config {
	random := false
	return &packet.Config{DefaultHash: crypto.SHA256, Time: func() time.Time { return at }, NonDeterministicSignaturesViaNotation: &random}
}

func armored(kind string, write func(io.Writer) error) ([]byte, error) {
	var b bytes.Buffer
	w, err := armor.Encode(&b, kind, nil)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(write(w), w.Close()); err != nil {
		return nil, err
	}
	b.WriteByte('\n')
	return b.Bytes(), nil
}

// ReadPrivate reads a private key, with armor or without. It calls password if the key is encrypted.
func ReadPrivate(data []byte, password func() ([]byte, error)) (*Key, error) {
	list, err := read(data)
	if err != nil {
		return nil, err
	}
	if len(list) != 1 || list[0].PrivateKey == nil {
		return nil, errors.New("it is not one private key of OpenPGP")
	}
	e := list[0]
	if e.PrivateKey.Encrypted {
		p, err := password()
		if err != nil {
			return nil, err
		}
		if err := e.DecryptPrivateKeys(p); err != nil {
			return nil, fmt.Errorf("the password is wrong: %w", err)
		}
	}
	return &Key{entity: e, signs: unchanged(e)}, nil
}

// unchanged returns a key as if it had been made as it is. The library refuses to sign at a time before the key's last change, such as
// when its owner extended it. But a release from before that must get the signature that it has.
func unchanged(e *pgp.Entity) *pgp.Entity {
	made := *e
	if i := e.PrimaryIdentity(); i != nil {
		one := *i
		one.SelfSignature = at(i.SelfSignature, e.PrimaryKey.CreationTime)
		made.Identities = map[string]*pgp.Identity{i.Name: &one}
	}
	made.SelfSignature = at(e.SelfSignature, e.PrimaryKey.CreationTime)
	made.Subkeys = slices.Clone(e.Subkeys)
	for i, s := range made.Subkeys {
		made.Subkeys[i].Sig = at(s.Sig, s.PublicKey.CreationTime)
	}
	return &made
}

// at returns a signature as if it had been made at a time.
func at(s *packet.Signature, t time.Time) *packet.Signature {
	if s == nil {
		return nil
	}
	moved := *s
	moved.CreationTime = t
	return &moved
}

func read(data []byte) (pgp.EntityList, error) {
	list, err := pgp.ReadKeyRing(bytes.NewReader(data))
	if err != nil || len(list) == 0 {
		if armored, _ := pgp.ReadArmoredKeyRing(bytes.NewReader(data)); armored != nil {
			list, err = armored, nil
		}
	}
	if err == nil && len(list) == 0 {
		err = errors.New("it has none")
	}
	if err != nil {
		return nil, fmt.Errorf("it is not a key of OpenPGP: %w", err)
	}
	return list, nil
}

// Created returns when the key was made.
func (k *Key) Created() time.Time { return k.entity.PrimaryKey.CreationTime }

// Changed returns when the key was made, or extended, or got another part: the time of the last signature by which it says so itself.
func (k *Key) Changed() time.Time {
	last := k.Created()
	later := func(s *packet.Signature) {
		if s != nil && s.CreationTime.After(last) {
			last = s.CreationTime
		}
	}
	for _, i := range k.entity.Identities {
		later(i.SelfSignature)
	}
	for _, s := range k.entity.Subkeys {
		later(s.Sig)
	}
	return last
}

// User returns who has the key: "NAME <ADDRESS>".
func (k *Key) User() string {
	if i := k.entity.PrimaryIdentity(); i != nil {
		return i.Name
	}
	return ""
}

// Expires returns when the key expires, or the part of it that signs at a time, if that is earlier. The zero time is never.
func (k *Key) Expires(at time.Time) time.Time {
	end := time.Time{}
	self, _ := k.entity.PrimarySelfSignature()
	by, _ := k.entity.SigningKey(at)
	for _, part := range []pgp.Key{{PublicKey: k.entity.PrimaryKey, SelfSignature: self}, by} {
		if s := part.SelfSignature; s == nil || s.KeyLifetimeSecs == nil || *s.KeyLifetimeSecs == 0 {
			continue
		}
		e := part.PublicKey.CreationTime.Add(time.Duration(*part.SelfSignature.KeyLifetimeSecs) * time.Second)
		if end.IsZero() || e.Before(end) {
			end = e
		}
	}
	return end
}

// Revoked reports whether the owner has revoked the key.
func (k *Key) Revoked(at time.Time) bool { return k.entity.Revoked(at) }

// CanSign reports whether the key, or a part of it, is for signatures, and neither expired nor revoked at a time.
func (k *Key) CanSign(at time.Time) bool {
	_, ok := k.entity.SigningKey(at)
	return ok
}

// Fingerprint returns the key's fingerprint in hex.
func (k *Key) Fingerprint() string { return fmt.Sprintf("%X", k.entity.PrimaryKey.Fingerprint) }

// Public returns the public key, with armor.
func (k *Key) Public() ([]byte, error) { return Keys{k}.Public() }

// Public returns the public keys, with armor.
func (k Keys) Public() ([]byte, error) {
	return armored(pgp.PublicKeyType, func(w io.Writer) error {
		for _, one := range k {
			if err := one.serialize(w); err != nil {
				return err
			}
		}
		return nil
	})
}

// serialize writes the public key as the library does, but always with its users in the same order.
func (k *Key) serialize(w io.Writer) error {
	var parts []interface{ Serialize(io.Writer) error }
	signatures := func(all ...*packet.Signature) {
		for _, s := range all {
			parts = append(parts, s)
		}
	}
	e := k.entity
	parts = append(parts, e.PrimaryKey)
	signatures(e.Revocations...)
	signatures(e.Signatures...)
	for _, name := range slices.Sorted(maps.Keys(e.Identities)) {
		parts = append(parts, e.Identities[name].UserId)
		signatures(e.Identities[name].Signatures...)
	}
	for _, s := range e.Subkeys {
		parts = append(parts, s.PublicKey)
		signatures(s.Revocations...)
		signatures(s.Sig)
	}
	for _, part := range parts {
		if err := part.Serialize(w); err != nil {
			return err
		}
	}
	return nil
}

// from returns a time, or that of the key if it is younger: no signature is older than its key.
func (k *Key) from(at time.Time) time.Time {
	if created := k.Created(); at.Before(created) {
		return created
	}
	return at
}
