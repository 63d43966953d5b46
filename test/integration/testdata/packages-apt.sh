#!/bin/sh
# Runs in a root file system without systemd and network, with debs of two releases in /srv/deb, whose versions are $OLD and $NEW.
set -eux
cd /srv/deb
apt-ftparchive packages . >Packages
rm -f /etc/apt/sources.list.d/*
echo 'deb [trusted=yes] file:/srv/deb ./' >/etc/apt/sources.list
apt-get update

# Everything is installed where there is no systemd.
set -- kubelet kubeadm kubectl cri-tools kubernetes-cni
version() { dpkg-query -f '${Version}' -W "$1"; }
apt-get install -y --no-install-recommends kubelet="$OLD" kubeadm="$OLD" kubectl="$OLD" cri-tools="*+${OLD#*:}" kubernetes-cni="*+$OLD"
kubelet --version
kubeadm version
crictl --version
test "$(find /opt/cni/bin -type f | wc -l)" -eq 18
test -d /var/lib/kubelet
test -d /etc/kubernetes/manifests
test -d /etc/cni/net.d
test -z "$(dpkg --verify "$@")"
grep -q 'Apache License' /usr/share/doc/kubelet/NOTICES

# Now systemd seems to run. Upgrades change neither configuration nor what is held, and tell systemd to read its units: nothing else.
mkdir -p /run/systemd/system
printf '#!/bin/sh\necho "$@" >>/systemctl.log\n' >/usr/bin/systemctl
chmod +x /usr/bin/systemctl
echo KUBELET_EXTRA_ARGS=--v=2 >/etc/default/kubelet
apt-mark hold kubelet
apt-get upgrade -y
test "$(version kubelet)" = "$OLD"
test "$(version kubeadm)" = "$NEW"
apt-mark unhold kubelet
apt-get upgrade -y
test "$(version kubelet)" = "$NEW"
grep -q v=2 /etc/default/kubelet
dpkg --verify kubelet | grep ' c /etc/default/kubelet$'
test "$(dpkg --verify "$@" | wc -l)" -eq 1
apt-get install -y --allow-downgrades kubelet="$OLD"
test "$(version kubelet)" = "$OLD"
echo damaged >>/usr/bin/kubectl
dpkg --verify kubectl | grep /usr/bin/kubectl
test "$(sort -u /systemctl.log)" = daemon-reload

# What is removed was stopped, and leaves its configuration; what is purged leaves nothing.
apt-get remove -y kubelet
grep -q '^stop kubelet.service$' /systemctl.log
grep -q '^--no-reload disable kubelet.service$' /systemctl.log
test ! -e /usr/bin/kubelet
test -e /etc/default/kubelet
apt-get purge -y "$@"
for gone in /etc/default/kubelet /usr/bin/kubeadm /opt/cni /etc/cni /etc/kubernetes /var/lib/kubelet /usr/share/doc/kubelet \
	/usr/lib/systemd/system/kubelet.service.d; do
	test ! -e "$gone"
done
rm /usr/bin/systemctl
