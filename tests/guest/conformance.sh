#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The tests of conformance over an RDMA device of the guest, but for those in kept-out.txt.
set -euo pipefail
here=$(realpath "$(dirname "$0")")
. "$here/../../scripts/lib.sh"
. "$here/stage.sh"

usage() {
  cat <<END
Usage: tests/guest/conformance.sh GUEST_FOLDER BUILD_FOLDER [--quick] [--adapter NAME] [--filter PATTERNS] [--kept-out]
  --quick     a selection that takes one or two minutes, in one process; without it all tests, each in a process of its
              own, which takes a quarter of an hour and more
  --adapter   verbs-rxe0 (default), verbs-siw1 or another of the guest's
  --filter    only these tests, as gtest has it
  --kept-out  the other way round: only the tests that kept-out.txt names, of which every one shall fail
  --logs      a folder for what each test prints
  --jobs, --scale  how many tests run at a time (3), and how patient they are (3, of which 1 is 5 s)
END
}
[ $# -ge 2 ] || { usage >&2; exit 2; }
guest=$1 build=$2 adapter=verbs-rxe0 filter='*' quick=no shall=pass logs='' jobs=3 scale=3
shift 2
while [ $# -gt 0 ]; do
  case $1 in
    --quick) quick=yes && shift ;;
    --adapter) adapter=${2:?} && shift 2 ;;
    --filter) filter=${2:?} && shift 2 ;;
    --kept-out) shall=fail && shift ;;
    --logs) logs=${2:?} && shift 2 ;;
    --jobs) jobs=${2:?} && shift 2 ;;
    --scale) scale=${2:?} && shift 2 ;;
    *) usage >&2 && exit 2 ;;
  esac
done
[ -x "$build/bin/tests/conformance_tests" ] || { say "skipped: conformance_tests was not built"; exit 77; }

# A line of the list is a pattern and a reason; one that is for one kind of device only begins with the kind and a colon.
kind=${adapter#verbs-}
kind=${kind%%[0-9]*}
kept_out=$(sed -nE "s/^($kind:)?([A-Za-z]+\.[A-Za-z*]+)\t.*/*\/\2\/*/p" "$here/kept-out.txt" | paste -sd:)
image=$build/guest-conformance-$kind.initramfs
stage "$guest" "$build" "$image"
run=("$here/run-guest.sh" --build "$guest" --image "$image")
if [ -n "$logs" ]; then mkdir -p "$logs" && run+=(--share "$logs"); fi
say "kept out: $(tr ':' '\n' <<<"$kept_out" | wc -l) patterns of tests/guest/kept-out.txt"
if [ $quick = yes ]; then
  # What a wire can get wrong: messages and their order, failures, shared queues, set-up and end of connections, windows.
  selection='*DtoMessages*:*DtoOrder*:*DtoStatus*:*SrqAccounting.*:*SrqLowWatermark.*:*SrqResize.*:*SrqFlush*:*PrivateData*'
  selection+=':*CrTest*:*EpConnect.*:*EpTransition*:*RdmaWrite*:*RdmaRead*:*RmrAccess*'
  # What the head of a connection request of InfiniBand carries whole: qualifiers of 64 bits, also where a request is passed on.
  selection+=':*Qualifiers.*:*HabitsTest.NamedAttributes*'
  # And where iWARP is another thing: ends of connections, what a rejection says, early messages.
  [ "$kind" != siw ] || selection='*DtoMessages*:*DtoOrder*:*DtoStatus*:*SrqAccounting.*:*SrqTaking*:*SrqFlush*:*PrivateData*'
  [ "$kind" != siw ] || selection+=':*Qualifiers.*:*HabitsTest.NamedAttributes*:*EpDisconnect*:*Handoff.*:*EpDupConnect*:*RdmaProtection*:*RdmaWrite*:*RmrAccess*'
  exec "${run[@]}" --timeout 400 --env "ANYDAT_TEST_ADAPTERS=$adapter" --env ANYDAT_TEST_TIMEOUT_SCALE=6 -- \
    conformance_tests --gtest_brief=1 "--gtest_filter=$selection:-$kept_out"
fi
chosen=$filter:-$kept_out
[ $shall = pass ] || chosen=$kept_out
exec "${run[@]}" --timeout 3600 --script "$here/each-test.sh" -- "$adapter" "$chosen" $shall "$jobs" "$scale" 90
