#!/bin/sh
# Runs after packages-signed.sh, with the commands of docs/install.md as functions, one minor version earlier. This is about packages,
# signatures and keys. There is neither a cluster nor systemd, nor containerd, nor a registry: what needs these does nothing here. The
# folders old, both, new and withdrawn are what /srv/k8s becomes.
set -eux
ctr() { :; }
kubeadm() { :; }
systemctl() { :; }
slipway() { test "$1" = publish || command slipway "$@"; }
sudo() { "$@"; }
dnf() {
	/usr/bin/dnf --refresh --releasever=1 --setopt=install_weak_deps=0 --setopt=clean_requirements_on_remove=0 "$@"
}
fails() {
	if "$@"; then exit 1; fi
}
become() {
	rm -rf /srv/k8s
	cp -a "/srv/$1" /srv/k8s
}
keyring=acme-archive-keyring
rm -f /etc/apt/sources.list.d/* /etc/apt/sources.list
mkdir -p /etc/yum.repos.d
cp /etc/acme/base.repo /etc/yum.repos.d/
PATH=/srv:$PATH
cd /srv
# shellcheck source=/dev/null # the test writes it, of docs/install.md
. /srv/install.sh

# Each package manager installs, holds and goes back. Then a key is changed. Only upgrades follow: no file is touched by hand.
follow() {
	become old
	"with_$1"
	test "$(version kubelet)" = 1.36.2+acme.2-1
	first=$(version $keyring)
	unchanged $keyring
	"downgrade_$1"
	test "$(version kubelet)$(version kubectl)" = 1.36.2+acme.1-11.36.2+acme.1-1

	become both
	upgrade_all
	both=$(version $keyring)
	dpkg --compare-versions "$both" gt "$first"
	become new
	upgrade_all
	new=$(version $keyring)
	dpkg --compare-versions "$new" gt "$both"
	cmp /usr/share/keyrings/$keyring.asc /srv/k8s/core:/stable:/v1.36/deb/Release.key
	upgrade_all
	test "$(version kubelet)$(version kubectl)" = 1.36.2+acme.1-11.36.2+acme.1-1 # they are held

	"upgrade_$1"
	test "$(version kubelet)$(version kubectl)" = 1.37.0+acme.1-11.37.0+acme.1-1
}
version() { rpm -q --qf '%{VERSION}-%{RELEASE}' "$1"; }
unchanged() { rpm -V "$1"; }
upgrade_all() { dnf upgrade -y; }
follow dnf
dnf remove -y kubelet kubeadm kubectl $keyring
test ! -e /usr/share/keyrings/$keyring.asc

version() { dpkg-query -f '${Version}' -W "$1"; }
unchanged() { test -z "$(dpkg --verify "$1")"; }
upgrade_all() {
	apt-get update --error-on=any
	apt-get upgrade -y
}
follow apt
make_a_cluster
grep 'kubernetesVersion: v1.36.2+acme.1' kubeadm.yaml

# A machine that has only the old key says so, and goes on with the new one. What was withdrawn is offered no more.
cp /srv/old/core:/stable:/v1.36/deb/Release.key /usr/share/keyrings/$keyring.asc
become withdrawn
fails apt-get update --error-on=any
with_apt
when_a_release_is_withdrawn_apt >offered
grep 1.36.2+acme.1 offered
fails grep 1.36.2+acme.2 offered

# From a bundle.
apt-get purge -y --allow-change-held-packages kubelet kubeadm kubectl $keyring
without_a_network
test "$(version kubelet)" = 1.36.2+acme.1-1
