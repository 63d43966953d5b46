// Package bump moves the tree to another version of Kubernetes, of Go, of another project or of Debian's packages, with all that
// must follow: all of it or nothing.
//
// [Run] copies the tree's tracked files, changes the copy until it is whole (requirements, sums, generated files), and puts
// the files that differ into the tree. Its [Report] says what moves from where to where. A version that is not available, a proxy that
// fails half-way or a full disk end Run before it touches the tree. If Run is killed while it puts files in place, [Recover] undoes it.
//
// Git is the log for that. A tree with changes to tracked files that are not committed is refused, so the last commit has all that a bump
// overwrites. What git does not track is neither copied nor overwritten.
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
// `make update` in the copy writes what is generated.
//
// # What must never be in here
//
// How a release is made. Names of proxies and mirrors: the go command and package debian ask for modules and packages.
package bump
