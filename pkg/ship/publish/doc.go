// Package publish puts releases where others fetch them from.
//
// A [Publication] is a value, computed from a release.json and from what is at the target: objects, which never change, then pages, which
// say something of objects, then markers, which name a version. [Release.Plan] and [Withdraw] compute it, and show what would be done.
// [Publication.Send] does it in that order. So a page or a marker never names what is not there, however the last run ended, and
// the same publication again continues where that stopped.
//
// A [Channel] is a target: it knows files and nothing of releases. There is one, a folder that a web server serves; see package site for
// what is in it. Dry run, resuming and refusing are here, for all channels.
//
// [Images] are the same for a registry, which has other things than files: manifests by their digests, what refers to them, and tags, which
// are its markers. go-containerregistry sends them. It leaves to us what a registry has already, when a tag may move, and how long all
// requests wait for a registry that is busy: its own repeat one by one, whatever Retry-After says.
//
// Nothing is built on the way: what is sent is in the release's folder, or follows from its release.json. The one exception is the package
// with the public keys of repositories, which follows from these. A release that package verify does not accept is not published, nor one
// of a dirty tree or under embargo. An object that exists with another content stops a publication before anything is written, and so does
// a package that needs one which its repository would lack.
//
// What must never be in here: how a release is made, and what a target's files are called on its disks.
package publish
