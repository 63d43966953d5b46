// Package pack makes the tarballs of a release: an action for each, described by a [Spec].
//
//	a := pack.Action(pack.Spec{
//		Name:    "kubernetes-server-linux-amd64.tar.gz",
//		Top:     "kubernetes",
//		Time:    commitTime,
//		Members: []pack.Member{{From: "_output/local/bin/linux/amd64/kubelet", To: "server/bin/kubelet"}},
//	}, pack.Place{Root: root, Tarballs: "_output/release-tars", Sums: "_output/release-stage/sha512", Cache: cache})
//
// Beside each tarball the action writes a file with its SHA-512, computed while the tarball was written, so that nobody has to read
// it again. Its SHA-256 is what the action's record has.
//
// What must never be in here: which tarballs a release has, and what they hold.
package pack
