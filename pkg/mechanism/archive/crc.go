package archive

import "hash/crc32"

// combineCRC returns the CRC-32 of a content whose first part has the CRC-32 a and whose rest, of n bytes,
// has b.
//
// A CRC is a remainder modulo a polynomial P over GF(2). To append n bytes is to multiply what was before by
// x^8n and to add what is new; addition is xor. That the CRCs are inverted at both ends cancels out.
func combineCRC(a, b uint32, n int64) uint32 {
	shift := uint32(1) << 31  // x^0
	square := uint32(1) << 23 // x^8, then its square, and so on
	for ; n > 0; n >>= 1 {
		if n&1 != 0 {
			shift = multiply(shift, square)
		}
		square = multiply(square, square)
	}
	return multiply(shift, a) ^ b
}

// multiply multiplies modulo P. As in CRC-32 the highest bit is the coefficient of x^0.
func multiply(a, b uint32) uint32 {
	var product uint32
	for ; a != 0; a <<= 1 {
		if a>>31 != 0 {
			product ^= b
		}
		carry := b & 1
		b >>= 1 // times x
		if carry != 0 {
			b ^= crc32.IEEE
		}
	}
	return product
}
