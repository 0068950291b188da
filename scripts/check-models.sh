#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Explores the models of what no test can show, tests/models, exhaustively with spin(1): without an error as they are, and
# with one for each fault that they can be given. Takes a minute or so, and 2 GiB.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

need_packages spin gcc libc6-dev
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp tests/models/*.pml "$work"
cd "$work"

# explore MODEL DEFINE...: prints how many errors there are, 0 or 1, or what went wrong.
explore() {
  spin -a "${@:2}" "$1.pml" >log 2>&1 && gcc -O2 -w -DSAFETY -DMEMLIM=6000 -o pan pan.c >>log 2>&1 &&
    timeout 600 ./pan -m2000000 >>log 2>&1 && ! grep -q -e 'Search not completed' -e 'max search depth' log ||
    grep -q 'errors: 1' log || { tail -n 20 log && return; }
  sed -n 's/.*errors: //p' log
}
# expect ERRORS MODEL DEFINE...
expect() {
  local found
  found=$(explore "${@:2}")
  [ "$found" = "$1" ] || die "the model ${*:2}: $1 expected: $found"
}

expect 0 biased_lock -DT=2
expect 0 biased_lock -DT=2 -DMUTEX
expect 0 biased_lock -DT=2 -DMUTEX -DTASKS
expect 0 biased_lock -DT=3 -DROUNDS=1
for fault in NO_FENCE NO_SECOND_LOOK ONE_MARK; do expect 1 biased_lock -DT=2 "-D$fault"; done
for fault in NO_LOOK NO_TRY_AGAIN TWO_LOOKS; do expect 1 biased_lock -DT=2 -DMUTEX -DTASKS "-D$fault"; done
expect 0 rdma_gate
expect 0 rdma_gate -DPEER_ENDS
expect 1 rdma_gate -DPEER_ENDS -DCLOSE_FIRST
for fault in NO_FENCE NO_WAIT OPEN_FIRST NO_SECOND_LOOK NO_WAKE; do expect 1 rdma_gate "-D$fault"; done
say "models: as they should be, and so with each of their faults"
