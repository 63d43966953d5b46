package diff

// An x86Inst says where the parts of an x86-64 instruction are. Offsets are from its first byte.
type x86Inst struct {
	size     int
	disp     int  // offset of the displacement of a memory operand; 0 if there is none of four bytes
	rip      bool // the displacement is relative to the end of the instruction
	absolute bool // the displacement has no base register
	rel      int  // offset of a branch's relative target; 0 if there is none
	relSize  int  // bytes: 1 or 4
}

// What follows an opcode.
const (
	opModRM  = 1 << iota
	opImm8   // a byte
	opImm16  // two bytes
	opImmZ   // four bytes, two with an operand size prefix
	opImmV   // as opImmZ, eight with REX.W
	opRel8   // a branch target
	opRel32  // a branch target
	opMoffs  // an absolute address of eight bytes
	opGroup3 // an immediate only if ModRM.reg is 0 or 1: TEST
	opBad    // none in 64-bit mode
)

// decodeX86 finds the parts of the instruction at the beginning of code. It knows all instructions of 64-bit mode that Go's
// compiler and assembler emit, with VEX and EVEX. It returns false if it does not know the instruction or code ends within it.
func decodeX86(code []byte) (x86Inst, bool) {
	var in x86Inst
	i, small, wide := 0, false, false
prefixes:
	for ; i < len(code); i++ {
		switch code[i] {
		case 0x66:
			small = true
		case 0xF0, 0xF2, 0xF3, 0x2E, 0x36, 0x3E, 0x26, 0x64, 0x65:
		default:
			break prefixes
		}
	}
	at := func(i int) byte {
		if i < len(code) {
			return code[i]
		}
		return 0
	}
	var attr int
	switch c := at(i); {
	case c == 0xC5:
		attr, i = vexAttributes(1, at(i+2)), i+3
	case c == 0xC4:
		attr, i = vexAttributes(at(i+1)&0x1F, at(i+3)), i+4
	case c == 0x62:
		attr, i = vexAttributes(at(i+1)&7, at(i+4)), i+5
	default:
		if c&0xF0 == 0x40 {
			wide = c&8 != 0
			i++
			c = at(i)
		}
		i++
		switch {
		case c != 0x0F:
			attr = oneByte[c]
		case at(i) == 0x38:
			attr, i = opModRM, i+2
		case at(i) == 0x3A:
			attr, i = opModRM|opImm8, i+2
		default:
			attr = twoByte(at(i))
			i++
		}
	}
	if attr&opBad != 0 || i > len(code) {
		return in, false
	}
	opcode := at(i - 1)
	if attr&opModRM != 0 {
		m := at(i)
		i++
		mod, rm := m>>6, m&7
		noBase := false
		if mod != 3 && rm == 4 {
			noBase = mod == 0 && at(i)&7 == 5
			i++
		}
		switch {
		case mod == 1:
			i++
		case mod == 2, mod == 0 && rm == 5, noBase:
			in.disp, in.rip, in.absolute = i, mod == 0 && rm == 5, noBase
			i += 4
		}
		if attr&opGroup3 != 0 && m>>3&7 <= 1 {
			if opcode == 0xF6 {
				attr |= opImm8
			} else {
				attr |= opImmZ
			}
		}
	}
	if attr&opImm8 != 0 {
		i++
	}
	if attr&opImm16 != 0 {
		i += 2
	}
	switch {
	case attr&opImmV != 0 && wide:
		i += 8
	case attr&(opImmV|opImmZ) != 0 && small && !wide:
		i += 2
	case attr&(opImmV|opImmZ) != 0:
		i += 4
	case attr&opMoffs != 0:
		i += 8
	case attr&opRel8 != 0:
		in.rel, in.relSize = i, 1
		i++
	case attr&opRel32 != 0:
		in.rel, in.relSize = i, 4
		i += 4
	}
	in.size = i
	return in, i <= len(code) && i <= 15
}

// vexAttributes returns what follows an opcode in one of the maps of VEX and EVEX.
func vexAttributes(opcodeMap, opcode byte) int {
	switch opcodeMap {
	case 1:
		switch {
		case opcode == 0x77: // VZEROUPPER
			return 0
		case opcode >= 0x70 && opcode <= 0x73, opcode == 0xC2, opcode >= 0xC4 && opcode <= 0xC6:
			return opModRM | opImm8
		}
		return opModRM
	case 2:
		return opModRM
	case 3:
		return opModRM | opImm8
	}
	return opBad
}

// oneByte lists what follows the opcodes of one byte.
var oneByte = func() (t [256]int) {
	for c := 0; c < 0x40; c += 8 { // arithmetic
		t[c], t[c+1], t[c+2], t[c+3], t[c+4], t[c+5], t[c+6], t[c+7] = opModRM, opModRM, opModRM, opModRM, opImm8, opImmZ, opBad, opBad
	}
	set := func(from, to, attr int) {
		for c := from; c <= to; c++ {
			t[c] = attr
		}
	}
	set(0x60, 0x62, opBad)
	t[0x63] = opModRM
	t[0x68], t[0x69], t[0x6A], t[0x6B] = opImmZ, opModRM|opImmZ, opImm8, opModRM|opImm8
	set(0x70, 0x7F, opRel8)
	t[0x80], t[0x81], t[0x82], t[0x83] = opModRM|opImm8, opModRM|opImmZ, opBad, opModRM|opImm8
	set(0x84, 0x8F, opModRM)
	t[0x9A] = opBad
	set(0xA0, 0xA3, opMoffs)
	t[0xA8], t[0xA9] = opImm8, opImmZ
	set(0xB0, 0xB7, opImm8)
	set(0xB8, 0xBF, opImmV)
	t[0xC0], t[0xC1], t[0xC2] = opModRM|opImm8, opModRM|opImm8, opImm16
	t[0xC6], t[0xC7] = opModRM|opImm8, opModRM|opImmZ
	t[0xC8], t[0xCA], t[0xCD], t[0xCE] = opImm16|opImm8, opImm16, opImm8, opBad
	set(0xD0, 0xD3, opModRM)
	set(0xD4, 0xD6, opBad)
	set(0xD8, 0xDF, opModRM)
	set(0xE0, 0xE3, opRel8)
	set(0xE4, 0xE7, opImm8)
	t[0xE8], t[0xE9], t[0xEA], t[0xEB] = opRel32, opRel32, opBad, opRel8
	t[0xF6], t[0xF7] = opModRM|opGroup3, opModRM|opGroup3
	t[0xFE], t[0xFF] = opModRM, opModRM
	return t
}()

// twoByte returns what follows the opcodes 0F c.
func twoByte(c byte) int {
	switch {
	case c >= 0x80 && c <= 0x8F:
		return opRel32
	case c == 0x05, c == 0x06, c == 0x07, c == 0x08, c == 0x09, c == 0x0B, c >= 0x30 && c <= 0x37, c == 0x77, c == 0xA0, c == 0xA1,
		c == 0xA2, c == 0xA8, c == 0xA9, c == 0xAA, c >= 0xC8 && c <= 0xCF:
		return 0
	case c >= 0x70 && c <= 0x73, c == 0xA4, c == 0xAC, c == 0xBA, c == 0xC2, c >= 0xC4 && c <= 0xC6:
		return opModRM | opImm8
	case c == 0x04, c == 0x0A, c == 0x0C, c == 0x0E, c == 0x0F, c >= 0x24 && c <= 0x27, c >= 0x38 && c <= 0x3F, c == 0xA6, c == 0xA7:
		return opBad
	}
	return opModRM
}
