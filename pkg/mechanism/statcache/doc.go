// Package statcache remembers what was computed from the contents of files, so that a file is read again only if it may have changed.
//
// Sums are remembered by path, size, times, inode and mode, in one file. As in git, an entry is valid only if the file's times were more
// than a clock tick old when it was read: a file can be edited twice within one tick, and the second edit leaves the same times.
//
// What must never be in here: what a sum is of, and anything that is wrong when the cache is lost.
package statcache
