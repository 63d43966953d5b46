// Package archive writes tar and tar.gz files whose bytes depend only on the names, modes and contents of their members. It
// is fast: a file's content is compressed once, no matter how many archives hold it and how often they are packed.
//
// # What the bytes depend on
//
// Members are sorted by name, those marked as last at the end, and owned by 0:0 without user names. Directories have mode
// 0755 (1777 if they are sticky, like /tmp in an image), files 0755 if their owner may execute them and 0644 if not, symbolic
// links 0777; all have one time, in whole seconds. Other permission bits have no effect, as git does not keep them either.
// Missing parent directories are added. Headers are USTAR where possible, else PAX (long names, files above 8 GiB). A .tar.gz
// is one gzip member without a name or time in its header.
// The order of the entries, the umask and the times of the sources, the number of workers and the state of
// the cache change nothing. The rest is code: this package and the compressor it was linked with.
//
// # How it is fast
//
// A deflate stream may consist of pieces that were compressed independently, if they end at byte boundaries. So a .tar.gz is a
// sequence of fragments:
//
//   - a file's content of 64 KiB or more, in chunks of 1 MiB. A chunk's compressed form is kept in the [Packer]'s
//     cache under the SHA-256 of the chunk and copied from there into every archive that holds it. So a binary
//     that was linked for a new version and differs in a few places costs only a few chunks.
//   - the members of a content that is itself an uncompressed tar file (an image archive, and the layers in it), so that a
//     binary in an image is the same fragment as the binary by itself.
//   - everything between: headers, padding and small files, compressed on the fly.
//
// An archive that begins as an earlier one is digested only from where they differ, see [Digester]. Nor need a file be read to be
// cut, if a caller has put it together from contents that were packed before, see [Packer.Remember].
//
// [Packer.Gzip] does the same for archives of other forms, which a caller lays out.
//
// Chunks are compressed on all cores. The checksum in the gzip trailer is computed from those of the fragments, without
// reading anything again.
//
// # The cache
//
// Files in the cache are written under a temporary name and renamed, so several processes can share one and
// any of them may be killed. Each file holds its own checksums; a damaged one is noticed and written again.
// [Packer.Trim] removes files that were not used for five days. The whole folder may be removed at any time.
//
// # What must never be in here
//
// Knowledge of what is packed: names of releases, images or platforms. Unpacking of third-party archives: [ReadTar] only
// reads back what [Tar] wrote. Any choice that depends on the machine, the clock or the environment.
package archive
