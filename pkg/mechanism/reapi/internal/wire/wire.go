// Package wire reads and writes protobuf messages field by field, and frames them as gRPC does.
//
// What must never be in here: what the messages mean.
package wire

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
)

// ErrMessage says that bytes are not the message that was asked for.
var ErrMessage = errors.New("the answer is no message of the protocol")

// Max is the size, in bytes, of the largest message that is sent, or taken as a whole. Servers have this limit by default.
const Max = 4 << 20

// A Field is the number of a message's field.
type Field = protowire.Number

// AppendBytes appends a field with bytes, a text or a message.
func AppendBytes(b []byte, field Field, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), value)
}

// AppendString appends a field with a text, unless it is empty.
func AppendString(b []byte, field Field, value string) []byte {
	if value == "" {
		return b
	}
	return AppendBytes(b, field, []byte(value))
}

// AppendInt appends a field with a number, unless it is 0.
func AppendInt(b []byte, field Field, value int64) []byte {
	if value == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), uint64(value))
}

// Fields calls f for each field of a message, with its bytes or its number. It returns ErrMessage for what is no message, and the first
// error of f.
func Fields(message []byte, f func(field Field, value []byte, number uint64) error) error {
	for len(message) > 0 {
		field, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return ErrMessage
		}
		message = message[n:]
		var value []byte
		var number uint64
		switch kind {
		case protowire.BytesType:
			value, n = protowire.ConsumeBytes(message)
		case protowire.VarintType:
			number, n = protowire.ConsumeVarint(message)
		default:
			n = protowire.ConsumeFieldValue(field, kind, message)
		}
		if n < 0 {
			return ErrMessage
		}
		message = message[n:]
		if err := f(field, value, number); err != nil {
			return err
		}
	}
	return nil
}

// prefix precedes a message: a byte that says whether it is compressed, and its length.
const prefix = 5

// Frame returns a message as gRPC sends it.
func Frame(message []byte) []byte {
	b := make([]byte, prefix, prefix+len(message))
	binary.BigEndian.PutUint32(b[1:], uint32(len(message)))
	return append(b, message...)
}

// ReadFrame returns the next message, or io.EOF after the last one.
func ReadFrame(r io.Reader) ([]byte, error) {
	size, err := readPrefix(r)
	if err != nil {
		return nil, err
	}
	if size > Max {
		return nil, ErrMessage
	}
	message := make([]byte, size)
	if _, err := io.ReadFull(r, message); err != nil {
		return nil, cut(err)
	}
	return message, nil
}

// readPrefix returns the size of the next message, in bytes, or io.EOF after the last one.
func readPrefix(r io.Reader) (size uint32, err error) {
	var head [prefix]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return 0, ErrMessage
		}
		return 0, err
	}
	if head[0] != 0 {
		return 0, ErrMessage
	}
	return binary.BigEndian.Uint32(head[1:]), nil
}

// cut returns the error for a message that has begun.
func cut(err error) error {
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("the answer is cut short: %w", err)
}

// ReadBytes reads the next message, and calls use for the value of one of its fields, in pieces that are valid until use returns. The
// message may have any size, and is never in memory as a whole. ReadBytes returns io.EOF after the last message, and the first error of
// use.
func ReadBytes(r *bufio.Reader, field Field, use func(piece []byte) error) error {
	size, err := readPrefix(r)
	if err != nil {
		return err
	}
	m := streamed{r: r, left: int64(size)}
	for m.left > 0 {
		tag, err := m.varint()
		if err != nil {
			return err
		}
		number, kind := protowire.DecodeTag(tag)
		if number < protowire.MinValidNumber {
			return ErrMessage
		}
		skip := uint64(0)
		switch kind {
		case protowire.BytesType:
			skip, err = m.varint()
		case protowire.VarintType:
			_, err = m.varint()
		case protowire.Fixed32Type:
			skip = 4
		case protowire.Fixed64Type:
			skip = 8
		default: // groups, which are deprecated
			err = ErrMessage
		}
		if err != nil {
			return err
		}
		to := use
		if kind != protowire.BytesType || number != field {
			to = func([]byte) error { return nil }
		}
		if err := m.pieces(skip, to); err != nil {
			return err
		}
	}
	return nil
}

// A streamed message has bytes left to read.
type streamed struct {
	r      *bufio.Reader
	left   int64
	failed error // of ReadByte
}

// ReadByte returns the next byte of a number, which does not reach beyond the message.
func (m *streamed) ReadByte() (byte, error) {
	if m.left == 0 {
		m.failed = ErrMessage
		return 0, m.failed
	}
	b, err := m.r.ReadByte()
	if err != nil {
		m.failed = cut(err)
		return 0, m.failed
	}
	m.left--
	return b, nil
}

func (m *streamed) varint() (uint64, error) {
	n, err := binary.ReadUvarint(m)
	if err != nil && m.failed == nil {
		err = ErrMessage // it is too large
	}
	return n, err
}

// pieces calls use for the next n bytes.
func (m *streamed) pieces(n uint64, use func([]byte) error) error {
	if n > uint64(m.left) {
		return ErrMessage
	}
	for left := int64(n); left > 0; {
		if _, err := m.r.Peek(1); err != nil { // waits for more
			return cut(err)
		}
		piece, _ := m.r.Peek(int(min(left, int64(m.r.Buffered()))))
		if err := use(piece); err != nil {
			return err
		}
		left -= int64(len(piece))
		m.left -= int64(len(piece))
		if _, err := m.r.Discard(len(piece)); err != nil {
			return err
		}
	}
	return nil
}
