// Package archive writes tar and tar.gz files that depend on nothing but the names, modes and contents of
// what is in them, and writes them fast: a file's content is compressed once, whichever archives hold it and
// however often they are packed.
//
// # What the bytes depend on
//
// Members are sorted by name and owned by 0:0 without user names. Directories have mode 0755 (1777
// if they are sticky, like /tmp in an image), files 0755 if their owner may execute them and 0644 if not, symbolic
// links 0777; all have one time, in whole seconds. The group's and the others' bits change nothing, as git
// does not keep them either. Parent directories that no entry declares are added. Headers are USTAR where that can express them and PAX where
// not (long names, files above 8 GiB). A .tar.gz is one gzip member without a name or time in its header.
// The order of the entries, the umask and the times of the sources, the number of workers and the state of
// the cache change nothing. [Recipe] identifies the rest: this package and the compressor it was linked with.
//
// # How it is fast
//
// A deflate stream may be cut at any byte-aligned block boundary and put together again from pieces that were
// compressed independently. So a .tar.gz is a sequence of fragments:
//
//   - a file's content of 64 KiB or more, in chunks of 1 MiB. A chunk's compressed form is kept in the [Packer]'s
//     cache under the SHA-256 of the chunk, and copied from there into every archive that holds it. So a binary
//     that was linked for a new version, and differs in a few places, costs a few chunks.
//   - a content that is itself an uncompressed tar (an image archive, and the layers in it) is cut at its
//     members, so that a binary is the same fragment as a file and within an image.
//   - everything between: headers, padding and small files, compressed on the fly.
//
// Chunks are compressed on all cores. The checksum in the gzip trailer is computed from
// those of the fragments, and nothing is decompressed or read again for it.
//
// # The cache
//
// Files in the cache are written under a temporary name and renamed, so several processes can share one and
// any of them can be killed. Each carries its own checksums; one that is damaged is noticed and made again,
// never used. [Packer.Trim] removes those that nobody used for five days. Removing the whole folder is fine.
//
// # What must never be in here
//
// Knowledge of what is packed: names of releases, images or platforms. Unpacking of archives that others made: [ReadTar] only
// reads back what [Tar] wrote. Any choice that depends on the machine, the clock or the environment.
package archive
