// Package worktree asks git about one work tree: at which commit it is, and whether files have changed since.
//
// Git's own answer does not count. Git can be configured not to look: by lists of ignored files, flags in its index, sparse checkouts,
// settings such as core.fileMode, and filters by which other bytes count as the same. But compilers and packers read the folder. So the
// commit's list of files, with their modes and hashes, is compared with the folder itself, and a file that is not in the commit makes the
// tree dirty, ignored or not. Only these count for nothing: what is never a source (see package folder); at the top, hidden files that git
// ignores, but those of Bazel; and user.bazelrc, if git ignores it. A link that leads to what is not in the commit makes the tree dirty,
// too.
//
// A Repo is the repository whose work tree begins exactly at a folder. For a source tree that was unpacked somewhere
// inside another repository, Open returns ErrNone, so that the outer repository's commit is not taken for the tree's.
//
// From the caller's environment, git gets PATH, the folders of the user's configuration (which may have safe.directory and a
// global list of ignored files), and SUDO_UID (by which git, under sudo, trusts files of the user who called it). GIT_DIR and
// similar variables, the locale, replacement objects and file system monitors have no effect. Git takes no locks, so reading
// never disturbs a commit in progress, and it never asks for a password.
//
// Hashes of files are remembered in the folder where slipway keeps what it knows (see package statcache), so that a no-op reads no file.
//
// What must never be in here: how git runs (package mechanism/git), conclusions from git's answers, which packages stamp and
// source draw, and anything that writes to a repository. (Package bump gives
// git an index and a work tree of its own, which it may write.)
package worktree
