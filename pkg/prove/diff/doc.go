// Package diff says whether two releases, two archives or two Go programs are the same, and if not, what differs.
//
// Two build systems that compile the same sources rarely make the same bytes: build settings and module sums are
// recorded by one and not by the other, a string that gets longer moves all that is behind it. [Compare] tells such
// differences from those that change what a program does. It has three answers:
//
//   - [Identical]: the same bytes.
//   - [Equivalent]: proven to do the same. Only addresses, file paths, build ids, build settings and debug information
//     differ, or archives that hold equivalent files are packed otherwise.
//   - [Different]: everything else, also what can't be proven.
//
// How the proof for programs works: functions are matched by name. Their instructions are decoded in lock step, and have
// to be the same bytes apart from the addresses that they refer to; each pair of addresses is remembered. Data sections
// are laid over each other so that all pairs fit. Objects must be in the same order, except for strings of one size and
// function values, which can't be parts of something larger; a section may be shifted, and .rodata may have a cut where
// the string of build information, whose length differs, was taken out. Then every byte of data has to be the same, and
// every pointer has to lead to what its counterpart leads to. The tables that the linker makes (functions, lines,
// types, garbage collection) are read as what they are and compared entry by entry.
//
// What is not certain: only the garbage collector's map marks addresses, and there is none for read-only data and for variables
// without pointers. There, a word that differs is an address only if it leads to something known on both sides, and one that
// is the same number is a number unless it would be an address on both sides.
//
// That is done for Linux programs of Go 1.26 for amd64 and arm64 that are linked statically at a fixed address,
// which is what releases have. Other programs are identical or different.
//
// What must never be in here: how anything is built.
package diff
