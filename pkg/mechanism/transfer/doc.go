// Package transfer moves files between this machine and an rsync daemon at the other end of a stream.
//
// The stream is all that is asked of the other side: a connection to a process `rsync --server --daemon`, however it is
// made. Here the host's own rsync runs, as the client. It connects to a port of the loopback interface, on which this
// process listens for exactly that one connection, and carries its bytes to the stream and back:
//
//	rsync ── 127.0.0.1:PORT ── this process ── Dial's stream ── rsync --server --daemon
//
// The password is in the environment of that rsync alone, and never in its arguments, in a file or in an error. Of the
// user's own settings (RSYNC_*, ~/.popt) it sees none.
//
// # What counts as unchanged
//
// For Mirror, a file whose content is the same at both ends, whatever its time: an unpacked archive gives all files the same
// one. For Add and Fetch, which move large files that are never edited, one whose size and modification time are the same, to
// the nanosecond. For that both ends need rsync 3.1.3.
//
// # Modes
//
// Modes, modification times and symbolic links travel; owners and groups don't. A file arrives with the mode that it has
// here, 0444 and 0000 too: rsync writes a new file and renames it, which takes a writable folder and not a writable file.
// That is why folders arrive with all of the owner's bits set (0555 as 0755): a daemon that is not root could neither
// update nor delete what is in them.
//
// # What must never come to be
//
// A hang: a far end that does not greet, dies, refuses the password or falls silent is an error that says so, within
// seconds. A file under its final name that is not complete. A symbolic link that leads out of the tree it is in.
//
// What must never be in here: Docker, Kubernetes, or what the files are.
package transfer
