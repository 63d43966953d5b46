#!/bin/sh
# client_version_test.sh KUBECTL GOVERSION: the binary runs, and the pinned Go made it.
set -eu
version=$("$1" version --client --output=json)
echo "$version"
case "$version" in
*"\"goVersion\": \"go$2\""*) ;;
*) echo "it was not made by go$2" && exit 1 ;;
esac
