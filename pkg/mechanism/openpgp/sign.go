package openpgp

import (
	"bytes"
	"context"
	"crypto"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	pgp "github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/clearsign"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
)

// A Signature is one of a content, and no more than that: a packet.
type Signature struct {
	Packet []byte
	IsRSA  bool // these have a place of their own in rpms

	hash string // as texts name it
}

// hashes are those that signatures may have, by their names in signed texts.
var hashes = map[crypto.Hash]string{crypto.SHA256: "SHA256", crypto.SHA384: "SHA384", crypto.SHA512: "SHA512"}

// Sign returns a signature of a content. It says that it was made at a time, or, if the key is elsewhere, now.
func (k *Key) Sign(ctx context.Context, content []byte, at time.Time) (Signature, error) {
	return k.sign(ctx, content, false, at)
}

func (k *Key) sign(ctx context.Context, content []byte, text bool, at time.Time) (Signature, error) {
	packets, err := k.packets(ctx, content, text, k.from(at))
	if err != nil {
		return Signature{}, err
	}
	s, ok := k.find(content, text, packets)
	if !ok {
		return s, fmt.Errorf("the key %s: the new signature is by another key, of another content, or of a weak digest such as SHA-1: "+
			"it is not used", k.Fingerprint())
	}
	return s, nil
}

// packets makes a signature.
func (k *Key) packets(ctx context.Context, content []byte, text bool, at time.Time) ([]byte, error) {
	if k.ask != nil {
		question := fmt.Sprint(text, " ", string(content))
		if answer := k.asked[question]; answer != nil {
			return answer, nil
		}
		answer, err := k.ask(ctx, content, text)
		if err == nil {
			k.asked[question] = answer
		}
		return answer, err
	}
	if by, ok := k.signs.SigningKey(at); !ok || by.PrivateKey == nil {
		return nil, fmt.Errorf("the key %s cannot sign on %s", k.Fingerprint(), at.UTC().Format(time.DateOnly))
	}
	sign := pgp.DetachSign
	if text {
		sign = pgp.DetachSignText
	}
	var b bytes.Buffer
	err := sign(&b, k.signs, bytes.NewReader(content), config(at))
	return b.Bytes(), err
}

// find returns the first of some packets that is the key's signature of a content.
func (k *Key) find(content []byte, text bool, packets []byte) (Signature, bool) {
	want := packet.SigTypeBinary
	if text {
		want = packet.SigTypeText
	}
	for _, one := range split(packets) {
		p, err := packet.Read(bytes.NewReader(one))
		s, ok := p.(*packet.Signature)
		if err != nil || !ok || s.SigType != want || hashes[s.Hash] == "" {
			continue
		}
		now := time.Now()
		if s.CreationTime.After(now) { // callers give each index a date of its own, which may be to come
			now = s.CreationTime
		}
		_, err = pgp.CheckDetachedSignature(pgp.EntityList{k.entity}, bytes.NewReader(content), bytes.NewReader(one), config(now))
		if err == nil {
			return Signature{one, s.PubKeyAlgo == packet.PubKeyAlgoRSA, hashes[s.Hash]}, true
		}
	}
	return Signature{}, false
}

// split returns packets one by one, as far as they are whole.
func split(packets []byte) (all [][]byte) {
	r := bytes.NewReader(packets)
	for opaque := packet.NewOpaqueReader(r); r.Len() > 0; {
		rest := packets[len(packets)-r.Len():]
		if _, err := opaque.Next(); err != nil {
			return all
		}
		all = append(all, rest[:len(rest)-r.Len()])
	}
	return all
}

// Find returns the signature of a content by one of the keys, of packets.
func (k Keys) Find(content, packets []byte) (Signature, bool) { return k.find(content, false, packets) }

func (k Keys) find(content []byte, text bool, packets []byte) (Signature, bool) {
	for _, one := range k {
		if s, ok := one.find(content, text, packets); ok {
			return s, true
		}
	}
	return Signature{}, false
}

// sign returns signatures of a content by all keys, and their packets. Good ones among earlier packets stay.
func (k Keys) sign(ctx context.Context, content []byte, text bool, at time.Time, before []byte) (all []Signature, _ []byte, err error) {
	var packets []byte
	for _, one := range k {
		s, ok := one.find(content, text, before)
		if !ok {
			if s, err = one.sign(ctx, content, text, at); err != nil {
				return nil, nil, err
			}
		}
		all, packets = append(all, s), append(packets, s.Packet...)
	}
	return all, packets, nil
}

// Sign returns signatures of a content by all keys, with armor. Good ones in what it returned before stay.
func (k Keys) Sign(ctx context.Context, content []byte, at time.Time, before []byte) ([]byte, error) {
	_, packets, err := k.sign(ctx, content, false, at, bare(before))
	if err != nil {
		return nil, err
	}
	return armored(pgp.SignatureType, func(w io.Writer) error {
		_, err := w.Write(packets)
		return err
	})
}

// Clear returns a text with signatures by all keys around it. Good ones in what it returned before stay.
func (k Keys) Clear(ctx context.Context, text []byte, at time.Time, before []byte) ([]byte, error) {
	_, packets := opened(before)
	// The library has this form for private keys alone that it has itself. It has no blanks at the ends of lines.
	lines := bytes.Split(text, []byte("\n"))
	for i, line := range lines {
		lines[i] = bytes.TrimRight(line, " \t")
	}
	signed := bytes.Join(lines, []byte("\n"))
	all, packets, err := k.sign(ctx, signed, true, at, packets)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, s := range all {
		if !slices.Contains(names, s.hash) {
			names = append(names, s.hash)
		}
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "-----BEGIN PGP SIGNED MESSAGE-----\nHash: %s\n\n", strings.Join(names, ","))
	for _, line := range lines {
		if bytes.HasPrefix(line, []byte("-")) {
			b.WriteString("- ")
		}
		b.Write(line)
		b.WriteByte('\n')
	}
	w, err := armor.EncodeWithChecksumOption(&b, pgp.SignatureType, nil, false)
	if err != nil {
		return nil, err
	}
	_, err = w.Write(packets)
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, err
	}
	b.WriteByte('\n')
	for _, one := range k {
		if _, err := (Keys{one}).Open(b.Bytes()); err != nil {
			return nil, fmt.Errorf("sign a text: %w", err)
		}
	}
	return b.Bytes(), nil
}

// errStranger says that a signature is by another key, or of another content.
var errStranger = errors.New("its signature is by none of the keys")

// Open returns the text of what Clear returns, if one of the keys has signed it.
func (k Keys) Open(signed []byte) ([]byte, error) {
	block, packets := opened(signed)
	if block == nil {
		return nil, errors.New("it has no signature")
	}
	if _, ok := k.find(block.Bytes, true, packets); !ok {
		return nil, errStranger
	}
	return block.Plaintext, nil
}

// Check checks what Sign returns.
func (k Keys) Check(content, signature []byte) error {
	if _, ok := k.find(content, false, bare(signature)); !ok {
		return errStranger
	}
	return nil
}

// bare returns the packets in armor, as far as they are whole.
func bare(signature []byte) []byte {
	block, err := armor.Decode(bytes.NewReader(signature))
	if err != nil {
		return nil
	}
	packets, _ := io.ReadAll(block.Body)
	return packets
}

// opened returns a signed text, and the packets of its signatures, as far as they are whole.
func opened(signed []byte) (*clearsign.Block, []byte) {
	block, _ := clearsign.Decode(signed)
	if block == nil {
		return nil, nil
	}
	packets, _ := io.ReadAll(block.ArmoredSignature.Body)
	return block, packets
}
