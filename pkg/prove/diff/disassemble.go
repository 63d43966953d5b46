package diff

import (
	"debug/elf"
	"fmt"

	"golang.org/x/arch/arm64/arm64asm"
	"golang.org/x/arch/x86/x86asm"
)

// disassemble shows the instruction at an offset of a function, in Go's syntax.
func (x *exe) disassemble(f *function, off int) string {
	code := x.code(f)
	if off >= len(code) {
		return "the end"
	}
	code = code[off:]
	pc := f.entry + uint64(off)
	name := func(addr uint64) (string, uint64) {
		if i := x.funcAt(addr); i >= 0 {
			return x.funcs[i].name, x.funcs[i].entry
		}
		return "", 0
	}
	if x.machine == elf.EM_X86_64 {
		if in, err := x86asm.Decode(code, 64); err == nil {
			return x86asm.GoSyntax(in, pc, name)
		}
		return fmt.Sprintf("% x", code[:min(len(code), 15)])
	}
	if in, err := arm64asm.Decode(code); err == nil {
		return arm64asm.GoSyntax(in, pc, name, nil)
	}
	return fmt.Sprintf("% x", code[:min(len(code), 4)])
}
