#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# uDAPL 2.0 over soft-RoCE and soft-iWARP in the guest: what it has beyond 1.2, and programs of the two versions that talk to
# each other. The tests of kept-out.txt are not run.
set -euo pipefail
here=$(realpath "$(dirname "$0")")
. "$here/../../scripts/lib.sh"
. "$here/stage.sh"
[ $# -ge 2 ] || die "usage: face20-test.sh GUEST_FOLDER BUILD_FOLDER [FILTER]"
image=$2/guest-face20.initramfs
staged_tests=tests/face20_tests
for program in face20_tests conversation12; do
  [ -x "$2/bin/tests/$program" ] || { say "skipped: $program was not built"; exit 77; }
done
kept_out=$(sed -nE 's/^([A-Z][A-Za-z0-9]+\.[A-Za-z0-9*]+)\t.*/*\/\1\/*/p' "$here/kept-out.txt" | paste -sd:)
stage "$1" "$2" "$image" "$2/src/libdat2.so.2:lib" "$2/bin/tests/conversation12:bin"
"$here/run-guest.sh" --build "$1" --image "$image" --timeout 280 --script "$here/guest-lib.sh" --script "$here/face20.sh" -- \
  "${3:-*}" "$kept_out"
