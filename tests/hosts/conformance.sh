#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The conformance suite over TCP in a network namespace of its own, where packets are as short as on Ethernet: frames and
# segments do not coincide, sockets take less at once, and everything carries checksums.
#
# Usage: tests/hosts/conformance.sh FOLDER_OF_PROGRAMS [MTU]    exit code 77: this machine does not let us
set -euo pipefail
bin=$(realpath "$1")
mtu=${2:-1500}

if [ "${3:-}" != --inside ]; then
  command -v ip >/dev/null || { echo "skipped: there is no ip(8) here (package iproute2)" && exit 77; }
  reason=$(unshare --user --map-root-user --net ip link set lo up 2>&1) ||
    { echo "skipped: no network of our own: $reason" && exit 77; }
  exec unshare --user --map-root-user --net "$0" "$bin" "$mtu" --inside
fi
ip link set lo mtu "$mtu" up
DAT_CRC=on exec "$bin/conformance_tests" --gtest_brief=1 --gtest_filter='*/tcp*'
