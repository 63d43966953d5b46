// Package license lays out the license texts of everything that is linked into a set of binaries, as a
// folder that a tarball or an image can carry:
//
//	LICENSES/LICENSE                     the repository's own; covers its thin mains too
//	LICENSES/go/LICENSE, PATENTS         Go's standard library and runtime, which every binary holds
//	LICENSES/vendor/MODULE/FILE          a module's own files, under the path that imports use
//	LICENSES/vendor/MODULE/FOLDER/FILE   those of code that a module took over from elsewhere
//	LICENSES/modules.txt                 an index
//
// # Which modules
//
// Those that the binaries name in their build information, and no others: go.mod requires many more than
// are linked, and owing a text is a matter of what is shipped. Package module makes a list of them, of
// binaries of one Go module. Binaries of several Go modules (the cluster's, etcd's, CoreDNS') have several
// lists, and a folder each.
//
// The binaries' own main module is not in the list if it was compiled from a working folder; its license
// is the repository's. A main package of a dependency (kube-log-runner of k8s.io/component-base) is not.
//
// A module that is replaced is looked up where its code was really from: another module, or a folder.
//
// # Which files
//
// LICENSE, LICENCE, COPYING, COPYRIGHT, NOTICE, PATENTS, UNLICENSE and MIT-LICENSE in any case and with any
// ending, but .go. They are taken from the root of each module, and from the folder of each linked package
// and the folders above it up to the root, because forked code keeps its terms beside it
// (k8s.io/kubernetes/third_party/forked/golang/LICENSE). Packages that are not linked add nothing.
//
// A module must have at its root a file that grants something. NOTICE and PATENTS only accompany a license
// and don't count. Write refuses to go on without, and names all such modules at once.
//
// # The list of packages
//
// Build information names modules and no packages, so the caller adds the output of
//
//	go list -deps -json=ImportPath,Module,Standard PACKAGE...
//
// with the binaries' build tags and without -e, run once per platform; the outputs are simply joined. It may
// list more than was linked, but a linked module that is not in it is an error: it was made for another
// platform, or with other tags. Folders in it (Dir) are ignored; import paths say the same on every machine.
//
// # The index
//
// modules.txt has a line per module, sorted by path, of fields between tabs: path, version, and the files
// below vendor/PATH. A fork's version reads FORK@VERSION, that of a folder "local". No path of the
// machine is ever in it: the same binaries give the same bytes anywhere.
//
// # In two steps
//
// Write needs the module cache. Where there is none, as in a sandbox, a folder that was made beforehand does: Gather makes it, for
// all modules in a list of packages, and Select takes out of it what binaries need. The result is what Write would make.
//
// # What must never be here
//
// Judging: which licenses are acceptable is policy. Downloading: a module that is not in the module cache
// is an error. Texts of our own for modules that lack one.
package license
