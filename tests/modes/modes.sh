#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs conformance tests where the system grants less than usual, and compares with the same tests run as usual.
set -euo pipefail

usage() {
  cat <<USAGE
Usage: ${0##*/} FOLDER MODE
FOLDER is that of the test programs. MODE is one of
  namespaces      in a user, a network and a PID namespace of its own, without privilege
  refused         with process_vm_*, membarrier, userfaultfd and pidfd calls answering EPERM, all together
  refused-CALLS   with one kind of them (process_vm, membarrier, userfaultfd, pidfd)
  few-files       with 64 descriptors
  no-files        under RLIMIT_FSIZE 0, over TCP
A test that fails is run again alone before it counts. A test that is skipped only there fails, as one that fails does, unless
kept-out.txt beside this script names it for the mode. Exit 77: the system does not allow the mode at all.
USAGE
}

[ $# -eq 2 ] || { usage >&2 && exit 2; }
programs=$1 mode=$2
here=$(cd "$(dirname "$0")" && pwd)
tests=$programs/conformance_tests

# Opening, connecting, messages, RDMA and shared queues, on each wire. What goes on for long
# to find rare faults is not repeated here.
filter='*EpConnect*:*EpDisconnect*:*DtoMessages*:*DtoOrder*:*IaOpen*:*IaClose*:*Psp*:*RdmaRead*:*RdmaWrite*:*SrqPost*'
without='*Hammer*:*Walk*:*Stress*:*Traffic*:*Invariant*'
confine=("$programs/confine")
case $mode in
  namespaces) run=(unshare --user --map-root-user --net --pid --fork --mount-proc sh -c 'ip link set lo up && exec "$@"' sh) ;;
  refused) run=("${confine[@]}" --deny process_vm --deny membarrier --deny userfaultfd --deny pidfd --) ;;
  refused-*) run=("${confine[@]}" --deny "${mode#refused-}" --) ;;
  few-files) run=("${confine[@]}" --files 64 --) ;;
  no-files) run=("${confine[@]}" --file-bytes 0 --) filter=${filter//:/\/tcp:}/tcp ;;
  *) usage >&2 && exit 2 ;;
esac
"${run[@]}" true 2>/dev/null || { echo "this system does not allow $mode" && exit 77; }

while read -r of name _; do
  if [ "$of" = "$mode" ]; then without+=:$name; fi
done < <(grep -v '^#' "$here/kept-out.txt")

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# names KIND FILE: the tests that FILE says have ended in that way.
names() {
  { grep -aoE "^\[ +$1 +\] [A-Za-z0-9_]+[/.][A-Za-z0-9_/.]+" "$2" || true; } | sed 's/.*\] //' | sort -u
}

# RLIMIT_FSIZE is for the log as well, so that it goes through a pipe.
log=$work/mode
{ timeout 280 "${run[@]}" "$tests" --gtest_filter="$filter:-$without" 2>&1 || true; } | cat >"$log"
grep -q '^\[==========\] .* ran\.' "$log" || { tail -n 20 "$log" && echo "the tests did not come to their end" && exit 1; }
names SKIPPED "$log" >"$work/skipped"

bad=0
for name in $(names FAILED "$log"); do
  if "${run[@]}" "$tests" --gtest_filter="$name" 2>&1 | cat >"$work/alone" && names OK "$work/alone" | grep -qx "$name"; then
    echo "$name failed among the others, and not alone"
  else
    grep -a -B 15 "FAILED.*$name" "$work/alone" | head -n 30
    echo "$name fails in the mode $mode"
    bad=1
  fi
done

# Those that are skipped, as usual.
if [ -s "$work/skipped" ]; then
  "$tests" --gtest_filter="$(paste -sd: "$work/skipped")" >"$work/usual" 2>&1 || true
  names SKIPPED "$work/usual" >"$work/usually"
  for name in $(comm -23 "$work/skipped" "$work/usually"); do
    echo "$name is skipped in the mode $mode only"
    bad=1
  done
fi
echo "$mode: $(names OK "$log" | wc -l) passed, $(wc -l <"$work/skipped") skipped as usual"
exit $bad
