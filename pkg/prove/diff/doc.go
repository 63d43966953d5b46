// Package diff compares two releases, two archives or two Go programs, and says what differs.
//
// Two build systems that compile the same sources rarely make the same bytes. One records build settings and module sums that
// the other does not; a longer string moves everything behind it. [Compare] distinguishes such differences from those that
// change what a program does. It has three answers:
//
//   - [Identical]: the same bytes.
//   - [Equivalent]: proven to do the same. Only addresses, file paths, build ids, build settings and debug information
//     differ, or archives that hold equivalent files are packed in another way.
//   - [Different]: everything else, including what can't be proven.
//
// # The proof for programs
//
// Functions are matched by name. Their instructions are decoded in lock step and must be the same bytes apart from the
// addresses in them; each pair of addresses is recorded. Data sections are laid over each other so that all pairs fit.
// Objects must be in the same order, except for strings of one size and function values, which can't be parts of larger
// objects. A section may be shifted, and .rodata may have a cut at the string of build information, whose length differs.
// Then every byte of data must be the same, and every pointer must lead to the counterpart of what it leads to. The
// linker's tables (functions, lines, types, garbage collection) are decoded and compared entry by entry.
//
// One part is not certain. Only the garbage collector's map marks addresses, and read-only data and variables without
// pointers have no such map. There, a word that differs is an address only if it leads to something known on both sides, and
// a word that is the same on both sides is a number unless it would be an address on both sides.
//
// # Which programs
//
// The proof works for Linux programs of Go 1.26 and 1.27 on amd64 and arm64 that are linked statically at a fixed address, as
// releases have them. Other programs are identical or different. Programs of another version of Go, whose linker may lay out
// its tables in another way, are an [UnknownGoError] unless they are the same bytes.
//
// Go 1.27 moved types and tables of methods from .rodata to .go.type, and function values to .go.func. There is no .typelink
// and .itablink any more: .go.type begins with the listed types and ends with the tables of methods. Before supporting another
// version, compare moduledata (runtime/symtab.go), internal/abi, and cmd/link/internal/ld (data.go, symtab.go, pcln.go)
// with the last one.
//
// What must never be in here: how anything is built.
package diff
