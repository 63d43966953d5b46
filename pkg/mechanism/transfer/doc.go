// Package transfer moves files between this machine and an rsync daemon at the other end of a stream.
//
// The other side only needs to provide a stream to a process `rsync --server --daemon`. On this side the host's own rsync
// runs as the client. It connects to a port of the loopback interface, on which this process listens for exactly one
// connection, and copies its bytes to the stream and back:
//
//	rsync ── 127.0.0.1:PORT ── this process ── Dial's stream ── rsync --server --daemon
//
// The password is only in the environment of that rsync, never in its arguments, in a file or in an error. The user's own
// settings (RSYNC_*, ~/.popt) have no effect.
//
// # What counts as unchanged
//
// Mirror compares contents and ignores times, since an unpacked archive gives all files the same time. Add and Fetch move large
// files that are never edited, so they compare sizes and modification times, to the nanosecond. That takes rsync 3.1.3 at both
// ends.
//
// # Modes
//
// Modes, modification times and symbolic links are transferred; owners and groups are not. A file arrives with its mode, even
// 0444 or 0000: rsync writes a new file and renames it, for which only the folder must be writable. So folders arrive with
// all of the owner's bits set (0555 as 0755); otherwise a daemon that is not root could neither update nor delete their files.
//
// # What must never happen
//
// A hang: if the remote end does not greet, dies, refuses the password or falls silent, an error says so within seconds. An
// incomplete file under its final name. A symbolic link that leads out of its tree.
//
// What must never be in here: Docker, Kubernetes, or what the files are.
package transfer
