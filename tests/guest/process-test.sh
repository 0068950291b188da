#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What whole processes do, over RDMA devices in the guest: forks, programs that close all descriptors, a lack of memory,
# threads that are cancelled.
set -euo pipefail
here=$(realpath "$(dirname "$0")")
. "$here/../../scripts/lib.sh"
. "$here/stage.sh"
[ $# -ge 2 ] || die "usage: process-test.sh GUEST_FOLDER BUILD_FOLDER [FILTER]"
image=$2/guest-process.initramfs
staged_tests=tests/process_tests
[ -x "$2/bin/$staged_tests" ] || { say "skipped: process_tests was not built"; exit 77; }
stage "$1" "$2" "$image"
"$here/run-guest.sh" --build "$1" --image "$image" --timeout 680 --script "$here/guest-lib.sh" --script "$here/process.sh" -- \
  "${3:-*/Fork.*:*/ClosedDescriptors.*:*/RefusedCalls.*:*/Cancel.*}"
