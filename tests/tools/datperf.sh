#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs that are too short to measure anything, but move and check what long ones do.
. "$(dirname "$0")/lib.sh"

number='^[0-9]+(\.[0-9]+)?(e-?[0-9]+)?$'
positive() { # KEY...: the value there is a number above 0
  local value
  value=$(json "$@")
  [[ $value =~ $number ]] && awk -v v="$value" 'BEGIN {exit !(v > 0)}' || die "$* is '$value'"
}

measure() { # METRIC OPTION...
  run 0 datperf "$@" --json
  case $1 in
    lat) positive median_ns && positive p999_ns ;;
    *) positive gbytes_per_s && positive mmsgs_per_s ;;
  esac
}

for metric in lat bw rate; do
  for options in '' '--srq' '--wait block' '--endpoints 3' '--srq --endpoints 3 --wait block'; do
    # shellcheck disable=SC2086  # several words, or none
    measure $metric --size 64 --iters 300 $options
  done
  for size in 1 9 8KiB 64KiB 1MiB; do measure $metric --size $size --iters 20; done
done
for op in write read; do
  for size in 1 2 8 9 4KiB 1MiB; do
    for metric in lat bw rate; do measure $metric --op $op --size $size --iters 40; done
  done
  measure rate --op $op --size 64 --iters 300 --endpoints 3 --srq --wait block
done
[ "$(json op)" = read ] || die "the JSON does not say what was measured"
measure lat --op write --size 8 --iters 2000 --endpoints 255 # a number of a byte returns with each round of them
measure bw --size 1MiB --iters 20
[ "$(json op)" = send ] && [ "$(json size_bytes)" = 1048576 ] || die "the JSON does not say what was measured"

for wire in shm tcp; do
  run 0 datperf many --endpoints 200 --clients 4 --iters 20000 --burst 3 --wire $wire --json
  for what in few many; do
    for key in connects_per_s mmsgs_per_s; do positive $what $key; done
  done
done
[ "$(json many endpoints)" = 200 ] && [ "$(json few endpoints)" = 16 ] || die "the JSON does not say how many"
positive rate_ratio
run 1 datperf many --endpoints 201 --clients 4
(
  ulimit -n 100
  run 1 datperf many --endpoints 200 --wire tcp
)
complains 'needs [0-9]+ descriptors .* may have 100'

for wire in shm tcp; do # what was used, not what was asked for
  run 0 datperf lat --size 8 --iters 20 --wire $wire --json
  [ "$(json wire)" = $wire ] || die "the JSON does not say that $wire was used"
  DAT_WIRE=$wire run 0 datperf lat --size 8 --iters 20 --json
  [ "$(json wire)" = $wire ] || die "DAT_WIRE=$wire did not hold"
done
run 2 datperf lat --cpus 0,9999
complains '9999. is no processor'
if grep -q 'Broken pipe' "$work/err"; then die "the complaint is not the first: $(cat "$work/err")"; fi
run 0 datperf --version
says '^datperf [0-9]+\.[0-9]+'

start_server datperf serve --qual 0
measure lat --to "$server_at" --size 8 --iters 100
measure bw --to "$server_at" --size 4096 --iters 100 --srq
stop_server

run 0 datperf rate --iters 20 # all sizes, as a table
says '^ +4 MiB +20 '
run 1 datperf lat --to "$server_at" --size 8 --iters 1
run 2 datperf
run 2 datperf lat --size 0
run 2 datperf many --clients 1
run 2 datperf lat --op swap
run 2 datperf lat --op write --wait block # there is nothing to block in
say "datperf is in order"
