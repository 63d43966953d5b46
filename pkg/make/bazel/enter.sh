#!/bin/sh
# enter.sh ROOT DIR FOLDER... -- COMMAND...
# Runs a command in DIR, with ROOT as the root of the file system and folders of this machine bound to the same paths. Run it
# in a mount namespace of its own.
set -eu
root=$1 dir=$2
shift 2

# pivot_root needs a mount, and programs expect one at /.
mount --bind "$root" "$root"
for special in /dev /proc /sys; do
  mkdir -p "$root$special"
  mount --rbind "$special" "$root$special"
done
while [ "$1" != -- ]; do
  mkdir -p "$root$1"
  mount --rbind "$1" "$root$1"
  shift
done
shift

# Network configuration. It is copied because a bind mount would keep showing a file that is replaced later.
for file in /etc/hosts /etc/resolv.conf /etc/ssl/certs/ca-certificates.crt; do
  if [ -e "$file" ]; then
    cp -L "$file" "$root$file.$$"
    mv -f "$root$file.$$" "$root$file"
  fi
done

mkdir -p "$root/.machine"
cd "$root"
pivot_root . .machine
umount -l /.machine
cd "$dir"
exec "$@"
