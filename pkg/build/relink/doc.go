// Package relink links a program once for all versions that have the same length.
//
// A new commit changes the version in every program, and often nothing else. Linking all of them again takes most of the time of such a release. The linker
// places a string that -X sets by its name and its length. So a program that differs from another one in such strings alone has other bytes there, and another build
// ID; the rest is the same.
//
// [Links] make the go command call this program for its links (go help build, -toolexec). For each link, the program computes a key of all that the linker
// reads, except for the values of long strings and the build ID. If it has linked a program with that key before, it copies that one and
// writes the new values and the new build ID into the copy. Otherwise it calls the linker with random-looking values of the same
// lengths, which no other part of a program contains, finds them in the result, writes the real values there, and remembers the places.
// The go command then computes the last part of the build ID and the signature of a Mach-O file, as after every link. So the result
// is, byte for byte, what the go command makes alone.
//
// What cannot be done so is linked as usual: programs that an external linker links, and short strings that have changed.
//
// A program that imports this package is called by the go command under its own name, with [argument] first. It handles that before main.
//
// What must never be in here: what a version is, which programs there are, and which flags they are linked with.
package relink
