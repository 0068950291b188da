#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The tests of conformance over an RDMA device of the guest, but for those in kept-out.txt.
set -euo pipefail
here=$(realpath "$(dirname "$0")")
. "$here/../../scripts/lib.sh"
. "$here/stage.sh"

usage() {
  cat <<END
Usage: tests/guest/conformance.sh GUEST_FOLDER BUILD_FOLDER [--quick] [--adapter NAME] [--filter PATTERNS]
  --quick     a selection that takes two minutes; without it all of them, which takes ten
  --adapter   verbs-rxe0 (default), verbs-siw1 or another of the guest's
  --filter    only these tests, as gtest has it
END
}
[ $# -ge 2 ] || { usage >&2; exit 2; }
guest=$1 build=$2 adapter=verbs-rxe0 filter='*' limit=1700
shift 2
# What a wire can get wrong: messages and their order, failures, shared queues, set-up and end of connections, windows.
quick='*DtoMessages*:*DtoOrder*:*DtoStatus*:*SrqAccounting.*:*SrqLowWatermark.*:*SrqResize.*:*SrqFlush*:*PrivateData*'
quick+=':*CrTest*:*EpConnect.*:*EpTransition*:*RdmaWrite*:*RdmaRead*:*RmrAccess*'
while [ $# -gt 0 ]; do
  case $1 in
    --quick) filter=$quick limit=400 && shift ;;
    --adapter) adapter=${2:?} && shift 2 ;;
    --filter) filter=${2:?} && shift 2 ;;
    *) usage >&2 && exit 2 ;;
  esac
done
[ -x "$build/bin/tests/conformance_tests" ] || { say "skipped: conformance_tests was not built"; exit 77; }

# A line of the list is a pattern and a reason; one that is for one kind of device only begins with the kind and a colon.
kind=${adapter#verbs-}
kept_out=$(sed -nE "s/^((${kind%%[0-9]*}):)?([A-Za-z]+\.[A-Za-z*]+)\t.*/*\3*/p" "$here/kept-out.txt" | paste -sd:)
image=$build/guest-conformance.initramfs
stage "$guest" "$build" "$image"
say "kept out: $(grep -cP '\t' "$here/kept-out.txt") patterns of tests/guest/kept-out.txt"
"$here/run-guest.sh" --build "$guest" --image "$image" --timeout "$limit" \
  --env "ANYDAT_TEST_ADAPTERS=$adapter" --env ANYDAT_TEST_TIMEOUT_SCALE=6 -- \
  conformance_tests --gtest_brief=1 "--gtest_filter=$filter:-$kept_out"
