#!/bin/sh
# Runs after packages-dnf.sh: repositories in /srv/k8s are read with all signatures checked.
set -eux
repo=/srv/k8s/core:/stable:/v1.36
mkdir /etc/acme
cp $repo/acme.repo /etc/acme/
cp $repo/deb/Release.key /usr/share/keyrings/acme-archive-keyring.asc
cat >/etc/acme/base.repo <<END
[base]
name=Base
baseurl=file:///srv/base
gpgcheck=0
END
dnf() {
	rm -rf /var/cache/dnf
	/usr/bin/dnf -y --releasever=1 --setopt=reposdir=/etc/acme --setopt=install_weak_deps=0 --setopt=clean_requirements_on_remove=0 "$@"
}
fails() {
	if "$@"; then exit 1; fi
}
dnf install kubelet dns-tools
rpm -V kubelet dns-tools
test "$(rpm -q --qf '%{VERSION}' kubelet)" = 1.36.2+acme.2
dnf downgrade kubelet-1.36.2+acme.1
dnf remove kubelet dns-tools

# What was changed is refused: an index, and a package whose index was not.
cp $repo/rpm/repodata/repomd.xml /kept
sed -i 's/<revision>1/<revision>2/' $repo/rpm/repodata/repomd.xml
fails dnf install kubelet
cp /kept $repo/rpm/repodata/repomd.xml
for file in "$repo"/rpm/x86_64/kubelet-*; do echo >>"$file"; done
fails dnf install kubelet

rm -f /etc/apt/sources.list.d/* /etc/apt/sources.list
cp $repo/acme.sources /etc/apt/sources.list.d/
apt-get update --error-on=any
apt-get install -y --no-install-recommends kubelet=1.36.2+acme.1-1 dns-tools
apt-get upgrade -y
test "$(dpkg-query -f '${Version}' -W kubelet)" = 1.36.2+acme.2-1
apt-get purge -y kubelet dns-tools
sed -i 's/^Origin: core/Origin: cor/' $repo/deb/InRelease
fails apt-get update --error-on=any
