#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The guest starts and has its devices.
set -euo pipefail
here=$(dirname "$0")
. "$here/../../scripts/lib.sh"
[ $# -eq 1 ] || die "usage: boot.sh GUEST_FOLDER"
[ -s "$1/initramfs" ] || { say "skipped: there is no guest in $1"; exit 77; }

devices=$("$here/run-guest.sh" --build "$1" --timeout 90 -- rdma link)
say "$devices"
for device in rxe0 rxe1; do
  grep -q "^link $device/1 state ACTIVE" <<<"$devices" || die "the guest has no active device $device"
done
