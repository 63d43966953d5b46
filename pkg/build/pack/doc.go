// Package pack makes the tarballs of a release: an action for each, described by a [Spec].
//
//	a := pack.Action(pack.Spec{
//		Name:    "kubernetes-server-linux-amd64.tar.gz",
//		Top:     "kubernetes",
//		Time:    commitTime,
//		Members: []pack.Member{{From: "_output/local/bin/linux/amd64/kubelet", To: "server/bin/kubelet"}},
//	}, pack.Place{Root: root, Tarballs: "_output/release-tars", Sums: "_output/release-stage/sha512", Cache: cache})
//
// While the action writes a tarball, it computes its digests, so that nothing needs to read it again. It writes the SHA-512 to a file
// of its own. The SHA-256 is in the action's record.
//
// What must never be in here: which tarballs a release has, and what they hold.
package pack
