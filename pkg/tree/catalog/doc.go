// Package catalog answers what can be built, for which platforms, and into which artifacts.
//
// It reads release/release.yaml, the one list of components, platforms and artifacts. Everything else that needs such a list,
// such as make targets, Starlark, CI and the docs, asks a Catalog or is generated from one.
//
// # The file
//
//	module: cmd                 # folder of the components' Go module; its go.mod names the Kubernetes version
//	go:
//	  version: go1.26.8         # every compile uses this Go
//	  sums:                     # of the module golang.org/toolchain, per host that fetches it
//	    linux-amd64: h1:…
//	  fips: v1.0.0              # components use this version of Go's cryptographic module, and run in FIPS mode by default
//	  fipsProjects: true        # so do the programs of other projects
//	  fipsEnvironment: true     # images and units ask for FIPS mode
//	toolchain: {…}              # as go: the Go that compiles slipway itself, if the components need one that is too old for it
//	source:                     # Kubernetes' modules are made of this commit; without it, they come from a module proxy
//	  repository: https://git.example/kubernetes   # or an absolute folder
//	  ref: v1.37.3              # the tag or branch that was asked for
//	  commit: …                 # in hex, as the tree
//	  tree: …
//	tags: [selinux]             # build tags of every compile
//	sets:                       # server, node, client, test, addons: the tarballs, and the platforms of each
//	  server: [linux/amd64]
//	binaries:
//	- {name: kubectl, package: ./kubectl, sets: [server]}                      # a main package of the module
//	- {name: ginkgo, package: github.com/onsi/ginkgo/v2/ginkgo, sets: [test]}  # or of a dependency
//	- {name: e2e.test, test: k8s.io/kubernetes/test/e2e, sets: [test]}         # or a package's tests, compiled
//	- {name: etcdctl, package: go.etcd.io/etcd/etcdctl/v3, module: images/etcd, # or of another project's module
//	   sets: [server], folder: addons/bin}                                       # not in server/bin
//	images:
//	- {name: kubectl, base: static, binary: kubectl, with: [kube-log-runner], title: Kubernetes command line}
//	- {name: etcd, base: static, binary: etcd, title: etcd,                     # of another project, with its version
//	   version: 3.6.8-0, created: 2026-02-13T18:39:11Z, source: https://github.com/etcd-io/etcd}
//	- {name: e2e-test-images/busybox, set: test, base: busybox, entrypoint: [sh], title: BusyBox,  # for tests
//	   version: 1.37.0-1, created: 2026-11-22T07:43:18Z}
//	addons:                     # what a cluster has on request: manifests in release/addons/NAME, and files of a module
//	- {name: storage, module: images/csi, from: example.com/csi/client, files: [config/crd/volumes.yaml]}
//	packages:                   # a deb and an rpm for each Linux platform of the server set
//	- {name: kubelet, binaries: [kubelet], summary: Runs Pods on a node,      # in /usr/bin, with the files of release/packages/kubelet
//	   folders: [/var/lib/kubelet], requires: [kubernetes-cni >= 1.2.0], deb: {requires: [mount]}}
//	- {name: kubernetes-cni, binaries: [bridge, host-local], folder: /opt/cni/bin, summary: Plugins for networks}
//	maintainer: Acme <k8s@acme.example>   # of packages
//	basePackages: {deb: [mount]}          # that these may require though no repository of the release has them
//	registry: registry.k8s.io   # the images' names begin with it
//
// The fields are those of [Catalog], [Source], [Binary], [Image], [Addon] and [Package] that have a tag `file`. To add one, add it to its
// struct and check its value in check.go.
//
// `only` narrows a binary to some platforms of its sets. A binary in no set leaves `sets` out, lists in `only` the platforms
// that it can be built for, and is built when it is asked for by name. An image with `set: test` is in the test tarballs, under
// the version that the tests call it by; one of a component may leave that out, and has the release's. One with `set: addons` is in those
// of addons. `entrypoint` and `arguments` are what an image starts, where that is not the binary.
//
// An image with a `version` has a time when that was `created`, and may have a `revision` (a commit) and a `source` (a
// repository). It is labeled with these instead of the release's, so that every release has the same image.
//
// A package has binaries of the server set, and the files below release/packages/NAME, which lie there as in the root file system;
// NAME.deb and NAME.rpm beside that folder are for one format. `requires`, `recommends` and `conflicts` name other packages, and stand
// under `deb` or `rpm` if that format calls them otherwise. `scripts` are files of release/packages, see [Scripts].
//
// # Validation
//
// Load checks the file against itself, against the tree (do the packages and image bases exist?) and against the
// modules' go.mod files (does a module have that package?). It returns all problems at once, as an *InvalidError, by line,
// each with what was probably meant. Main packages of a module are compiled into one folder for a platform, and so are tests, so
// import paths of no two of them may end alike. A Catalog that Load returned is trusted from there on and must not be changed.
//
// # Names from the command line
//
// Match reads what users write in WHAT, upstream's spellings included, and Platforms what they write in
// KUBE_BUILD_PLATFORMS. The error for a name that is not in the catalog is a *suggest.UnknownError.
//
// # What must never be in here
//
// How something is built: flags, commands, paths of outputs, versions of a build. No package of the build is imported here,
// nothing is executed, and nothing outside of the given tree is read.
package catalog
