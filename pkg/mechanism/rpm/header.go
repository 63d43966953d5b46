package rpm

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
)

// Types of values in a header.
const (
	typeInt16       = 3
	typeInt32       = 4
	typeString      = 6
	typeBinary      = 7
	typeStringArray = 8
	typeI18N        = 9
)

// A tag is a value of a header.
type tag struct {
	id, kind, count uint32
	data            []byte
}

func text(id uint32, value string) tag {
	return tag{id, typeString, 1, append([]byte(value), 0)}
}

// translated returns a text that might have translations, and has none.
func translated(id uint32, value string) tag {
	return tag{id, typeI18N, 1, append([]byte(value), 0)}
}

func texts(id uint32, values []string) tag {
	var data []byte
	for _, v := range values {
		data = append(append(data, v...), 0)
	}
	return tag{id, typeStringArray, uint32(len(values)), data}
}

func numbers(id uint32, values ...uint32) tag {
	var data []byte
	for _, v := range values {
		data = binary.BigEndian.AppendUint32(data, v)
	}
	return tag{id, typeInt32, uint32(len(values)), data}
}

func shorts(id uint32, values []uint16) tag {
	var data []byte
	for _, v := range values {
		data = binary.BigEndian.AppendUint16(data, v)
	}
	return tag{id, typeInt16, uint32(len(values)), data}
}

// Regions of headers. A region is a tag that says which others belong together: here all.
const (
	signatureRegion = 62
	mainRegion      = 63
)

// header returns tags in the form of a file: a preamble, an index of 16 bytes for each tag, and the values.
func header(region uint32, tags []tag) []byte {
	slices.SortFunc(tags, func(a, b tag) int { return cmp.Compare(a.id, b.id) })
	var index, values []byte
	for _, t := range tags {
		align := map[uint32]int{typeInt16: 2, typeInt32: 4}[t.kind]
		for align > 0 && len(values)%align != 0 {
			values = append(values, 0)
		}
		index = entry(index, t.id, t.kind, uint32(len(values)), t.count)
		values = append(values, t.data...)
	}
	count := uint32(len(tags) + 1)
	// The region comes first in the index. Its value comes last, and points back to the begin of the index.
	index = append(entry(nil, region, typeBinary, uint32(len(values)), 16), index...)
	values = entry(values, region, typeBinary, -(count * 16), 16)
	b := []byte{0x8e, 0xad, 0xe8, 1, 0, 0, 0, 0}
	b = binary.BigEndian.AppendUint32(b, count)
	b = binary.BigEndian.AppendUint32(b, uint32(len(values)))
	return bytes.Join([][]byte{b, index, values}, nil)
}

// entry appends an entry of an index.
func entry(to []byte, id, kind, offset, count uint32) []byte {
	for _, v := range []uint32{id, kind, offset, count} {
		to = binary.BigEndian.AppendUint32(to, v)
	}
	return to
}
