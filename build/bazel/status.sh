#!/bin/sh
# Prints what --config=release stamps into binaries, for Bazel's --workspace_status_command. `slipway bazel` passes it in a variable;
# without it, slipway is compiled to print it.
set -eu
if [ -n "${SLIPWAY_WORKSPACE_STATUS-}" ]; then
  printf '%s\n' "$SLIPWAY_WORKSPACE_STATUS"
  exit
fi
make slipway >&2
exec _output/bin/slipway version --workspace-status
