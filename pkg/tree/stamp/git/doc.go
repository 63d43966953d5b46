// Package git asks git about one work tree: which commit it stands on, and whether it is changed.
//
// A Repo is the repository whose work tree begins exactly at a folder. A source tree that was unpacked
// somewhere inside another repository is no Repo: Open returns ErrNone, and nobody takes the outer
// repository's commit for its own.
//
// Git runs with an environment made here. Of the caller's it gets PATH, the folders of the user's own
// configuration (which may hold safe.directory and a global list of ignored files), and SUDO_UID (by which git
// trusts, under sudo, what belongs to the user who called it). GIT_DIR and its like have no influence, nor
// have the locale, replacement objects and file system monitors. Git takes no locks, so that reading never
// disturbs a commit that is being made, and it never asks for a password.
//
// Two users need the same answers: package stamp and package source. What they conclude from them must never
// be in here, nor anything that writes to a repository.
package git
