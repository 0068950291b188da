#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# datperf beside perftest over soft-RoCE or soft-iWARP, in turn in one boot of the guest.
set -euo pipefail
here=$(realpath "$(dirname "$0")")
. "$here/../../scripts/lib.sh"
. "$here/stage.sh"
[ $# -ge 2 ] || die "usage: compare-perftest.sh GUEST_FOLDER BUILD_FOLDER [DEVICE [ROUNDS]]"
image=$2/guest-perf.initramfs
stage "$1" "$2" "$image"
"$here/run-guest.sh" --build "$1" --image "$image" --timeout 1500 --env "DEVICE=${3:-rxe0}" --env "ROUNDS=${4:-5}" \
  --script "$here/perf.sh"
