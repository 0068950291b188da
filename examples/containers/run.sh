#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Two rootless containers of one host that meet in a directory both can see, and talk through shared memory: each has
# user, network, mount and PID namespaces of its own, and no network leads from one to the other.
#
#   examples/containers/run.sh [FOLDER OF datping]     default: build/release/bin
#
# Exit code 0 if every message came back intact; 77 if this system gives no namespaces.
set -euo pipefail
bin=$(realpath "${1:-$(dirname "$0")/../../build/release/bin}")

unshare -Urnmp --fork --mount-proc true 2>/dev/null || { echo "this system gives no namespaces"; exit 77; }
meeting=$(mktemp -d)
export DAT_SHM_DIR=$meeting

# A container: its address, then what runs in it.
container() {
  local address=$1
  shift
  exec unshare -Urnmp --fork --mount-proc --kill-child \
    bash -c 'ip link set lo up && ip address add "$0/32" dev lo && exec "$@"' "$address" "$@"
}

(container 10.0.0.1 "$bin/datping" --serve --qual 4711) &
server=$!
trap 'kill -KILL $server 2>/dev/null; wait $server 2>/dev/null || :; rm -rf "$meeting"' EXIT

for ((i = 0; i < 200; i++)); do
  [ -S "$meeting/10.0.0.1/4711" ] && break
  sleep 0.05
done
(container 10.0.0.2 "$bin/datping" --to 10.0.0.1:4711 --count 100 --size 64KiB)
