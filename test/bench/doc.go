// Command bench measures slipway's claims about its speed, and prints a table. `make bench` runs it.
//
//	go run ./test/bench [-rows cold,noop] [-peers] [-n 5] [-json] [-keep] [-tree folder]
//
// A claim is a ratio of two things that are measured here and now, in turn, because seconds depend on the machine and its load,
// and a ratio hardly does. Measurements are compared with a minimum that no build can avoid: a bare `go build` of the same packages,
// with the same Go, flags and environment, and `tar czf` of the same files.
//
// # Rows
//
//	cold     `make quick-release` in a fresh clone with an empty Go cache (the module cache is filled, and programs
//	         of other projects are there; the toolchain's own compile counts), to one go build of the release's
//	         components with an empty Go cache
//	first    the same with programs of other projects compiled, too, as on a machine that has built nothing
//	first-processor  the processor time of the two sides of first, children included
//	noop     `make quick-release` with nothing to do, in seconds
//	edit     `make quick-release` after a line of cmd/kube-scheduler/main.go was changed in a tree that was dirty
//	         before (the stamp stays), to the go build of that binary after the same edit
//	one      `make WHAT=cmd/kube-scheduler` after such an edit, to the same
//	commit   `make quick-release` after a commit, which changes the stamp and so every component, to the go build
//	         of all components with that stamp, which links them, into a folder that holds those of the stamp before
//	patch    `make kube-scheduler` after a change of a patch of one file of k8s.io/kubernetes, to the go build of that
//	         binary after the same edit in a folder that replaces the module
//	lint     `make lint` for this platform after a change of such a patch, to the go vet of the same packages after the same edit in such
//	         a folder
//	patches-noop     `make quick-release` with ten patches and nothing to do, in seconds
//	pack     package archive packs the files of the server tarball, with an empty cache, to `tar czf` of them
//	size     how large that gets, to the same
//	repack   package archive packs the next release, in which kube-scheduler has changed, to the same tar czf
//	documents        `make quick-release` after its bills of materials and its provenance were removed, in seconds
//	verify   `slipway verify` of a quick release, to `sha256sum --check` of the same files, which are in the page cache
//	push     `slipway publish` of a signed quick release's images to an empty docker-registry on loopback, with signatures, provenance and
//	         bills of materials, to `skopeo copy --all` of the same images, which leaves these out
//	cache-cold       `slipway release --quick` in a fresh clone with an empty Go cache, which stores its results in a server on loopback, to
//	                 the same without a cache (modules are there)
//	cache-clone      `slipway release --quick` in a fresh clone with empty Go caches, whose results are all in that server, in seconds
//	cache-clone-far  the same, while the server answers each request 20 ms later
//	cache-edit       `slipway release --quick` in a fresh clone with empty Go caches after such an edit as above, with results, packages and
//	                 modules of that server, to the same edit where everything was made before, without the server
//	cache-edit-far   the same, while the server answers each request 20 ms later
//	cache-commit     `slipway release --quick` of a new commit in a fresh clone with empty Go caches, of what that server has of the commit
//	                 before, to the same commit where that was made, without the server
//	cache-noop       `slipway release --quick` with nothing to do and the server configured, to the same without
//	cache-platforms  `slipway release` of all platforms with the test set in a fresh clone with empty Go caches, whose results are all in that
//	                 server, to curl that downloads the same files from a file server on loopback; only if it is named, since a release of this machine's
//	                 platform is made first. Random bytes stand in for what it would take hours to compile for the other platforms: under the same
//	                 keys, as many files, and the release's own files as large as this platform's
//	container-cold   `make ROAD=container` in a fresh clone whose volumes are empty (the build image is there, and the
//	                 modules are in this machine's cache), to `make` on the local road with an empty Go cache
//	container-noop   `make quick-release ROAD=container` when there is nothing to do, in seconds
//	container-edit   the same after such an edit as above, to the same on the local road
//	container-sync   what a run does before its first compile, when nothing has changed: find the engine, look at image and
//	                 volumes, compare modules and sources over rsync, in seconds
//	bazel-cold       `bazel build //cmd/...` in a fresh clone, with an empty remote cache on loopback that gets the results, and `make`
//	                 of the same components with an empty Go cache: no claim, both are printed
//	bazel-noop       `make quick-release ROAD=bazel` when there is nothing to do, to `bazel build //cmd/...` when there is nothing
//	                 to do
//	bazel-remote     `bazel build //cmd/...` after `bazel clean`, from the cache of bazel-cold, to the time of that
//	bazel-test       `make bazel-test` of k8s.io/apimachinery and Kubernetes' scheduler when nothing has changed since they passed, to
//	                 `make test` of the same, whose results are in the Go cache; without the package that does not pass by Bazel
//
// `make bench-peers` (-peers) compares with other tools, which it compiles from test/peers. Each makes the binaries of a quick release for
// linux, with the same flags, by the same Go, in a clone of its own, and what it usually makes of them:
//
//	goreleaser-noop, goreleaser-edit     `make quick-release` with nothing to do, and after such an edit as above, to `goreleaser release
//	                                     --snapshot`: one tarball of all binaries, and checksums
//	ko-noop, ko-edit                     the same to `ko build`: an image of one layer for each binary, on an empty base, and bills of materials
//	make-noop, make-edit                 the same to make, which calls one go build for all binaries, and tar czf
//	goreleaser-cold, ko-cold, make-cold  `make quick-release` as in cold, measured once for all three, to each tool with an empty Go cache
//
// A quick release has images, tarballs, checksums, bills of materials and a provenance, so slipway makes more than each of them.
//
// A figure is the median of -n repetitions; cold rows are measured once.
//
// # What makes it fair
//
//   - Each side works in a clone of its own below TMPDIR, whose last commit is the working tree as it is, changes
//     and new files included. Nothing in the tree itself is written.
//   - Cold compiles have a Go cache each. All others share the user's, which is filled by an unmeasured run of
//     each side first. No edit is ever made twice, so neither side finds what the other (or an earlier bench)
//     has compiled; links, most of the work, are never in a Go cache.
//   - The sides take turns in going first, except for cold rows, where slipway goes first: what it leaves in the
//     page cache is to the other's benefit.
//   - Written data is flushed to the disk before the clock starts, so that neither side pays for the other's writes.
//   - Results are checked: an edit must be in the binary, binaries of one stamp must be the same on both sides, and the packed
//     tarball must be the release's own.
//   - On Linux the processor time that went to neither side is measured. Rounds in which others took more than a tenth of the machine do not
//     count; after three times as many rounds as wanted, the row is not measured. Rows measured once say what others took, and so do those
//     in which servers work for a side: an engine, Bazel's server, that of a cache.
//
// For cold and commit the peak of resident memory of each side's processes is printed as well (on Linux; shared pages count for each
// process).
//
// The exit code is 0 whether or not the bounds hold, and 1 if something could not be measured.
//
// # What must never be in here
//
// Tests of whether results are correct (test/integration), flags of a compile (package road has them), or a list of what a release
// holds (package catalog has it).
package main
