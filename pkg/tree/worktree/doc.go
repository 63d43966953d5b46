// Package worktree asks git about one work tree: at which commit it is, and whether files have changed since.
//
// A Repo is the repository whose work tree begins exactly at a folder. For a source tree that was unpacked somewhere
// inside another repository, Open returns ErrNone, so that the outer repository's commit is not taken for the tree's.
//
// From the caller's environment, git gets PATH, the folders of the user's configuration (which may have safe.directory and a
// global list of ignored files), and SUDO_UID (by which git, under sudo, trusts files of the user who called it). GIT_DIR and
// similar variables, the locale, replacement objects and file system monitors have no effect. Git takes no locks, so reading
// never disturbs a commit in progress, and it never asks for a password.
//
// What must never be in here: how git runs (package mechanism/git), conclusions from git's answers, which packages stamp and
// source draw, and anything that writes to a repository.
package worktree
