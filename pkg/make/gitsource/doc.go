// Package gitsource makes Kubernetes' modules of a commit of its repository, or of a fork, instead of fetching them from a module proxy.
//
// Upstream publishes k8s.io/kubernetes, and each folder below staging/src/k8s.io as a module of its own, such as k8s.io/api. [Find] finds a
// commit and its version, and [Make] makes these modules of it, in a proxy's layout. They have the sums that a proxy has of a version that
// is released with this commit:
//
//   - The files are those of the commit, without those that module zips never have (vendored packages, symbolic links, other modules).
//   - A staging module's go.mod requires its siblings at the release's version, v0.37.3 for v1.37.3, and replaces none by a folder.
//   - Its go.sum has the sums of those siblings whose packages its own packages and tests import, and the tests of what these import,
//     directly or not. That is what `go mod tidy` in upstream's publishing bot leaves in it.
//   - .gitattributes files are left out of staging modules, as the bot does.
//
// The module cache is where they live: every go command, and so every road, takes them from there, and go.sum has their sums. [Place] puts
// them there for a tree that names a commit in release.yaml. It makes them again if the cache lacks them.
//
// Folders are read in place, and only what is committed counts. Of a URL, git fetches the one commit, without history, with the user's
// credentials.
//
// # What must never be in here
//
// How a tree moves to another version. Which modules a release links.
package gitsource
