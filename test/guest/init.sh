#!/bin/sh
# The first process of a guest. It runs the script in a folder of the host that the kernel's command line names, and switches the guest off.
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH HOME=/root LC_ALL=C

mount -t proc proc /proc
mount -t sysfs sysfs /sys
mountpoint -q /dev || mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm /host
mount -t devpts devpts /dev/pts
mount -t tmpfs -o mode=1777 shm /dev/shm
mount -t tmpfs -o mode=755 run /run
mount -t tmpfs -o mode=1777 tmp /tmp
mount -t cgroup2 cgroup2 /sys/fs/cgroup
modprobe 9pnet_virtio
mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,cache=loose host /host
ip link set lo up
hostname guest

dir=/host$(sed -n 's/.* guest.folder=\([^ ]*\).*/\1/p' /proc/cmdline)
sh "$dir/script" >"$dir/output" 2>&1
echo $? >"$dir/code"
sync
echo o >/proc/sysrq-trigger
sleep 60
