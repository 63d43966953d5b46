#!/bin/sh
# node.sh NAME ADDRESS PATH DISK RELEASE
# The init of a node, in mount, network, host name, IPC and process namespaces of its own: containerd, and the kubelet once
# kubeadm has configured it. It starts in the node's folder, which becomes /run/slipway/node; the folder of unpacked releases
# becomes /run/slipway/releases, with a link to RELEASE in it, /run/slipway/release. The root is the release's image "node", below a layer in memory. Of this machine's files,
# a node sees devices, /sys and the kernel's modules.
set -eu
name=$1 address=$2 PATH=$3 disk=$4 release=$5

# As long as /run is the machine's, no mount may write there what it did (-n).
mount -n --make-rprivate /
mount -n -t proc proc /proc
mount -n -t tmpfs -o mode=755 tmpfs /run
mkdir /run/image /run/upper /run/work /run/root
mount --bind ../../root /run/image # options cannot hold any path
mount -t overlay -o lowerdir=/run/image,upperdir=/run/upper,workdir=/run/work overlay /run/root
mkdir -p /run/root/proc /run/root/sys /run/root/dev /run/root/run /run/root/usr/lib/modules
mount -t proc proc /run/root/proc
mount --rbind /sys /run/root/sys
mount --rbind /dev /run/root/dev
mount -t tmpfs -o mode=755 tmpfs /run/root/run
mkdir -p /run/root/run/slipway/node /run/root/run/slipway/releases /run/root/run/machine
mount --bind . /run/root/run/slipway/node
mount --bind ../../releases /run/root/run/slipway/releases
ln -s "$release" /run/root/run/slipway/release
if [ -d /lib/modules ]; then
  mount --bind /lib/modules /run/root/usr/lib/modules
fi
pivot_root /run/root /run/root/run/machine
cd /run/slipway/node
umount -l /run/machine
rmdir /run/machine

# etcd's data is in memory, where a sync costs nothing: a cluster does not outlive the machine's next boot.
mount -t tmpfs -o mode=755 tmpfs /var/lib
mkdir -p var-log tmp kubernetes cni /var/lib/containerd /var/lib/kubelet /var/log /tmp /etc/kubernetes /etc/cni/net.d
chmod 1777 tmp
mount --bind var-log /var/log
mount --bind tmp /tmp
mount --bind kubernetes /etc/kubernetes
mount --bind cni /etc/cni/net.d

# A disk of the node's own, in a file with holes: whether it is full does not depend on that of this machine. The kernel frees the
# loop device when the node ends.
truncate -s "$disk" disk
mkfs.ext4 -q -F -m 0 -O ^has_journal disk
mkdir /run/disk
mount -o loop,discard disk /run/disk
mkdir /run/disk/containerd /run/disk/kubelet
mount --bind /run/disk/containerd /var/lib/containerd
mount --bind /run/disk/kubelet /var/lib/kubelet

hostname "$name"
echo "$name" >/etc/hostname
printf '127.0.0.1 localhost\n%s %s\n' "$address" "$name" >/etc/hosts
# Nothing answers there: CoreDNS says at once that it does not know names of the world outside, to which nothing leads.
echo "nameserver $address" >/etc/resolv.conf

# The kubelet sets what no namespace holds, and what is the machine's to decide. It gets files instead, with the values that it wants: with
# protectKernelDefaults, it does not start with others.
mkdir /run/sysctl
while read -r setting value; do
  if [ -e "/proc/sys/$setting" ]; then
    file=/run/sysctl/$(basename "$setting")
    echo "$value" >"$file"
    mount --bind "$file" "/proc/sys/$setting"
  fi
done <<END
vm/overcommit_memory 1
vm/panic_on_oom 0
kernel/panic 10
kernel/panic_on_oops 1
kernel/keys/root_maxkeys 1000000
kernel/keys/root_maxbytes 25000000
END
echo 1 >/proc/sys/net/ipv4/ip_forward # of the node's network namespace

# Volumes that containers mount reach the others.
mount --make-rshared /

# keep NAME PROGRAM...: runs a program until it ends, with its process in /run/slipway/NAME.pid. To restart the program, end that one.
keep() {
  name=$1
  shift
  "$@" >>"/var/log/$name.log" 2>&1 &
  echo $! >"/run/slipway/$name.pid"
  wait $! || true
}

while :; do
  keep containerd containerd --config /run/slipway/node/containerd.toml
  sleep 0.2
done &

while :; do
  if [ -f /var/lib/kubelet/kubeadm-flags.env ] && [ -f /var/lib/kubelet/config.yaml ]; then
    # shellcheck source=/dev/null # kubeadm writes it
    . /var/lib/kubelet/kubeadm-flags.env
    # shellcheck disable=SC2046,SC2086 # they are several, or none
    keep kubelet env $(cat /run/slipway/release/environment 2>/dev/null) kubelet --config=/var/lib/kubelet/config.yaml --kubeconfig=/etc/kubernetes/kubelet.conf \
      --bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf ${KUBELET_KUBEADM_ARGS:-}
  fi
  sleep 0.2
done
