#!/bin/sh
# Runs in a root file system without systemd and network, with rpms of two releases in /srv/rpm, whose versions are $OLD and $NEW.
set -eux
createrepo_c -q /srv/rpm
createrepo_c -q /srv/base
rm -rf /run/systemd
dnf() {
	/usr/bin/dnf -y --releasever=1 --setopt=reposdir=/none --repofrompath=k,file:///srv/rpm --repofrompath=b,file:///srv/base --nogpgcheck \
		--setopt=install_weak_deps=0 --setopt=clean_requirements_on_remove=0 "$@"
}
version() { rpm -q --qf '%{VERSION}-%{RELEASE}' "$1"; }
set -- kubelet kubeadm kubectl cri-tools kubernetes-cni

dnf install kubelet-"$OLD" kubeadm-"$OLD" kubectl-"$OLD" "cri-tools-*+$OLD" "kubernetes-cni-*+$OLD"
kubelet --version
test "$(find /opt/cni/bin -type f | wc -l)" -eq 18
test -d /var/lib/kubelet
rpm -V "$@"

mkdir -p /run/systemd/system
rm -f /systemctl.log
printf '#!/bin/sh\necho "$@" >>/systemctl.log\n' >/usr/bin/systemctl
chmod +x /usr/bin/systemctl
echo KUBELET_EXTRA_ARGS=--v=2 >/etc/sysconfig/kubelet
dnf upgrade --exclude=kubelet
test "$(version kubelet)" = "$OLD"
test "$(version kubeadm)" = "$NEW"
dnf upgrade
test "$(version kubelet)" = "$NEW"
grep -q v=2 /etc/sysconfig/kubelet
rpm -V kubelet | grep ' c /etc/sysconfig/kubelet$'
dnf downgrade kubelet-"$OLD"
test "$(version kubelet)" = "$OLD"
echo damaged >>/usr/bin/kubectl
rpm -V kubectl | grep /usr/bin/kubectl
test "$(sort -u /systemctl.log)" = daemon-reload

dnf remove "$@"
grep -q '^stop kubelet.service$' /systemctl.log
test -e /etc/sysconfig/kubelet.rpmsave
for gone in /usr/bin/kubelet /usr/bin/kubeadm /opt/cni/bin /etc/cni/net.d /var/lib/kubelet /usr/share/doc/kubelet; do
	test ! -e "$gone"
done
