// Package wire reads and writes protobuf messages field by field, and frames them as gRPC does.
//
// What must never be in here: what the messages mean.
package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
)

// ErrMessage says that bytes are not the message that was asked for.
var ErrMessage = errors.New("the answer is no message of the protocol")

// Max is the size, in bytes, of the largest message that is sent or taken. Servers have this limit by default.
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
	var head [prefix]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, ErrMessage
		}
		return nil, err
	}
	size := binary.BigEndian.Uint32(head[1:])
	if head[0] != 0 || size > Max {
		return nil, ErrMessage
	}
	message := make([]byte, size)
	if _, err := io.ReadFull(r, message); err != nil {
		return nil, fmt.Errorf("the answer is cut short: %w", err)
	}
	return message, nil
}
