// Package bump moves the tree to another version of Kubernetes, of Go, of another project or of Debian's packages, with all that
// must follow: all of it or nothing.
//
// [Prepare] copies the tree's sources, changes the copy until it is whole (requirements, sums, generated files), and compares it with
// the tree. The result says what moves from where to where, and [Bump.Apply] puts the changed files in place. A version that cannot be
// had, a proxy that fails half-way or a full disk end Prepare, and the tree is as before. If Apply is killed, [Recover] finishes it.
//
// # What follows Kubernetes
//
//	what                      where it is named
//	staging modules           replacements in k8s.io/kubernetes' go.mod
//	go and godebug lines      the same go.mod
//	every other requirement   the same go.mod, by which upstream selects its versions
//	Go                        .go-version
//	pause, etcd, CoreDNS      constants of kubeadm, as the type checker evaluates them
//	CNI plugins               build/dependencies.yaml
//	metrics-server, Traefik   nowhere: they move only if Go becomes too old for them
//	images for tests          k8s.io/kubernetes/test/utils/image
//
// `make update` in the copy makes what is generated.
//
// # What must never be in here
//
// How a release is made. Names of proxies and mirrors: the go command and package debian ask for modules and packages.
package bump
