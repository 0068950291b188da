#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Failures of devices and of the kernel in the guest: those that a test makes up at the edge to libibverbs, and those of
# ports and links.
set -euo pipefail
here=$(realpath "$(dirname "$0")")
. "$here/../../scripts/lib.sh"
. "$here/stage.sh"
[ $# -ge 2 ] || die "usage: faults-test.sh GUEST_FOLDER BUILD_FOLDER [FILTER]"
image=$2/guest-faults.initramfs
staged_tests=tests/verbs_tests
stage "$1" "$2" "$image"
"$here/run-guest.sh" --build "$1" --image "$image" --timeout 280 --script "$here/guest-lib.sh" --script "$here/faults.sh" -- \
  "${3:-*}"
