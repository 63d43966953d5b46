// Package license collects the license texts of everything that is linked into a set of binaries, in a tar whose
// files a tarball of a release carries, and names the licenses:
//
//	LICENSES/LICENSE                     the repository's own; covers its thin mains too
//	LICENSES/go/LICENSE, PATENTS         Go's standard library and runtime, which every binary holds
//	LICENSES/vendor/MODULE/FILE          a module's own files, under the path that imports use
//	LICENSES/vendor/MODULE/FOLDER/FILE   those of code that a module took over from elsewhere
//	LICENSES/modules.txt                 an index
//
// [Action] writes the tar that a [Spec] describes, from the lists that [ListAction] and [ModulesAction] write.
//
// # Which modules
//
// Only those that the binaries name in their build information: go.mod requires many more, and only what is
// shipped needs a license text. Package module lists them; all binaries of a list come from one Go module. Binaries of
// several Go modules (the cluster's, etcd's, CoreDNS') have a folder each.
//
// The binaries' own main module is not in the list if it was compiled from a working folder, as its license is the
// repository's. The module of another main package (kube-log-runner of k8s.io/component-base) is in the list.
//
// The files of a replaced module are taken from the code's real origin: another module, or a folder.
//
// # Which files
//
// LICENSE, LICENCE, COPYING, COPYRIGHT, NOTICE, PATENTS, UNLICENSE and MIT-LICENSE in any case and with any
// ending, but .go. They are taken from the root of each module, and from the folder of each linked package
// and the folders above it up to the root, because forked code keeps its terms beside it
// (k8s.io/kubernetes/third_party/forked/golang/LICENSE). Packages that are not linked add nothing.
//
// A module must have at its root a file that grants something. NOTICE and PATENTS only accompany a license
// and don't count. Write names all modules without such a file in one error.
//
// # The list of packages
//
// Build information names modules and no packages, so [ListAction] runs
//
//	go list -deps -json=ImportPath,Module,Standard,Imports PACKAGE...
//
// with the binaries' build tags, once per platform; the outputs for main packages and for tests are joined. The list may
// hold more than was linked, but a linked module that is not in it is an error: the list is for another
// platform, or with other tags. Folders in it (Dir) are ignored; import paths say the same on every machine.
//
// # The index
//
// modules.txt has a line per module, sorted by path, of fields between tabs: path, version, and the files
// below vendor/PATH. A fork's version reads FORK@VERSION, that of a folder "local". No path of the
// machine is ever in it: the same binaries give the same bytes anywhere. The patches of modules follow, each in a line
// "# patch NAME sha256:HEX".
//
// # Names
//
// [NamesAction] names the licenses of all modules that a group of binaries may link, by their SPDX identifiers: it
// recognizes texts with package licensecheck, and reads them again only when modules change. [Expression] joins those of
// the modules that binaries do link. What accompanies a license, and a list of copyright holders beside one, has no name. A
// text that is not recognized is named LicenseRef-MODULE: SPDX requires a name for it, and an error would stop a release
// for a label.
//
// # In two steps
//
// Write needs the module cache. In a sandbox there is none, so a folder is filled beforehand: [Gather] fills it with the files
// of all modules in a list of packages, and [Select] takes out of it what binaries need. The result is the same as Write's.
//
// # What must never be in here
//
// Judging: which licenses are acceptable is policy. Downloading: a module that is not in the module cache
// is an error. Texts of our own for modules that lack one.
package license
