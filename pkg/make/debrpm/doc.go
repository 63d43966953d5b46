// Package debrpm makes the debs and rpms of a release: an action for each, described by a [Spec].
//
// A package has files of a release and of the tree. Here, what package managers want besides is added: documents in /usr/share/doc, and
// scripts. Both formats get the same.
//
//	copyright             where the package comes from, and under which licenses everything in it is
//	NOTICES               the texts of these licenses, of what its programs link
//	changelog.Debian.gz   the release that it is of; only in debs
//
// If a package has units of systemd, systemd reads its units again after an install, and units are stopped and disabled before the package
// is removed. Nothing is enabled, started or restarted: a kubelet that restarts because a package was installed surprises, and where no
// systemd runs, as in a chroot, nothing fails.
//
// What must never be in here: which packages a release has, and how a deb or an rpm is written.
package debrpm
